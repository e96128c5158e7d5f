"""The catalog through PyIceberg's own client, given nothing but the address."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException, NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError,
    NoSuchTableError, TableAlreadyExistsError)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.update import AssertCurrentSchemaId
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestampType

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "at", StructType(NestedField(4, "ts", TimestampType(), required=False)), required=False),
    identifier_field_ids=[1])


@pytest.fixture
def catalog(daemon):
    return RestCatalog("t", uri=daemon.uri)


def test_namespaces(catalog):
    catalog.create_namespace("py", {"a": "b"})
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("py")
    catalog.create_namespace(("py", "in.ner /x"))
    assert ("py", "in.ner /x") in catalog.list_namespaces("py")
    assert catalog.namespace_exists("py") and not catalog.namespace_exists("px")
    done = catalog.update_namespace_properties("py", {"a", "z"}, {"c": "d"})
    assert done.removed == ["a"] and done.missing == ["z"] and done.updated == ["c"]
    assert catalog.load_namespace_properties("py") == {"c": "d"}
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("py")
    catalog.drop_namespace(("py", "in.ner /x"))
    catalog.drop_namespace("py")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("py")


def test_tables(catalog):
    catalog.create_namespace("tabs")
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(8), "id_bucket"))
    order = SortOrder(SortField(2, IdentityTransform()))
    made = catalog.create_table("tabs.one", SCHEMA, partition_spec=spec, sort_order=order,
                                properties={"format-version": "3", "k": "v"})
    assert made.format_version == 3 and made.schema().identifier_field_ids == [1]
    assert made.spec().fields[0].name == "id_bucket" and made.properties["k"] == "v"
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("tabs.one", SCHEMA)
    assert catalog.table_exists("tabs.one") and not catalog.table_exists("tabs.two")
    assert catalog.load_table("tabs.one").metadata == made.metadata
    assert catalog.list_tables("tabs") == [("tabs", "one")]
    catalog.create_namespace("tabs2")
    moved = catalog.rename_table("tabs.one", "tabs2.moved")
    assert moved.metadata == made.metadata
    with pytest.raises(NoSuchTableError):
        catalog.load_table("tabs.one")
    catalog.drop_table("tabs2.moved")
    with pytest.raises(NoSuchTableError):
        catalog.drop_table("tabs2.moved")
    back = catalog.register_table("tabs.back", made.metadata_location)
    assert back.metadata == made.metadata
    catalog.purge_table("tabs.back")
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("nobody.t", SCHEMA)


def test_commits(catalog):
    catalog.create_namespace("com")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
    t = catalog.create_table("com.t", rows.schema)
    t.append(rows)
    stale = catalog.load_table("com.t")
    t.append(rows)
    assert catalog.load_table("com.t").scan().to_arrow().num_rows == 6
    with t.update_schema() as u:
        u.add_column("extra", LongType())
    with t.transaction() as x:
        x.set_properties(a="1", b="2")
    assert t.properties["b"] == "2" and t.schema().find_field("extra").field_id == 3
    t.delete("id = 2")
    assert sorted(t.scan().to_arrow()["id"].to_pylist()) == [1, 1, 3, 3]
    t.manage_snapshots().create_tag(t.current_snapshot().snapshot_id, "keep").commit()
    assert "keep" in catalog.load_table("com.t").metadata.refs
    stale.append(rows)  # refused at first; the client loads the table again and repeats
    assert catalog.load_table("com.t").scan().to_arrow().num_rows == 7
    wrong = AssertCurrentSchemaId(**{"current-schema-id": 77})
    with pytest.raises(CommitFailedException, match="current schema changed"):
        catalog.commit_table(catalog.load_table("com.t"), (wrong,), ())


def test_staged(catalog):
    catalog.create_namespace("stg")
    with catalog.create_table_transaction("stg.t", SCHEMA, properties={"format-version": "3"}) as x:
        x.set_properties(made="once")
    t = catalog.load_table("stg.t")
    assert t.properties["made"] == "once" and t.format_version == 3
    first, second = (catalog.create_table_transaction("stg.u", SCHEMA) for _ in range(2))
    first.commit_transaction()
    with pytest.raises((CommitFailedException, TableAlreadyExistsError)):
        second.commit_transaction()


@pytest.mark.parametrize("name", ["with space", "a/b", "100%", "täßle€", "plus+sign", "dots.inside"])
def test_names(catalog, name):
    catalog.create_namespace_if_not_exists("odd")
    made = catalog.create_table(("odd", name), SCHEMA)
    assert catalog.load_table(("odd", name)).metadata == made.metadata
    assert ("odd", name) in catalog.list_tables("odd")
    catalog.drop_table(("odd", name))
