import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.view.View;

/**
 * The Java library as an engine of the suite: its calls, one operation each; one request a line on
 * standard input, one answer a line on standard output. The rows are of ints, strings and doubles.
 *
 * <pre>JavaEngine URI VERSION</pre>
 */
public class JavaEngine {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.optional(1, "id", Types.IntegerType.get()),
          Types.NestedField.optional(2, "region", Types.StringType.get()),
          Types.NestedField.optional(3, "name", Types.StringType.get()),
          Types.NestedField.optional(4, "score", Types.DoubleType.get()));

  private final RESTCatalog catalog;
  private final String version;

  private JavaEngine(String uri, String version) {
    Map<String, String> properties = Map.of("type", "rest", "uri", uri);
    this.catalog =
        (RESTCatalog) CatalogUtil.buildIcebergCatalog("ice", properties, new Configuration());
    this.version = version;
  }

  private static TableIdentifier ident(JsonNode name) {
    return TableIdentifier.parse(name.asText());
  }

  private Table load(JsonNode name) {
    return catalog.loadTable(ident(name));
  }

  private static DataFile write(Table table, JsonNode rows) throws Exception {
    DataWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .dataSchema(table.schema())
            .dataFileFormat(FileFormat.PARQUET)
            .build()
            .newDataWriter(
                OutputFileFactory.builderFor(table, 1, 1)
                    .operationId(UUID.randomUUID().toString())
                    .format(FileFormat.PARQUET)
                    .build()
                    .newOutputFile(table.spec(), null),
                table.spec(),
                null);
    try (writer) {
      for (JsonNode row : rows) {
        GenericRecord record = GenericRecord.create(table.schema());
        record.setField("id", row.get("id").asInt());
        record.setField("region", row.get("region").asText());
        record.setField("name", row.get("name").asText());
        record.setField("score", row.get("score").asDouble());
        writer.write(record);
      }
    }
    return writer.toDataFile();
  }

  /** One vector for the first data file of the head, over those positions and what is deleted. */
  private static void deletePositions(Table table, JsonNode positions) throws Exception {
    DataFile file;
    List<DeleteFile> before = new ArrayList<>();
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      FileScanTask task = tasks.iterator().next();
      file = task.file();
      before.addAll(task.deletes());
    }
    BaseDVFileWriter writer =
        new BaseDVFileWriter(
            OutputFileFactory.builderFor(table, 2, 1)
                .operationId(UUID.randomUUID().toString())
                .format(FileFormat.PUFFIN)
                .build(),
            path ->
                before.isEmpty()
                    ? null
                    : new BaseDeleteLoader(f -> table.io().newInputFile(f.location()))
                        .loadPositionDeletes(before, path));
    try (writer) {
      for (JsonNode position : positions) {
        writer.delete(file.location(), position.asLong(), table.spec(), null);
      }
    }
    RowDelta delta = table.newRowDelta().validateFromSnapshot(table.currentSnapshot().snapshotId());
    writer.result().deleteFiles().forEach(delta::addDeletes);
    writer.result().rewrittenDeleteFiles().forEach(delta::removeDeletes);
    delta.validateDataFilesExist(writer.result().referencedDataFiles()).commit();
  }

  private Object rows(JsonNode r) throws Exception {
    List<Object> out = new ArrayList<>();
    Table table = load(r.get("table"));
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table);
    if (r.path("snapshot").isNumber()) {
      scan = scan.useSnapshot(r.get("snapshot").asLong());
    }
    try (CloseableIterable<Record> records = scan.build()) {
      for (Record record : records) {
        Map<String, Object> row = new LinkedHashMap<>();
        table.schema().columns().forEach(c -> row.put(c.name(), record.getField(c.name())));
        out.add(row);
      }
    }
    return Map.of("rows", out);
  }

  private Object namespace(String name) {
    Namespace ns = Namespace.of(name);
    Namespace in1 = Namespace.of(name, "in1");
    Namespace in2 = Namespace.of(name, "in2");
    // The library asks them for a null key, which Map.of refuses.
    catalog.createNamespace(ns, new HashMap<>(Map.of("kind", "tests", "note", "ü")));
    catalog.createNamespace(in1);
    catalog.createNamespace(in2);
    boolean again = false;
    try {
      catalog.createNamespace(ns);
    } catch (AlreadyExistsException e) {
      again = true;
    }
    catalog.removeProperties(ns, new HashSet<>(Set.of("note")));
    catalog.setProperties(ns, new HashMap<>(Map.of("more", "1")));
    boolean dropped = catalog.dropNamespace(in2) && !catalog.dropNamespace(in2);
    List<String> names = new ArrayList<>();
    catalog.listNamespaces(ns).forEach(n -> names.add(n.toString()));
    return List.of(again, dropped, names, catalog.loadNamespaceMetadata(ns));
  }

  private Object create(JsonNode r) {
    Map<String, String> properties = new HashMap<>();
    r.path("properties").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
    try {
      return catalog.buildTable(ident(r.get("table")), SCHEMA).withProperties(properties).create().location();
    } catch (AlreadyExistsException e) {
      return "exists";
    }
  }

  private Object view(JsonNode r) {
    TableIdentifier name = ident(r.get("table"));
    List<Object> out = new ArrayList<>();
    for (int n = 1; n <= 2; n++) {
      View view =
          catalog
              .buildView(name)
              .withSchema(new Schema(Types.NestedField.required(1, "x", Types.IntegerType.get())))
              .withQuery("spark", "SELECT " + n + " AS x")
              .withDefaultNamespace(name.namespace())
              .createOrReplace();
      out.add(view.sqlFor("spark").sql());
    }
    TableIdentifier other = TableIdentifier.of(name.namespace(), "view2");
    catalog.renameView(name, other);
    List<String> names = new ArrayList<>();
    catalog.listViews(name.namespace()).forEach(v -> names.add(v.name()));
    out.add(names);
    out.add(catalog.dropView(other) && !catalog.viewExists(other));
    return out;
  }

  /** An append, a delete of files by a condition and a property in one commit. */
  private Object transaction(JsonNode r) throws Exception {
    Table table = load(r.get("table"));
    Transaction tx = table.newTransaction();
    change(tx, write(table, r.get("rows")), r.get("below").asInt());
    tx.updateProperties().set("a", "b").commit();
    tx.commitTransaction();
    return true;
  }

  private static void change(Transaction tx, DataFile file, int below) {
    tx.newFastAppend().appendFile(file).commit();
    tx.newDelete().deleteFromRowFilter(Expressions.lessThan("id", below)).commit();
  }

  /**
   * The same change of several tables, decided as one; where "more" is given, somebody else appends
   * that to the last table before.
   */
  private Object tables(JsonNode r) throws Exception {
    List<TableCommit> commits = new ArrayList<>();
    for (JsonNode name : r.get("tables")) {
      Table table = load(name);
      BaseTransaction tx = (BaseTransaction) table.newTransaction();
      change(tx, write(table, r.get("rows")), r.get("below").asInt());
      commits.add(TableCommit.create(ident(name), tx.startMetadata(), tx.currentMetadata()));
    }
    if (r.has("more")) {
      Table other = load(r.get("tables").get(r.get("tables").size() - 1));
      other.newFastAppend().appendFile(write(other, r.get("more"))).commit();
    }
    catalog.commitTransaction(commits);
    return commits.size();
  }

  /** An append that lost a race is repeated by the library; a delete that was validated before is not. */
  private Object conflict(JsonNode r) throws Exception {
    Table mine = load(r.get("table"));
    Table other = load(r.get("table"));
    other.newFastAppend().appendFile(write(other, r.get("more"))).commit();
    mine.newFastAppend().appendFile(write(mine, r.get("rows"))).commit();
    long base = mine.currentSnapshot().snapshotId();
    other.refresh();
    other.newFastAppend().appendFile(write(other, r.get("last"))).commit();
    try {
      mine.newOverwrite()
          .addFile(write(mine, r.get("rows")))
          .validateFromSnapshot(base)
          .conflictDetectionFilter(Expressions.alwaysTrue())
          .validateNoConflictingData()
          .commit();
    } catch (ValidationException e) {
      return String.valueOf(e.getMessage());
    }
    return "went through";
  }

  private Object answer(JsonNode r) throws Exception {
    switch (r.get("op").asText()) {
      case "hello":
        return Map.of("engine", "iceberg-java", "version", version);
      case "read":
        return rows(r);
      case "namespace":
        return namespace(r.get("name").asText());
      case "create":
        return create(r);
      case "list":
        List<String> names = new ArrayList<>();
        catalog.listTables(Namespace.of(r.get("name").asText().split("\\."))).forEach(t -> names.add(t.name()));
        return names;
      case "rename":
        catalog.renameTable(ident(r.get("table")), ident(r.get("to")));
        return catalog.tableExists(ident(r.get("to"))) && !catalog.tableExists(ident(r.get("table")));
      case "drop":
        return catalog.dropTable(ident(r.get("table")), r.path("purge").asBoolean());
      case "append":
        Table table = load(r.get("table"));
        table.newAppend().appendFile(write(table, r.get("rows"))).commit();
        return true;
      case "delete":
        load(r.get("table")).newDelete()
            .deleteFromRowFilter(Expressions.greaterThanOrEqual("id", r.get("from").asInt()))
            .commit();
        return true;
      case "delete-positions":
        deletePositions(load(r.get("table")), r.get("positions"));
        return true;
      case "register":
        return catalog.registerTable(ident(r.get("table")), r.get("location").asText()).uuid().toString();
      case "view":
        return view(r);
      case "transaction":
        return transaction(r);
      case "tables":
        return tables(r);
      case "conflict":
        return conflict(r);
      default:
        throw new IllegalArgumentException("unknown request");
    }
  }

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    JavaEngine engine = new JavaEngine(args[0], args[1]);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Map<String, Object> answer = new HashMap<>();
      try {
        answer.put("ok", engine.answer(JSON.readTree(line)));
      } catch (Exception e) {
        e.printStackTrace();
        answer.put("error", e.toString());
      }
      out.println(JSON.writeValueAsString(answer));
    }
    System.exit(0);
  }
}
