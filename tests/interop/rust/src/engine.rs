//! The Rust library as an engine of the suite: one request a line on standard input, one answer a line on standard
//! output. The judgement is the suite's; here stand the calls of the library, one operation each. Rows are of ints,
//! longs, strings and doubles.
//!
//! usage: frazil-rust URI VERSION

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use futures::TryStreamExt;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::io::LocalFsStorageFactory;
use iceberg::puffin::{APACHE_DATASKETCHES_THETA_V1, Blob, CompressionCodec, PuffinWriter};
use iceberg::spec::{
    BlobMetadata, DataFile, DataFileFormat, FormatVersion, NestedField, NullOrder, PrimitiveType, Schema, StatisticsFile, Type,
};
use iceberg::table::Table;
use iceberg::transaction::{AddColumn, ApplyTransactionAction, Transaction};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use iceberg::{Catalog, CatalogBuilder, NamespaceIdent, TableCreation, TableIdent};
use iceberg_catalog_rest::{REST_CATALOG_PROP_URI, RestCatalogBuilder};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

static FILES: AtomicU32 = AtomicU32::new(0);

fn text<'a>(r: &'a Value, key: &str) -> Result<&'a str, Failure> {
    r[key].as_str().ok_or_else(|| format!("no {key}").into())
}

fn rows(r: &Value, key: &str) -> Result<Vec<Value>, Failure> {
    Ok(r[key].as_array().ok_or_else(|| format!("no {key}"))?.clone())
}

fn namespace(name: &str) -> Result<NamespaceIdent, Failure> {
    Ok(NamespaceIdent::from_strs(name.split('.'))?)
}

fn ident(name: &str) -> Result<TableIdent, Failure> {
    Ok(TableIdent::from_strs(name.split('.'))?)
}

fn schema() -> Result<Schema, Failure> {
    let column = |id, name: &str, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
    Ok(Schema::builder()
        .with_fields([
            column(1, "id", PrimitiveType::Int),
            column(2, "region", PrimitiveType::String),
            column(3, "name", PrimitiveType::String),
            column(4, "score", PrimitiveType::Double),
        ])
        .build()?)
}

fn column(of: &DataType, name: &str, rows: &[Value]) -> Result<ArrayRef, Failure> {
    Ok(match of {
        DataType::Int32 => {
            Arc::new(rows.iter().map(|r| r[name].as_i64().map(|v| v as i32)).collect::<Int32Array>())
        }
        DataType::Int64 => Arc::new(rows.iter().map(|r| r[name].as_i64()).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(rows.iter().map(|r| r[name].as_f64()).collect::<Float64Array>()),
        DataType::Utf8 => Arc::new(rows.iter().map(|r| r[name].as_str()).collect::<StringArray>()),
        other => return Err(format!("{name} is {other}").into()),
    })
}

/// A Parquet file in the table's folder, by the library's own writers.
async fn write(table: &Table, rows: &[Value]) -> Result<Vec<DataFile>, Failure> {
    let schema = table.metadata().current_schema().clone();
    let arrow = Arc::new(schema_to_arrow_schema(&schema)?);
    let columns = arrow.fields().iter().map(|f| column(f.data_type(), f.name(), rows));
    let batch = RecordBatch::try_new(arrow.clone(), columns.collect::<Result<_, _>>()?)?;
    let name = format!("rust-{}-{}", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let rolling = RollingFileWriterBuilder::new_with_default_file_size(
        ParquetWriterBuilder::new(WriterProperties::default(), schema),
        table.file_io().clone(),
        DefaultLocationGenerator::new(table.metadata())?,
        DefaultFileNameGenerator::new(name, None, DataFileFormat::Parquet),
    );
    let mut writer = DataFileWriterBuilder::new(rolling).build(None).await?;
    writer.write(batch).await?;
    Ok(writer.close().await?)
}

fn cell(array: &dyn Array, i: usize) -> Result<Value, Failure> {
    if array.is_null(i) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(i)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(i)),
        DataType::Float64 => json!(array.as_primitive::<Float64Type>().value(i)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(i)),
        other => return Err(format!("a column is {other}").into()),
    })
}

struct Engine {
    catalog: Arc<dyn Catalog>,
    version: String,
}

impl Engine {
    async fn load(&self, r: &Value) -> Result<Table, Failure> {
        Ok(self.catalog.load_table(&ident(text(r, "table")?)?).await?)
    }

    async fn append(&self, table: &Table, rows: &[Value]) -> Result<Table, Failure> {
        let tx = Transaction::new(table);
        let tx = tx.fast_append().add_data_files(write(table, rows).await?).apply(tx)?;
        Ok(tx.commit(self.catalog.as_ref()).await?)
    }

