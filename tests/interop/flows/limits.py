"""Where unmodified clients end, each of exactly one version: another version is judged anew."""

# (client, version): {feature: (pattern of what it says, what README says)}. The suite fails when it says something else,
# and when the step works after all.
# Its new manifests leave first_row_id out of the entries, so that the rows would get other ids; the daemon of the suite refuses.
RENUMBERED = ("row ids changed of", "of version 3 its new manifests lose the row ids (1.12 keeps them)")
LIMITS = {
    ("pyiceberg", "0.12.0"): {
        "lineage": ("no row lineage columns", "reads no row-id columns"),
        "v3": ("Cannot write manifest for table version: 3", "writes no files of version 3"),
        "upgrade": ("Unsupported table format version: 3", "upgrades to version 2 at most"),
    },
    ("duckdb", "1.5.5"): {
        "rtas": ("CREATE OR REPLACE not supported", "says that it does not support `CREATE OR REPLACE`"),
        "properties": ("Alter table type not supported: SET_SORTED_BY", "properties work, sort orders are not supported"),
        # added-rows 0 beside manifests that get the ids of rows of before: others would get the same ids again.
        "upgrade": ("rows of manifest lie outside the snapshot's row ids",
                    "upgrades, but its next snapshot gives row ids that it does not count, which is refused"),
        "view": ("Not implemented Error: Create View", "says that views are not implemented"),
    },
    ("flink", "2.1.1"): {
        "delete": ("has not yet implemented .*SupportsRowLevelDelete", "its connector deletes and updates no rows by SQL"),
        "update": ("has not yet implemented .*SupportsRowLevelUpdate", "its connector deletes and updates no rows by SQL"),
        "view": ("table should be resolved", "its connector makes no views"),
        "purge": ("files are left", "its `DROP TABLE` does not ask for a purge: the files stay"),
    },
    ("spark-4.0", "4.0.5, iceberg 1.11.0"): {"manifests": RENUMBERED},
    ("spark-3.5", "3.5.9, iceberg 1.11.0"): {"manifests": RENUMBERED},
    ("trino", "483"): {
        "branch": ("does not support creating branches", "says that it does not support creating branches"),
    },
    ("iceberg-go", "0.7.0"): {
        "upgrade": ("read by duckdb: 24 rows, should be 23; not wanted: .*\"id\": 3,.*; missing: \\[\\]",
                    "upgrades, but its vector over a file with position deletes does not take these in: their rows come back"),
    },
    ("iceberg-rust-crate", "0.10.1"): {
        # It takes the Puffin file for one of position deletes; 0.11, as the Python package has it, reads them.
        "read": ("Parquet error: Invalid Parquet file", "reads no deletion vectors"),
    },
    ("iceberg-rust", "0.11.0"): {
        "lineage": ("no row lineage columns", "reads no row-id columns"),
    },
}

# client: {feature: what README says}. There is no step, for the client has nothing of the kind; None: any feature.
MAINTENANCE = "no such maintenance by SQL or calls"
REFS = "no statement for branches and tags"
LACKS = {
    "spark": {"transaction": "no transactions in its SQL", "tables": "no transactions in its SQL"},
    "pyiceberg": {"rtas": "no call that replaces a table", "update": "no call that updates by a condition (`upsert` by key)",
                  "rewrite": MAINTENANCE, "manifests": MAINTENANCE, "orphans": MAINTENANCE, "tables": "its transactions are of one table"},
    "duckdb": {"branch": REFS, "tag": REFS, "rollback": "no statement that moves a table back", "rewrite": MAINTENANCE,
               "manifests": MAINTENANCE, "expire": MAINTENANCE, "orphans": MAINTENANCE, "statistics": "writes no statistics files",
               "register": "no statement that registers a table"},
    "trino": {"overwrite": "no statement of its own", "tag": "no statement for tags", "transaction": "no transactions in its SQL",
              "tables": "no transactions in its SQL", "conflict": "one statement at a time here"},
    "flink": {"rtas": "no statement of its connector that replaces a table", "merge": "no such statement", "lineage": "reads no row-id columns",
              "rollback": "no statement that moves a table back", "spec": "no statement that changes the partitions", "rewrite": MAINTENANCE,
              "manifests": MAINTENANCE, "expire": MAINTENANCE, "orphans": MAINTENANCE, "statistics": "writes no statistics files",
              "transaction": "no transactions in its SQL", "tables": "no transactions in its SQL", "conflict": "one statement at a time here",
              "register": "no statement that registers a table"},
    "spark-4.0": {"transaction": "no transactions in its SQL", "tables": "no transactions in its SQL"},
    "spark-3.5": {"transaction": "no transactions in its SQL", "tables": "no transactions in its SQL"},
    "iceberg-go": {"ctas": "no call that creates a table with rows", "rtas": "no call that replaces a table", "update": "no call that updates",
                   "merge": "no call that updates"},
    "iceberg-java": {None: "not tried here: Spark works through this library"},
    "iceberg-rust": {None: "the Python package `pyiceberg-core` reads only"},
    "iceberg-rust-crate": {
        "ctas": "no call that creates a table with rows", "rtas": "no call that replaces a table", "overwrite": "it appends only",
        "delete": "it appends only", "update": "it appends only", "merge": "it appends only", "lineage": "reads no row-id columns",
        "branch": "no call for branches and tags", "tag": "no call for branches and tags", "rollback": "no call that moves a table back",
        "spec": "no call that changes the partitions", "view": "no calls for views", "rewrite": MAINTENANCE, "manifests": MAINTENANCE,
        "orphans": MAINTENANCE, "tables": "its transactions are of one table"},
}

# client: {feature: what README says}. It works, with this said.
REMARKS = {
    "duckdb": {"ctas": "on `file://` with the `ATTACH` option `STAGE_CREATE_TABLES false`: it makes no folders for a staged table",
               "purge": "with the `ATTACH` option `PURGE_REQUESTED true`"},
    "iceberg-rust-crate": {"namespace": "properties at creation only", "v3": "it appends only", "travel": "by snapshot only"},
}
