/* Operator routes about tables. */
#ifndef DAEMON_BIND_BIND_ADMIN_H
#define DAEMON_BIND_BIND_ADMIN_H

struct app;

void bind_admin_routes(struct app *app);

#endif
