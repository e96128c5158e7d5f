"""Namespaces of many tables, made by writing rows: a table at a time would take minutes."""

import subprocess

import pyarrow as pa

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"},
                                                       {"id": 2, "name": "v", "required": False, "type": "string"}]}
OURS = """
    CREATE TEMP TABLE made AS SELECT gen_random_uuid() AS id, i FROM generate_series(2, %(n)d) i;
    INSERT INTO frazil.tabular SELECT (jsonb_populate_record(t, jsonb_build_object('table_id', id,
      'name', 'table_of_orders_' || lpad(i::text, 8, '0'), 'location', t.location || '-' || i))).*
      FROM made, frazil.tabular t JOIN frazil.namespace USING (namespace_id) WHERE t.name = 't' AND namespace.name = '%(space)s';
    INSERT INTO frazil.head SELECT (jsonb_populate_record(h, jsonb_build_object('table_id', id,
      'metadata_location', h.metadata_location || '-' || i))).*
      FROM made, frazil.head h JOIN frazil.tabular t USING (table_id) JOIN frazil.namespace USING (namespace_id)
      WHERE t.name = 't' AND namespace.name = '%(space)s';
    ANALYZE frazil.tabular; ANALYZE frazil.head"""
JDBC = """
    INSERT INTO iceberg_tables SELECT (jsonb_populate_record(t, jsonb_build_object(
      'table_name', 'table_of_orders_' || lpad(i::text, 8, '0'), 'metadata_location', t.metadata_location || '-' || i))).*
      FROM generate_series(2, %(n)d) i, iceberg_tables t WHERE t.table_name = 't' AND t.table_namespace = '%(space)s';
    ANALYZE iceberg_tables"""


def rows(n=3):
    return pa.table({"id": pa.array(range(n), pa.int64()), "v": pa.array(["row"] * n)})


def name_of(i):
    return "table_of_orders_%08d" % i if i > 1 else "t"


def siblings(catalog, space, n):
    """A namespace of n tables of which the first is real. The catalog: a daemon, or anything with rest and conninfo."""
    ours = hasattr(catalog, "settings") or catalog.name == "frazil"
    catalog.rest.want(200, "POST", "/v1/namespaces", {"namespace": [space]})
    catalog.rest.want(200, "POST", "/v1/namespaces/%s/tables" % space, {"name": "t", "schema": SCHEMA})
    conninfo = catalog.settings["pg.conninfo"] if hasattr(catalog, "settings") else catalog.conninfo
    subprocess.run(["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", conninfo, "-c",
                    (OURS if ours else JDBC) % {"n": n, "space": space}], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
