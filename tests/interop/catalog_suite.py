"""What the foreign clients do with a catalog, unmodified and given only its URI: namespaces, tables, commits.

Each function drives one client, checks what it answers, and returns the tables that it leaves behind as
models, for all readers to compare.
"""

from model import Table

COLUMNS = "(id INT, region STRING, name STRING, score DOUBLE)"
REGIONS = ("eu", "us", "ap")
V3 = ("'format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
      "'write.merge.mode'='merge-on-read', 'write.distribution-mode'='none'")


class Failed(Exception):
    pass


def check(ok, *what):
    if not ok:
        raise Failed(" ".join(str(w) for w in what))


def row(i, name=None, region=None):
    return {"id": i, "region": region or REGIONS[i % 3], "name": name or "n%04d" % i, "score": i / 4}


def span(a, b):
    return [row(i) for i in range(a, b)]


def spark_rows(a, b):
    """span(a, b) as a query whose result is one file."""
    return ("SELECT /*+ COALESCE(1) */ id, element_at(array('eu','us','ap'), cast(id % 3 as int) + 1) AS region, "
            "concat('n', lpad(cast(id AS string), 4, '0')) AS name, cast(id AS double) / 4 AS score "
            "FROM (SELECT explode(sequence({}, {})) AS id)".format(a, b - 1))


def duck_rows(a, b):
    return ("SELECT i::INT AS id, ['eu','us','ap'][(i % 3) + 1] AS region, 'n' || lpad(i::VARCHAR, 4, '0') AS name, "
            "i / 4.0::DOUBLE AS score FROM range({}, {}) r(i)".format(a, b))


# ---- PyIceberg: V2 tables with data, an empty V3 table
def pyiceberg(engine, ns):
    engine.run(f"""
schema = pa.schema([("id", pa.int32()), ("region", pa.string()), ("name", pa.string()), ("score", pa.float64())])
catalog.create_namespace("{ns}", {{"owner": "tests", "note": "ü"}})
catalog.create_namespace(("{ns}", "inner"))
t = catalog.create_table("{ns}.py_v2", schema=schema)
v3 = catalog.create_table("{ns}.py_v3", schema=schema, properties={{"format-version": "3"}})
assert v3.metadata.format_version == 3, v3.metadata.format_version
""")
    props = engine.run(f'result = dict(catalog.load_namespace_properties("{ns}"))')
    check(props.get("owner") == "tests" and props.get("note") == "ü", "namespace properties", props)
    got = engine.run(f'''
catalog.update_namespace_properties("{ns}", removals={{"note"}}, updates={{"more": "1"}})
p = catalog.load_namespace_properties("{ns}")
result = [sorted(map(list, catalog.list_namespaces("{ns}"))), sorted(map(list, catalog.list_tables("{ns}"))),
          catalog.namespace_exists("{ns}"), catalog.namespace_exists("{ns}_not"), catalog.table_exists("{ns}.py_v2"),
          "note" in p, p.get("more")]''')
    check(got == [[[ns, "inner"]], [[ns, "py_v2"], [ns, "py_v3"]], True, False, True, False, "1"], "listings", got)
    model = Table(f"{ns}.py_v2", lineage=False)
    for a, b in ((0, 20), (20, 45)):
        engine.run(f"""
t = table("{ns}.py_v2")
t.append(pa.Table.from_pylist({span(a, b)!r}, schema=t.schema().as_arrow()))""")
        model.sql_insert("pyiceberg", span(a, b))
    engine.run(f'table("{ns}.py_v2").delete(expr.EqualTo("region", "ap"))')
    model.sql_delete("pyiceberg", lambda r: r["region"] == "ap")
    engine.run(f"""
t = table("{ns}.py_v2")
t.overwrite(pa.Table.from_pylist({[row(7, "over")]!r}, schema=t.schema().as_arrow()), expr.EqualTo("id", 7))""")
    model.sql_update("pyiceberg", lambda r: r["id"] == 7, lambda r: {"name": "over"})
    # Metadata-only commits, a rename, a transaction over schema and properties.
    got = engine.run(f"""
from pyiceberg.types import StringType
t = table("{ns}.py_v3")
with t.update_schema() as u: u.add_column("extra", StringType())
with t.transaction() as tx: tx.set_properties({{"a": "b"}})
catalog.rename_table("{ns}.py_v3", "{ns}.py_renamed")
t = table("{ns}.py_renamed")
result = [t.schema().find_field("extra").field_id, t.properties.get("a"), catalog.table_exists("{ns}.py_v3")]
catalog.drop_namespace(("{ns}", "inner"))""")
    check(got == [5, "b", False], "renamed table", got)
    # A lost race: two handles of one table, the second's requirement fails and it retries or says so.
    got = engine.run(f"""
from pyiceberg.types import StringType
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, NamespaceAlreadyExistsError, \\
    TableAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError
said = []
def told(kind, f):
    try:
        f()
        said.append("nothing")
    except kind: said.append(kind.__name__)
a = table("{ns}.py_renamed"); b = table("{ns}.py_renamed")
with a.update_schema() as u: u.add_column("late_a", StringType())
def second():
    with b.update_schema() as u: u.add_column("late_b", StringType())
told(CommitFailedException, second)
told(NoSuchTableError, lambda: table("{ns}.absent"))
told(NamespaceAlreadyExistsError, lambda: catalog.create_namespace("{ns}"))
told(TableAlreadyExistsError, lambda: catalog.create_table("{ns}.py_v2", schema=a.schema()))
told(NamespaceNotEmptyError, lambda: catalog.drop_namespace("{ns}"))
told(NoSuchNamespaceError, lambda: catalog.drop_namespace("{ns}_absent"))
catalog.drop_table("{ns}.py_renamed")
result = said""")
    check("nothing" not in got and len(got) == 6, "errors by type", got)
    return [model]


