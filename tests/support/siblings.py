"""Namespaces of many tables, made by writing rows: a table at a time would take minutes."""

import subprocess

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


def psql(conninfo, text):
    subprocess.run(["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", conninfo, "-c", text], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)


def name_of(i):
    return "table_of_orders_%08d" % i if i > 1 else "t"


def siblings(daemon, space, n):
    """A namespace of n tables: one is made, the rows of the others are written beside it."""
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": [space]})
    daemon.rest.want(200, "POST", "/v1/namespaces/%s/tables" % space, {"name": "t", "schema": SCHEMA})
    psql(daemon.settings["pg.conninfo"], """
        CREATE TEMP TABLE made AS SELECT gen_random_uuid() AS id, i FROM generate_series(2, %d) i;
        INSERT INTO frazil.tabular SELECT (jsonb_populate_record(t, jsonb_build_object('table_id', id,
          'name', 'table_of_orders_' || lpad(i::text, 8, '0'), 'location', t.location || '-' || i))).*
          FROM made, frazil.tabular t JOIN frazil.namespace USING (namespace_id) WHERE t.name = 't' AND namespace.name = '%s';
        INSERT INTO frazil.head SELECT (jsonb_populate_record(h, jsonb_build_object('table_id', id,
          'metadata_location', h.metadata_location || '-' || i))).*
          FROM made, frazil.head h JOIN frazil.tabular t USING (table_id) JOIN frazil.namespace USING (namespace_id)
          WHERE t.name = 't' AND namespace.name = '%s';
        ANALYZE frazil.tabular; ANALYZE frazil.head""" % (n, space, space))
