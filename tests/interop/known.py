"""What foreign engines are known to do wrong, each of exactly one version: another version is judged anew."""

# (engine, version, pattern of the table's name, what it does)
FAULTS = [
    ("duckdb", "1.5.5", r"evolved", "applies a vector to the wrong data file when live files lie under two specs"),
    ("polars", "2.1.0", r"fz_v2_(unpartitioned|identity)$", "refuses position delete files that name several data files"),
]

# (engine, version) -> rules of the auditor that its own snapshots break. Printed with their counts, and
# allowed only in tables that this engine wrote to.
FINDINGS = {
    # Java leaves the optional schema-id out of manifest headers; its fast append keeps manifests without live entries.
    ("java", "iceberg 1.11.0"): {"LIST-STALE", "MAN-HEADER"},
    ("iceberg-java", "1.11.0"): {"LIST-STALE", "MAN-HEADER"},
    ("spark", "4.1.4, iceberg 1.12.0"): {"MAN-HEADER"},
    ("trino", "483"): {"DV-FOOTER", "MAN-HEADER"},
    ("flink", "2.1.1"): {"MAN-HEADER"},
    ("spark-4.0", "4.0.5, iceberg 1.11.0"): {"MAN-HEADER"},
    ("spark-3.5", "3.5.9, iceberg 1.11.0"): {"MAN-HEADER"},
    # equality_ids as a list of long; no count of changed partitions; emptied manifests are kept.
    ("pyiceberg", "0.12.0"): {"LIST-STALE", "MAN-HEADER", "MAN-SCHEMA", "SUM-DELTA"},
    # Fields without defaults, vectors with no fields, partitions that a spec has no more, summaries that miscount; a delete
    # that rewrites files is called so.
    ("iceberg-go", "0.7.0"): {"DV-FOOTER", "LIST-SCHEMA", "MAN-PART", "MAN-SCHEMA", "SUM-DELTA", "SUM-OP", "SUM-TOTAL"},
    # first_row_id in manifests of version 2; no count of changed partitions.
    ("iceberg-rust-crate", "0.10.1"): {"MAN-SCHEMA", "SUM-DELTA"},
    # Lists without header keys and with any number as first_row_id of delete manifests, vectors with bounds,
    # Puffin blobs without fields, added-rows above the truth, summaries without most counts.
    ("duckdb", "1.5.5"): {
        "DV-ENTRY", "DV-FOOTER", "ENTRY-STABLE", "FILE-METRICS", "LIN-CHAIN", "LIST-HEADER", "LIST-ROWID", "LIST-SCHEMA",
        "LIST-SEQ", "LIST-STALE", "MAN-ENTRY", "MAN-HEADER", "MAN-PART", "MAN-SCHEMA", "MAN-SNAPID", "SUM-DELTA", "SUM-DIFF",
        "SUM-TOTAL"},
}
