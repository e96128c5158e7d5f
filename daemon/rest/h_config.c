/* GET /v1/config. */
#include "daemon/rest/h_idem.h"
#include "daemon/rest/h_rest.h"

#include "proto/rest/rb_config.h"

/* The specification's routes that this server offers; clients turn off what is not listed. */
static const enum route offered[] = {
	ROUTE_ns_list,	      ROUTE_ns_create,	    ROUTE_ns_load,     ROUTE_ns_exists,
	ROUTE_ns_drop,	      ROUTE_ns_properties,  ROUTE_table_list,  ROUTE_table_create,
	ROUTE_table_register, ROUTE_table_load,	    ROUTE_table_exists, ROUTE_table_commit,
	ROUTE_table_drop,     ROUTE_table_metrics,  ROUTE_table_rename, ROUTE_txn_commit,
	ROUTE_table_unregister,
	ROUTE_view_list,      ROUTE_view_create,    ROUTE_view_register, ROUTE_view_load,
	ROUTE_view_exists,    ROUTE_view_replace,   ROUTE_view_drop,   ROUTE_view_rename,
	ROUTE_oauth_token,
	ROUTE_function_list,  ROUTE_function_load,
};

static void config(struct call *own_call)
{
	struct call *call = own_call;
	const struct conf *c = call->app->conf;
	const struct route_arg *asked = route_arg(&call->hit, "warehouse");
	struct strv endpoints[ARRAY_SIZE(offered)], name = {NULL, 0}, location;
	struct err err;
	struct buf text, body;
	size_t i = 0, ends[ARRAY_SIZE(offered) + 1] = {0}, n = 0;
	if (asked && asked->value.text.n && !h_warehouse(c, asked->value.text, &i)) {
		err_set(&err, ST_NO_SUCH_WAREHOUSE, "", "Warehouse does not exist: %.*s",
			STRV_ARG(strv_sub(asked->value.text, 0, 128)));
		call_reply_err(call, &err);
		return;
	}
	/* The default warehouse is served without a prefix, as clients of one catalog expect. */
	if (i > 0) {
		bool found = conf_warehouse(c, i, &name, &location);
		ASSERT(found);
	}
	buf_init(&text, 8192);
	for (size_t k = 0; k < ARRAY_SIZE(offered); k++) {
		if (!call->app->routes->fn[offered[k]] || !route_endpoint(offered[k], &text))
			continue;
		ends[++n] = text.n;
	}
	ASSERT(buf_ok(&text));
	for (size_t k = 0; k < n; k++)
		endpoints[k] = strv_sub(buf_strv(&text), ends[k], ends[k + 1]);
	buf_init(&body, 16384);
	char lifetime[H_IDEM_DURATION_MAX];
	h_idem_duration(c->rest_idempotency_lifetime_ms, lifetime);
	rb_config_write(&body, name, endpoints, n,
			c->rest_idempotency_lifetime_ms ? strv_of(lifetime)
							: (struct strv){NULL, 0});
	buf_fini(&text);
	call_reply_buf(call, 200, &body);
}

void h_config_routes(struct route_table *t)
{
	route_set(t, ROUTE_config, config);
}