    async fn read(&self, r: &Value) -> Result<Value, Failure> {
        let table = self.load(r).await?;
        let mut scan = table.scan();
        if let Some(id) = r["snapshot"].as_i64() {
            scan = scan.snapshot_id(id);
        }
        let batches: Vec<RecordBatch> = scan.build()?.to_arrow().await?.try_collect().await?;
        let mut out = Vec::new();
        for batch in &batches {
            for i in 0..batch.num_rows() {
                let mut row = serde_json::Map::new();
                for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
                    row.insert(field.name().clone(), cell(array, i)?);
                }
                out.push(Value::Object(row));
            }
        }
        Ok(json!({"rows": out}))
    }

    async fn namespaces(&self, name: &str) -> Result<Value, Failure> {
        let (ns, in1, in2) = (namespace(name)?, namespace(&format!("{name}.in1"))?, namespace(&format!("{name}.in2"))?);
        self.catalog.create_namespace(&ns, HashMap::from([("note".to_string(), "ü".to_string())])).await?;
        self.catalog.create_namespace(&in1, HashMap::new()).await?;
        self.catalog.create_namespace(&in2, HashMap::new()).await?;
        let again = self.catalog.create_namespace(&ns, HashMap::new()).await.err().map(|e| e.kind().to_string());
        self.catalog.drop_namespace(&in2).await?;
        let gone = !self.catalog.namespace_exists(&in2).await?;
        let mut names = Vec::new();
        for n in self.catalog.list_namespaces(Some(&ns)).await? {
            names.push(n.to_url_string().split('\u{1f}').map(str::to_string).collect::<Vec<_>>());
        }
        Ok(json!([again, gone, names, self.catalog.get_namespace(&ns).await?.properties()]))
    }

    async fn create(&self, r: &Value) -> Result<Value, Failure> {
        let name = ident(text(r, "table")?)?;
        let given = r["properties"].as_object().cloned().unwrap_or_default();
        let properties = given.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_string()));
        let creation = TableCreation::builder()
            .name(name.name().to_string())
            .schema(schema()?)
            .properties(properties)
            .build();
        match self.catalog.create_table(name.namespace(), creation).await {
            Ok(table) => Ok(json!(table.metadata().location())),
            Err(e) if e.kind() == iceberg::ErrorKind::TableAlreadyExists => Ok(json!("exists")),
            Err(e) => Err(e.into()),
        }
    }

    /// What one transaction over a table may hold: a column more, one less; properties; an order; rows.
    async fn change(&self, r: &Value) -> Result<Value, Failure> {
        let table = self.load(r).await?;
        let mut tx = Transaction::new(&table);
        if let Some(version) = r["version"].as_u64() {
            let to = if version == 3 { FormatVersion::V3 } else { FormatVersion::V2 };
            tx = tx.upgrade_table_version().set_format_version(to).apply(tx)?;
        }
        if r["add"].is_string() || r["remove"].is_string() {
            let mut action = tx.update_schema();
            if let Some(name) = r["add"].as_str() {
                action = action.add_column(AddColumn::optional(name, Type::Primitive(PrimitiveType::Long)));
            }
            if let Some(name) = r["remove"].as_str() {
                action = action.delete_column(name);
            }
            tx = action.apply(tx)?;
        }
        if r["set"].is_object() || r["unset"].is_array() {
            let mut action = tx.update_table_properties();
            for (k, v) in r["set"].as_object().cloned().unwrap_or_default() {
                action = action.set(k, v.as_str().unwrap_or_default().to_string());
            }
            for k in r["unset"].as_array().cloned().unwrap_or_default() {
                action = action.remove(k.as_str().unwrap_or_default().to_string());
            }
            tx = action.apply(tx)?;
        }
        if let Some(name) = r["order"].as_str() {
            tx = tx.replace_sort_order().desc(name, NullOrder::Last).apply(tx)?;
        }
        if r["rows"].is_array() {
            let files = write(&table, &rows(r, "rows")?).await?;
            tx = tx.fast_append().add_data_files(files).apply(tx)?;
        }
        if let Some(keep) = r["expire"].as_u64() {
            let action = tx.expire_snapshots().expire_older_than_ms(i64::MAX).retain_last(keep as usize);
            tx = action.apply(tx)?;
        }
        let done = tx.commit(self.catalog.as_ref()).await?;
        Ok(json!(done.metadata_location()))
    }

    async fn inspect(&self, r: &Value) -> Result<Value, Failure> {
        let table = self.load(r).await?;
        let (mut snapshots, mut manifests) = (0, 0);
        let found: Vec<RecordBatch> = table.inspect().snapshots().scan().await?.try_collect().await?;
        found.iter().for_each(|b| snapshots += b.num_rows());
        let found: Vec<RecordBatch> = table.inspect().manifests().scan().await?.try_collect().await?;
        found.iter().for_each(|b| manifests += b.num_rows());
        Ok(json!({"snapshots": snapshots, "manifests": manifests}))
    }

    /// A Puffin file with a blob of one column, and the statistics that name it.
    async fn statistics(&self, r: &Value) -> Result<Value, Failure> {
        let table = self.load(r).await?;
        let id = table.metadata().current_snapshot().ok_or("no snapshot")?.snapshot_id();
        let path = format!("{}/metadata/counted.puffin", table.metadata().location());
        let output = table.file_io().new_output(&path)?;
        let properties = HashMap::from([("ndv".to_string(), "5".to_string())]);
        let blob = Blob::builder()
            .r#type(APACHE_DATASKETCHES_THETA_V1.to_string())
            .fields(vec![1])
            .snapshot_id(id)
            .sequence_number(1)
            .data(vec![7; 100])
            .properties(properties.clone())
            .build();
        let mut writer = PuffinWriter::new(&output, HashMap::new(), false).await?;
        writer.add(blob, CompressionCodec::None).await?;
        writer.close().await?;
        let size = output.to_input_file().metadata().await?.size as i64;
        let named = BlobMetadata {
            r#type: APACHE_DATASKETCHES_THETA_V1.to_string(),
            snapshot_id: id,
            sequence_number: 1,
            fields: vec![1],
            properties,
        };
        let tx = Transaction::new(&table);
        let action = tx.update_statistics().set_statistics(StatisticsFile {
            snapshot_id: id,
            statistics_path: path,
            file_size_in_bytes: size,
            file_footer_size_in_bytes: size - 104, // behind the magic number and the blob
            key_metadata: None,
            blob_metadata: vec![named],
        });
        action.apply(tx)?.commit(self.catalog.as_ref()).await?;
        Ok(Value::Null)
    }

    async fn answer(&self, r: &Value) -> Result<Value, Failure> {
        let catalog = self.catalog.as_ref();
        Ok(match text(r, "op")? {
            "hello" => json!({"engine": "iceberg-rust", "version": self.version}),
            "read" => self.read(r).await?,
            "namespace" => self.namespaces(text(r, "name")?).await?,
            "create" => self.create(r).await?,
            "list" => {
                let found = catalog.list_tables(&namespace(text(r, "name")?)?).await?;
                json!(found.iter().map(|t| t.name()).collect::<Vec<_>>())
            }
            "rename" => {
                let (from, to) = (ident(text(r, "table")?)?, ident(text(r, "to")?)?);
                catalog.rename_table(&from, &to).await?;
                json!(catalog.table_exists(&to).await? && !catalog.table_exists(&from).await?)
            }
            "drop" => {
                catalog.drop_table(&ident(text(r, "table")?)?).await?;
                Value::Null
            }
            "purge" => {
                catalog.purge_table(&ident(text(r, "table")?)?).await?;
                Value::Null
            }
            "register" => {
                let table = catalog.register_table(&ident(text(r, "table")?)?, text(r, "location")?.to_string()).await?;
                json!(table.metadata().uuid().to_string())
            }
            "append" => {
                let table = self.load(r).await?;
                self.append(&table, &rows(r, "rows")?).await?;
                Value::Null
            }
            "change" => self.change(r).await?,
            "statistics" => self.statistics(r).await?,
            "inspect" => self.inspect(r).await?,
            // An append by a table that was loaded before another append: the library asks again.
            "conflict" => {
                let (mine, other) = (self.load(r).await?, self.load(r).await?);
                self.append(&other, &rows(r, "more")?).await?;
                self.append(&mine, &rows(r, "rows")?).await?;
                Value::Null
            }
            other => return Err(format!("unknown request {other}").into()),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let uri = std::env::args().nth(1).ok_or("usage: frazil-rust URI VERSION")?;
    let version = std::env::args().nth(2).ok_or("usage: frazil-rust URI VERSION")?;
    let catalog = RestCatalogBuilder::default()
        .with_storage_factory(Arc::new(LocalFsStorageFactory))
        .load("ice", HashMap::from([(REST_CATALOG_PROP_URI.to_string(), uri)]))
        .await?;
    let engine = Engine { catalog: Arc::new(catalog), version };
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = match engine.answer(&request).await {
            Ok(v) => json!({"ok": v}),
            Err(e) => json!({"error": e.to_string()}),
        };
        println!("{answer}");
    }
    Ok(())
}