# ---- Spark: V3 tables with deletion vectors, partitions, evolution
def spark_dml(engine, t, model):
    """Deletes, an update and a merge: each adds or replaces vectors."""
    engine.sql(f"DELETE FROM ice.{t} WHERE id % 10 = 3")
    model.sql_delete("spark", lambda r: r["id"] % 10 == 3)
    engine.sql(f"DELETE FROM ice.{t} WHERE id % 10 = 4")
    model.sql_delete("spark", lambda r: r["id"] % 10 == 4)
    engine.sql(f"UPDATE ice.{t} SET name = concat('u', name) WHERE id % 17 = 0")
    model.sql_update("spark", lambda r: r["id"] % 17 == 0, lambda r: {"name": "u" + r["name"]})
    engine.sql(f"""MERGE INTO ice.{t} t USING (SELECT explode(array(5, 7, 1001)) AS id) s ON t.id = s.id
        WHEN MATCHED AND s.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, region, name, score) VALUES (s.id, 'eu', 'new', 0)""")
    model.sql_delete("spark", lambda r: r["id"] == 7)
    model.sql_update("spark", lambda r: r["id"] == 5, lambda r: {"name": "merged"})
    model.sql_insert("spark", [{"id": 1001, "region": "eu", "name": "new", "score": 0.0}])


