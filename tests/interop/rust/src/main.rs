//! The Rust library's view of tables, as an oracle beside the readers: metadata, manifest lists and manifests by its
//! own parsers. Reads names of tables on standard input, asks the catalog for each, and writes one JSON line a table:
//! format version, next row id, and for every snapshot its row range, its data manifests with theirs and the
//! files with theirs. What it cannot load or parse is {"error": text}.
//!
//! usage: frazil-oracle URI

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{ManifestContentType, ManifestStatus};
use iceberg::{Catalog, CatalogBuilder, NamespaceIdent, TableIdent};
use iceberg_catalog_rest::{REST_CATALOG_PROP_URI, RestCatalogBuilder};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

async fn table(catalog: &dyn Catalog, name: &str) -> Result<Value, Failure> {
    let (namespace, table) = name.rsplit_once('.').ok_or("no namespace")?;
    let ident = TableIdent::new(NamespaceIdent::new(namespace.to_string()), table.to_string());
    let loaded = catalog.load_table(&ident).await?;
    let metadata = loaded.metadata();
    let mut snapshots = Vec::new();
    for snapshot in metadata.snapshots() {
        let list = loaded.manifest_list_reader(snapshot).load().await?;
        let mut manifests = Vec::new();
        for file in list.entries() {
            let manifest = file.load_manifest(loaded.file_io()).await?;
            let mut files = Vec::new();
            for entry in manifest.entries() {
                let data = entry.data_file();
                files.push(json!({
                    "path": data.file_path(), "live": entry.status() != ManifestStatus::Deleted,
                    "added": entry.status() == ManifestStatus::Added, "rows": data.record_count(),
                    "first-row-id": data.first_row_id(), "referenced": data.referenced_data_file(),
                    "sequence-number": entry.sequence_number(),
                }));
            }
            manifests.push(json!({
                "path": file.manifest_path, "data": file.content == ManifestContentType::Data,
                "first-row-id": file.first_row_id, "sequence-number": file.sequence_number,
                "rows": file.added_rows_count.unwrap_or(0) + file.existing_rows_count.unwrap_or(0),
                "files": files,
            }));
        }
        snapshots.push(json!({
            "snapshot-id": snapshot.snapshot_id(), "parent": snapshot.parent_snapshot_id(), "sequence-number": snapshot.sequence_number(),
            "first-row-id": snapshot.row_range().map(|r| r.0), "added-rows": snapshot.row_range().map(|r| r.1),
            "manifests": manifests,
        }));
    }
    Ok(json!({
        "format-version": metadata.format_version() as u8, "next-row-id": metadata.next_row_id(),
        "last-sequence-number": metadata.last_sequence_number(),
        "current-snapshot-id": metadata.current_snapshot_id(), "snapshots": snapshots,
    }))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let uri = std::env::args().nth(1).ok_or("usage: frazil-oracle URI")?;
    let catalog = RestCatalogBuilder::default()
        .with_storage_factory(Arc::new(LocalFsStorageFactory))
        .load("oracle", HashMap::from([(REST_CATALOG_PROP_URI.to_string(), uri)]))
        .await?;
    for line in std::io::stdin().lock().lines() {
        let name = line?;
        let answer = table(&catalog, &name).await.unwrap_or_else(|e| json!({"error": e.to_string()}));
        println!("{}", json!({"table": name, "answer": answer}));
    }
    Ok(())
}
