#!/usr/bin/env bash
# pg.sh start|stop|status|conninfo|createdb NAME|psql ARGS: a PostgreSQL cluster of our own under the
# data root, reached over a unix socket only. The same server, settings and code path as production;
# only the connection string differs. Never runs as root: root hands it to the user postgres.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

root=$(data_root)
pg=$root/pg
data=$pg/data
sock=$pg/sock
log=$pg/server.log

# The programs of the cluster's own version, else the newest installed.
bin() {
	if [ -f "$data/PG_VERSION" ] 2>/dev/null && [ -d "/usr/lib/postgresql/$(cat "$data/PG_VERSION")/bin" ]; then
		printf '%s\n' "/usr/lib/postgresql/$(cat "$data/PG_VERSION")/bin"
		return
	fi
	found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
	[ -n "$found" ] || found=$(pg_config --bindir 2>/dev/null || true)
	[ -x "$found/initdb" ] || die "no PostgreSQL server is installed: run scripts/setup.sh run"
	printf '%s\n' "$found"
}
bin=$(bin)

if [ "$(id -u)" = 0 ]; then
	id postgres >/dev/null 2>&1 || die "no user postgres: run scripts/setup.sh run"
	as() { (cd / && runuser -u postgres -- "$@"); }
	own() { chown postgres "$@"; }
	user=postgres
else
	as() { (cd / && "$@"); }
	own() { :; }
	user=$(id -un)
fi

running() { [ -f "$data/postmaster.pid" ] && as "$bin/pg_ctl" -D "$data" status >/dev/null 2>&1; }

# The folder that holds the socket is closed to others, so "trust" trusts its owner and root alone.
make_cluster() {
	mkdir -p "$pg" "$sock"
	chmod 700 "$pg" "$sock"
	own "$pg" "$sock"
	[ -f "$data/PG_VERSION" ] && return
	rm -rf "$data.new"
	as "$bin/initdb" -D "$data.new" -U "$user" --encoding=UTF8 --locale=C.UTF-8 --auth=trust \
		${PG_INITDB_OPTS:-} >"$root/initdb.log" 2>&1 || { cat "$root/initdb.log" >&2; die "initdb failed"; }
	cat >>"$data.new/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$sock'
port = 5432
max_connections = 200
log_min_messages = warning
CONF
	mv "$data.new" "$data"
}

start() {
	exec 9>"$root/pg.lock"
	flock -w 300 9 || die "another start of this cluster does not end"
	make_cluster
	# 9>&-: the server must not inherit the lock.
	# After a crash it first syncs every file of all databases, which a busy disk makes long.
	running || as "$bin/pg_ctl" -D "$data" -w -t 240 -l "$log" start >/dev/null 9>&- || {
		tail -n 20 "$log" >&2 || true
		die "PostgreSQL does not start"
	}
}

create_db() {
	there=$("$bin/psql" -X -At -d "$(conninfo postgres)" -c "select 1 from pg_database where datname = '$1'")
	[ "$there" = 1 ] || "$bin/createdb" -h "$sock" -p 5432 -U "$user" -T template0 -E UTF8 "$1"
}

conninfo() { printf 'host=%s port=5432 user=%s dbname=%s\n' "$sock" "$user" "${1:-frazil}"; }

case ${1:-} in
start)
	start
	create_db frazil
	;;
stop)
	if running; then as "$bin/pg_ctl" -D "$data" -m fast -w -t 60 stop >/dev/null; fi
	;;
status)
	if running; then echo running; else
		echo stopped
		exit 3
	fi
	;;
crash) # the server dies without a checkpoint, as after a power cut
	as "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null
	;;
conninfo) conninfo "${2:-}" ;;
createdb) create_db "${2:?name}" ;;
psql)
	shift
	exec "$bin/psql" -X -h "$sock" -p 5432 -U "$user" "$@"
	;;
*)
	die "usage: pg.sh start|stop|status|crash|conninfo [DB]|createdb NAME|psql ARGS"
	;;
esac