def spark(engine, ns):
    out = []
    engine.sql(f"CREATE NAMESPACE ice.{ns}", f"CREATE NAMESPACE ice.{ns}.deep")
    check([r["c0"] for r in engine.sql(f"SHOW NAMESPACES IN ice.{ns}")] == [f"{ns}.deep"], "SHOW NAMESPACES")
    for name, parts in (("sp_plain", ""), ("sp_parts", "PARTITIONED BY (region, bucket(4, id))")):
        t = f"{ns}.{name}"
        model = Table(t)
        engine.sql(f"CREATE TABLE ice.{t} {COLUMNS} USING iceberg {parts} TBLPROPERTIES ({V3})")
        for a in (0, 50):
            engine.sql(f"INSERT INTO ice.{t} {spark_rows(a, a + 50)}")
            model.sql_insert("spark", span(a, a + 50))
        spark_dml(engine, t, model)
        out.append(model)
    t = f"{ns}.sp_evolved"
    model = Table(t)
    engine.sql(f"CREATE TABLE ice.{t} {COLUMNS} USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({V3})",
               f"INSERT INTO ice.{t} {spark_rows(0, 30)}", f"DELETE FROM ice.{t} WHERE id % 10 = 3",
               f"ALTER TABLE ice.{t} REPLACE PARTITION FIELD region WITH bucket(2, id)",
               f"INSERT INTO ice.{t} {spark_rows(30, 60)}", f"DELETE FROM ice.{t} WHERE id % 10 = 4",
               f"ALTER TABLE ice.{t} ALTER COLUMN id TYPE BIGINT", f"ALTER TABLE ice.{t} ADD COLUMN note STRING",
               f"UPDATE ice.{t} SET note = 'late' WHERE id % 20 = 5")
    model.columns += ("note",)
    model.sql_insert("spark", [{**r, "note": None} for r in span(0, 60) if r["id"] % 10 != 4 and not (
        r["id"] % 10 == 3 and r["id"] < 30)])
    model.sql_update("spark", lambda r: r["id"] % 20 == 5, lambda r: {"note": "late"})
    out.append(model)
    check({r["c1"] for r in engine.sql(f"SHOW TABLES IN ice.{ns}")} >= {"sp_plain", "sp_parts", "sp_evolved"}, "SHOW TABLES")
    engine.sql(f"CREATE TABLE ice.{ns}.sp_ctas USING iceberg TBLPROPERTIES ({V3}) AS {spark_rows(0, 7)}",
               f"ALTER TABLE ice.{ns}.sp_ctas RENAME TO {ns}.deep.sp_moved")
    rows = engine.sql(f"SELECT id, _row_id FROM ice.{ns}.deep.sp_moved ORDER BY id")
    check([r["c0"] for r in rows] == list(range(7)) and sorted(r["c1"] for r in rows) == list(range(7)), "CTAS, rename", rows)
    rows = engine.sql(f"SELECT operation FROM ice.{ns}.sp_plain.snapshots ORDER BY committed_at")
    check(len(rows) == 6, "snapshots table", rows)
    engine.sql(f"DROP TABLE ice.{ns}.deep.sp_moved", f"DROP NAMESPACE ice.{ns}.deep")
    return out


def audit_base(engine, ns):
    """The table whose corrupted copies prove the auditor: partitions of every kind of change, vectors, a rewrite."""
    t = f"{ns}.sp_audit_base"
    cols = ("CAST(id AS BIGINT) AS id, concat('c', id % 3) AS cat, timestamp_seconds(1700000000 + id * 3600) AS ts, "
            "cast(id * 1.5 AS decimal(10,2)) AS d, CAST(id AS BIGINT) AS n")

    def insert(lo, hi, more=""):
        return f"INSERT INTO ice.{t} SELECT /*+ REPARTITION(1) */ {cols}{more} FROM range({lo}, {hi}, 1, 1)"

    engine.sql(
        f"CREATE TABLE ice.{t} (id BIGINT, cat STRING, ts TIMESTAMP, d DECIMAL(10,2), n BIGINT) USING iceberg "
        f"PARTITIONED BY (cat, bucket(2, id)) TBLPROPERTIES ({V3.replace(', ' + repr('write.distribution-mode') + '=' + repr('none'), '')})",
        insert(0, 60), f"DELETE FROM ice.{t} WHERE id % 7 = 1", f"ALTER TABLE ice.{t} ADD PARTITION FIELD days(ts)",
        f"ALTER TABLE ice.{t} ADD COLUMN extra INT", insert(60, 90, ", 1 AS extra"), f"DELETE FROM ice.{t} WHERE id % 5 = 2",
        f"ALTER TABLE ice.{t} DROP PARTITION FIELD cat", f"ALTER TABLE ice.{t} RENAME COLUMN n TO m",
        f"ALTER TABLE ice.{t} DROP COLUMN extra", insert(90, 130), f"UPDATE ice.{t} SET m = -1 WHERE id % 9 = 0",
        f"DELETE FROM ice.{t} WHERE cat = 'c1' AND id < 20", f"INSERT INTO ice.{t} SELECT 999, null, null, null, null",
        f"DELETE FROM ice.{t} WHERE id IN (61, 91)",
        f"CALL ice.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'), where => 'id < 60')",
        f"DELETE FROM ice.{t} WHERE id IN (2, 63, 93)")
    return t


