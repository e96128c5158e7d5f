"""Where unmodified clients end, each of exactly one version: another version is judged anew."""

# (client, version): {feature: (pattern of what it says, what README says)}. The suite fails when it says something else,
# and when the step works after all.
KEPT = ("files are left", "the files are kept: frazil does not purge yet")
LIMITS = {
    ("pyiceberg", "0.12.0"): {
        "lineage": ("no row lineage columns", "reads no row-id columns"),
        "v3": ("Cannot write manifest for table version: 3", "writes no files of version 3"),
        "purge": KEPT,
        "upgrade": ("Unsupported table format version: 3", "upgrades to version 2 at most"),
    },
    ("duckdb", "1.5.5"): {
        "rtas": ("CREATE OR REPLACE not supported", "says that it does not support `CREATE OR REPLACE`"),
        "properties": ("Alter table type not supported: SET_SORTED_BY", "properties work, sort orders are not supported"),
        "purge": KEPT,
        # added-rows 0 beside manifests that get the ids of rows of before: others would get the same ids again.
        "upgrade": ("rows of manifest lie outside the snapshot's row ids",
                    "upgrades, but its next snapshot gives row ids that it does not count, which is refused"),
        "view": ("Not implemented Error: Create View", "says that views are not implemented"),
    },
    ("iceberg-rust", "0.11.0"): {
        "lineage": ("no row lineage columns", "reads no row-id columns"),
    },
}

# client: {feature: what README says}. There is no step, for the client has nothing of the kind; None: any feature.
MAINTENANCE = "no such maintenance"
REFS = "no statement for branches and tags"
LACKS = {
    "spark": {"transaction": "no transactions in its SQL", "tables": "no transactions in its SQL"},
    "pyiceberg": {"rtas": "no call that replaces a table", "update": "no call that updates by a condition (`upsert` by key)",
                  "rewrite": MAINTENANCE, "manifests": MAINTENANCE, "orphans": MAINTENANCE, "tables": "its transactions are of one table"},
    "duckdb": {"branch": REFS, "tag": REFS, "rollback": "no statement that moves a table back", "rewrite": MAINTENANCE,
               "manifests": MAINTENANCE, "expire": MAINTENANCE, "orphans": MAINTENANCE, "statistics": "writes no statistics files",
               "register": "no statement that registers a table"},
    "iceberg-rust": {None: "the Python package `pyiceberg-core` reads only"},
}

# client: {feature: what README says}. It works, with this said.
REMARKS = {
    "duckdb": {"ctas": "on `file://` with the `ATTACH` option `STAGE_CREATE_TABLES false`: it makes no folders for a staged table",
               "purge": "with the `ATTACH` option `PURGE_REQUESTED true`"},
}
