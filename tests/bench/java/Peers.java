import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.DeleteWriteResult;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.types.Types;

/**
 * The Java library's own commits, against whatever catalog the system properties name
 * (-Dtype=rest -Duri=..., -Dtype=jdbc ...). Prints one JSON object a line.
 *
 * <pre>
 * Peers append CLIENTS SECONDS WARMUP     each client appends one file a commit, over and over
 * Peers race CLIENTS ROUNDS WARMUP        all delete one row each of one data file, at once
 * </pre>
 *
 * Appends retry until they land (100 retries from 10 ms), so that none is given up; racing deletes
 * are what one statement of an engine is: read, plan, write a vector, commit, no second plan.
 */
public class Peers {
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.optional(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "v", Types.StringType.get()));
  private static final Namespace SPACE = Namespace.of("bench");
  private static final AtomicInteger NAMES = new AtomicInteger();

  private Peers() {}

  private static Catalog connect() {
    Map<String, String> properties = new HashMap<>();
    System.getProperties().forEach((k, v) -> properties.put(k.toString(), v.toString()));
    return CatalogUtil.buildIcebergCatalog("bench", properties, new Configuration());
  }

  private static TableIdentifier create(Catalog catalog) {
    SupportsNamespaces spaces = (SupportsNamespaces) catalog;
    if (!spaces.namespaceExists(SPACE)) {
      spaces.createNamespace(SPACE);
    }
    TableIdentifier id =
        TableIdentifier.of(
            SPACE, "p" + ProcessHandle.current().pid() + "_" + NAMES.incrementAndGet());
    catalog
        .buildTable(id, SCHEMA)
        .withProperty("format-version", "3")
        .withProperty("commit.retry.num-retries", "100")
        .withProperty("commit.retry.min-wait-ms", "10")
        .withProperty("commit.retry.max-wait-ms", "1000")
        .withProperty("commit.retry.total-timeout-ms", "600000")
        .create();
    return id;
  }

  /** Runs one body a client, all from the same moment; returns when all have ended. */
  private static void together(int clients, Consumer<Integer> body) throws InterruptedException {
    CountDownLatch go = new CountDownLatch(1);
    List<Thread> team = new ArrayList<>();
    for (int i = 0; i < clients; i++) {
      int number = i;
      Thread t =
          new Thread(
              () -> {
                try {
                  go.await();
                } catch (InterruptedException e) {
                  return;
                }
                body.accept(number);
              });
      t.start();
      team.add(t);
    }
    go.countDown();
    for (Thread t : team) {
      t.join();
    }
  }

  private static double ms(List<Long> sorted, double q) {
    return sorted.isEmpty() ? 0 : sorted.get((int) (q * (sorted.size() - 1))) / 1e6;
  }

  private static String text(Throwable e) {
    String first = String.valueOf(e).split("\n")[0].replaceAll("(file:|/)\\S+", "X");
    return first.substring(0, Math.min(120, first.length())).replaceAll("[\"\\\\]", "'");
  }

  private static String errors(Map<String, Integer> counts) {
    StringBuilder out = new StringBuilder();
    counts.forEach((k, n) -> out.append(out.length() == 0 ? "" : "; ").append(n + " x " + k));
    return out.toString();
  }

  // ---- appends
  private static void appends(List<Catalog> catalogs, double seconds, boolean report)
      throws InterruptedException {
    TableIdentifier id = create(catalogs.get(0));
    List<Table> tables = new ArrayList<>();
    for (Catalog catalog : catalogs) {
      tables.add(catalog.loadTable(id));
    }
    List<Long> took = Collections.synchronizedList(new ArrayList<>());
    AtomicInteger acknowledged = new AtomicInteger();
    Map<String, Integer> errors = new ConcurrentHashMap<>();
    long end = System.nanoTime() + (long) (seconds * 1e9);
    together(
        tables.size(),
        client -> {
          Table table = tables.get(client);
          for (int n = 0; System.nanoTime() < end; n++) {
            DataFile file =
                DataFiles.builder(table.spec())
                    .withPath(table.location() + "/data/" + client + "-" + n + ".parquet")
                    .withFileSizeInBytes(1000)
                    .withRecordCount(10)
                    .build();
            long start = System.nanoTime();
            try {
              table.newFastAppend().appendFile(file).commit();
              acknowledged.incrementAndGet();
              long now = System.nanoTime();
              if (now <= end) {
                took.add(now - start);
              }
            } catch (RuntimeException e) {
              errors.merge(text(e), 1, Integer::sum);
            }
          }
        });
    if (!report) {
      return;
    }
    Collections.sort(took);
    int snapshots = 0;
    for (Snapshot ignored : catalogs.get(0).loadTable(id).snapshots()) {
      snapshots++;
    }
    System.out.printf(
        "{\"commits\":%d,\"seconds\":%.3f,\"p50_ms\":%.1f,\"p99_ms\":%.1f,\"acknowledged\":%d,"
            + "\"snapshots\":%d,\"errors\":\"%s\"}%n",
        took.size(), seconds, ms(took, 0.5), ms(took, 0.99), acknowledged.get(), snapshots,
        errors(errors));
  }

  // ---- racing deletes
  private static DataFile writeRows(Table table, int rows) throws Exception {
    DataWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .dataSchema(table.schema())
            .dataFileFormat(FileFormat.PARQUET)
            .build()
            .newDataWriter(
                OutputFileFactory.builderFor(table, 1, 1)
                    .format(FileFormat.PARQUET)
                    .build()
                    .newOutputFile(PartitionSpec.unpartitioned(), null),
                table.spec(),
                null);
    try (writer) {
      for (long i = 0; i < rows; i++) {
        GenericRecord row = GenericRecord.create(table.schema());
        row.setField("id", i);
        writer.write(row);
      }
    }
    return writer.toDataFile();
  }

  private static void delete(Table table, String path, long position, int task) throws Exception {
    table.refresh();
    long read = table.currentSnapshot().snapshotId();
    List<DeleteFile> old = new ArrayList<>();
    try (CloseableIterable<FileScanTask> scan = table.newScan().useSnapshot(read).planFiles()) {
      scan.forEach(
          t -> {
            if (t.file().location().equals(path)) {
              old.addAll(t.deletes());
            }
          });
    }
    BaseDeleteLoader loader = new BaseDeleteLoader(d -> table.io().newInputFile(d));
    BaseDVFileWriter writer =
        new BaseDVFileWriter(
            OutputFileFactory.builderFor(table, 1, task).format(FileFormat.PUFFIN).build(),
            p -> old.isEmpty() ? null : loader.loadPositionDeletes(old, p));
    try (writer) {
      writer.delete(path, position, table.spec(), null);
    }
    DeleteWriteResult result = writer.result();
    RowDelta delta = table.newRowDelta().validateFromSnapshot(read);
    result.deleteFiles().forEach(delta::addDeletes);
    result.rewrittenDeleteFiles().forEach(delta::removeDeletes);
    delta.validateDataFilesExist(result.referencedDataFiles()).commit();
  }

  private static void race(Catalog catalog, int clients, boolean report) throws Exception {
    TableIdentifier id = create(catalog);
    Table table = catalog.loadTable(id);
    DataFile file = writeRows(table, clients);
    table.newAppend().appendFile(file).commit();
    List<Table> tables = new ArrayList<>();
    for (int i = 0; i < clients; i++) {
      tables.add(catalog.loadTable(id));
    }
    AtomicInteger landed = new AtomicInteger();
    Map<String, Integer> errors = new ConcurrentHashMap<>();
    long start = System.nanoTime();
    together(
        clients,
        client -> {
          try {
            delete(tables.get(client), file.location(), client, client + 2);
            landed.incrementAndGet();
          } catch (ValidationException | CommitFailedException e) {
            errors.merge(e.getClass().getSimpleName(), 1, Integer::sum);
          } catch (Exception e) {
            errors.merge(text(e), 1, Integer::sum);
          }
        });
    double seconds = (System.nanoTime() - start) / 1e9;
    if (!report) {
      return;
    }
    table.refresh();
    int left = 0;
    try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
      for (Record ignored : rows) {
        left++;
      }
    }
    System.out.printf(
        "{\"deletes\":%d,\"landed\":%d,\"seconds\":%.3f,\"rows_left\":%d,\"errors\":\"%s\"}%n",
        clients, landed.get(), seconds, left, errors(errors));
  }

  public static void main(String[] args) throws Exception {
    int clients = Integer.parseInt(args[1]);
    double warmup = Double.parseDouble(args[3]);
    if (args[0].equals("append")) {
      List<Catalog> catalogs = new ArrayList<>();
      for (int i = 0; i < clients; i++) {
        catalogs.add(connect());
      }
      appends(catalogs, warmup, false);
      appends(catalogs, Double.parseDouble(args[2]), true);
    } else {
      Catalog catalog = connect();
      long end = System.nanoTime() + (long) (warmup * 1e9);
      while (System.nanoTime() < end) {
        race(catalog, Math.min(clients, 8), false);
      }
      for (int n = Integer.parseInt(args[2]); n > 0; n--) {
        race(catalog, clients, true);
      }
    }
    System.exit(0);
  }
}