# ---- DuckDB: staged creates, transactions/commit, vectors of its own writer
def duckdb(engine, ns):
    engine.sql(f'CREATE SCHEMA ice."{ns}"')
    t, other = f'ice."{ns}".dk_plain', f'ice."{ns}".dk_other'
    model, second = Table(f"{ns}.dk_plain"), Table(f"{ns}.dk_other")
    engine.sql(f"CREATE TABLE {t} (id INT, region VARCHAR, name VARCHAR, score DOUBLE) WITH ('format-version' = '3')",
               f"CREATE TABLE {other} (id INT, region VARCHAR, name VARCHAR, score DOUBLE) WITH ('format-version' = '3')")
    for a in (0, 40):
        engine.sql(f"INSERT INTO {t} {duck_rows(a, a + 40)}")
        model.sql_insert("duckdb", span(a, a + 40))
    engine.sql(f"DELETE FROM {t} WHERE id % 10 = 3", f"DELETE FROM {t} WHERE id % 10 = 4",
               f"UPDATE {t} SET name = 'upd' WHERE id % 17 = 0")
    model.sql_delete("duckdb", lambda r: r["id"] % 10 in (3, 4))
    model.sql_update("duckdb", lambda r: r["id"] % 17 == 0, lambda r: {"name": "upd"})
    engine.sql(f"MERGE INTO {t} t USING (SELECT 7 AS id UNION ALL SELECT 300) s ON t.id = s.id WHEN MATCHED THEN UPDATE "
               f"SET name = 'mrg' WHEN NOT MATCHED THEN INSERT (id, region, name, score) VALUES (s.id, 'dk', 'ins', 0)")
    model.sql_update("duckdb", lambda r: r["id"] == 7, lambda r: {"name": "mrg"})
    model.sql_insert("duckdb", [{"id": 300, "region": "dk", "name": "ins", "score": 0.0}])
    # Two tables in one commit.
    engine.sql("BEGIN", f"INSERT INTO {t} {duck_rows(400, 405)}", f"INSERT INTO {other} {duck_rows(0, 9)}", "COMMIT")
    model.sql_insert("duckdb", span(400, 405))
    second.sql_insert("duckdb", span(0, 9))
    rows = engine.sql(f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{ns}'")
    check({r["c0"] for r in rows} >= {"dk_plain", "dk_other"}, "listing", rows)
    engine.sql(f"CREATE TABLE ice.\"{ns}\".dk_gone (id INT)", f"DROP TABLE ice.\"{ns}\".dk_gone")
    return [model, second]


# ---- one client continues what another left
def across(spark_engine, duck_engine, ns, tables):
    """DuckDB changes a table of Spark's, Spark one of DuckDB's."""
    by_name = {t.name.rpartition(".")[2]: t for t in tables}
    model = by_name["sp_plain"]
    duck_engine.sql(f'DELETE FROM ice."{ns}".sp_plain WHERE id % 10 = 6',
                    f"UPDATE ice.\"{ns}\".sp_plain SET name = 'dk' WHERE id = 8",
                    f'INSERT INTO ice."{ns}".sp_plain {duck_rows(2000, 2005)}')
    model.sql_delete("duckdb", lambda r: r["id"] % 10 == 6)
    model.sql_update("duckdb", lambda r: r["id"] == 8, lambda r: {"name": "dk"})
    model.sql_insert("duckdb", span(2000, 2005))
    model = by_name.get("dk_plain")
    if model:
        dk = model.name.rpartition(".")[0]
        spark_engine.sql(f"DELETE FROM ice.{dk}.dk_plain WHERE id % 10 = 6",
                         f"UPDATE ice.{dk}.dk_plain SET name = 'sp' WHERE id = 8",
                         f"INSERT INTO ice.{dk}.dk_plain {spark_rows(2000, 2005)}")
        model.sql_delete("spark", lambda r: r["id"] % 10 == 6)
        model.sql_update("spark", lambda r: r["id"] == 8, lambda r: {"name": "sp"})
        model.sql_insert("spark", span(2000, 2005))
