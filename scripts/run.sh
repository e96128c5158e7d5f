#!/usr/bin/env bash
# run.sh: what `make run` runs. Sets up what is missing, builds, starts a private PostgreSQL and the
# daemon with a warehouse below the data root, demonstrates, and serves until Ctrl-C. ONCE=1 ends after
# the demonstration. Beside a daemon that runs already it demonstrates against that one and ends.
# Addresses: FRAZIL_REST_LISTEN, FRAZIL_RPC_LISTEN, FRAZIL_ADMIN_LISTEN, as for the daemon itself.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

rest=${FRAZIL_REST_LISTEN:-127.0.0.1:8181}
rpc=${FRAZIL_RPC_LISTEN:-127.0.0.1:8182}
admin=${FRAZIL_ADMIN_LISTEN:-127.0.0.1:8183}

# Before the data root is chosen: where root runs this, the choice asks what the user postgres, whom
# the set-up brings, can enter.
scripts/setup.sh run
root=$(data_root)
warehouse=$root/warehouse
log=$root/frazild.log
pidfile=$root/frazild.pid

make --no-print-directory -j"$(nproc)" all
env=$(scripts/venv.sh scripts/requirements-run.txt)

demonstrate() { "$env/bin/python" scripts/demo.py "http://$rest" "$rpc"; }

# Lines to paste: each was run against this daemon's catalog by the test suite.
paste_lines() {
	cat <<TEXT

curl      curl -s http://$rest/v1/namespaces/demo/tables
PyIceberg python3 -c 'from pyiceberg.catalog import load_catalog; c = load_catalog("frazil", type="rest", uri="http://$rest"); print(c.list_tables("demo"))'
DuckDB    INSTALL iceberg; LOAD iceberg; ATTACH '' AS ice (TYPE iceberg, ENDPOINT 'http://$rest', AUTHORIZATION_TYPE 'none'); SHOW ALL TABLES;
Spark     spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 \\
            --conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions \\
            --conf spark.sql.catalog.ice=org.apache.iceberg.spark.SparkCatalog --conf spark.sql.catalog.ice.type=rest \\
            --conf spark.sql.catalog.ice.uri=http://$rest -e 'SHOW TABLES IN ice.demo'

TEXT
}

is_frazil() {
	curl -fsS -m 5 "http://$admin/metrics" 2>/dev/null | grep -q '^frazil_build_info' &&
		curl -fsS -m 5 -o /dev/null "http://$rest/v1/config" 2>/dev/null
}

if port_open "${rest##*:}"; then
	if is_frazil; then
		say "frazild serves $rest already: demonstrating against it"
		demonstrate
		paste_lines
		exit 0
	fi
	owner=$(port_owner "${rest##*:}")
	die "port ${rest##*:} belongs to another program${owner:+: $owner}; stop it, or set FRAZIL_REST_LISTEN"
fi
for address in "$rpc" "$admin"; do
	if port_open "${address##*:}"; then
		owner=$(port_owner "${address##*:}")
		die "port ${address##*:} belongs to another program${owner:+: $owner}; stop it, or set FRAZIL_RPC_LISTEN or FRAZIL_ADMIN_LISTEN"
	fi
done

started_pg=
daemon=
finish() {
	trap - EXIT INT TERM
	if [ -n "$daemon" ]; then
		kill -TERM "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
		rm -f "$pidfile"
	fi
	[ -z "$started_pg" ] || scripts/pg.sh stop || true
}
trap finish EXIT
trap 'finish; exit 0' INT TERM

if ! scripts/pg.sh status >/dev/null 2>&1; then started_pg=yes; fi
scripts/pg.sh start
mkdir -p "$warehouse"
FRAZIL_REST_LISTEN=$rest FRAZIL_RPC_LISTEN=$rpc FRAZIL_ADMIN_LISTEN=$admin \
	FRAZIL_PG_CONNINFO="$(scripts/pg.sh conninfo)" FRAZIL_WAREHOUSE_LOCATION="file://$warehouse" \
	build/gcc/frazild >>"$log" 2>&1 </dev/null &
daemon=$!
echo "$daemon" >"$pidfile"
tries=0
until curl -fsS -m 5 "http://$rest/v1/config" >/dev/null 2>&1; do
	tries=$((tries + 1))
	if ! kill -0 "$daemon" 2>/dev/null || [ "$tries" -gt 300 ]; then
		tail -n 20 "$log" >&2
		die "frazild did not start; its log is $log"
	fi
	sleep 0.1
done
say "frazild serves http://$rest (catalog), $rpc (workers), http://$admin (admin); data in $root, log $log"
demonstrate
paste_lines
if [ "${ONCE:-0}" = 1 ]; then exit 0; fi
say "serving; Ctrl-C stops the daemon and its PostgreSQL"
wait "$daemon" || { code=$?; tail -n 20 "$log" >&2; daemon=; exit "$code"; }
