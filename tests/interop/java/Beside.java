import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.metrics.CommitReport;
import org.apache.iceberg.metrics.MetricsReport;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * An unmodified client of the Java library that commits to one table until its input ends.
 *
 * <pre>Beside URI NAMESPACE TABLE FIRST_ID</pre>
 *
 * Appends files of three rows (ids FIRST_ID and up); every eighth commit instead deletes the middle
 * row of its oldest file with a vector, every seventh drops such a file whole. After each
 * acknowledged commit it prints one line: the operation, milliseconds, how many attempts it took and
 * the ids that it changed. Exit 1 when a commit failed, 3 when it lost every race that the table's
 * retries allow.
 */
public class Beside {
  private static final int ROWS = 3;

  /** A file of ours and the first id in it. */
  private record Own(DataFile file, int first) {}

  private Beside() {}

  /** The library's own count of the attempts of a commit. */
  public static class Attempts implements MetricsReporter {
    private static volatile long last;

    @Override
    public void report(MetricsReport report) {
      if (report instanceof CommitReport commit) {
        last = commit.commitMetrics().attempts().value();
      }
    }
  }

  private static DataFile write(Table table, int first, int task) throws Exception {
    DataWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .dataSchema(table.schema())
            .dataFileFormat(FileFormat.PARQUET)
            .build()
            .newDataWriter(
                OutputFileFactory.builderFor(table, 1, task)
                    .format(FileFormat.PARQUET)
                    .build()
                    .newOutputFile(table.spec(), null),
                table.spec(),
                null);
    try (writer) {
      for (int id = first; id < first + ROWS; id++) {
        GenericRecord row = GenericRecord.create(table.schema());
        row.setField("id", id);
        row.setField("region", "java");
        row.setField("name", "j" + id);
        row.setField("score", id / 4.0);
        writer.write(row);
      }
    }
    return writer.toDataFile();
  }

  private static void deleteMiddle(Table table, DataFile file, int task) throws Exception {
    BaseDVFileWriter writer =
        new BaseDVFileWriter(
            OutputFileFactory.builderFor(table, 2, task).format(FileFormat.PUFFIN).build(),
            path -> null);
    try (writer) {
      writer.delete(file.location(), 1, table.spec(), null);
    }
    RowDelta delta = table.newRowDelta().validateFromSnapshot(table.currentSnapshot().snapshotId());
    writer.result().deleteFiles().forEach(delta::addDeletes);
    delta.validateDataFilesExist(writer.result().referencedDataFiles()).commit();
  }

  private static void print(String op, long began, List<Integer> ids) {
    System.out.printf(
        "{\"op\":\"%s\",\"ms\":%d,\"attempts\":%d,\"ids\":%s}%n",
        op, (System.nanoTime() - began) / 1000000, Attempts.last, ids);
    System.out.flush();
  }

  /** The client's threads would keep the process alive. */
  public static void main(String[] args) {
    try {
      work(args);
    } catch (CommitFailedException e) {
      e.printStackTrace();
      System.exit(3);
    } catch (Exception e) {
      e.printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  private static void work(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put("type", "rest");
    properties.put("uri", args[0]);
    properties.put("rest-metrics-reporting-enabled", "false");
    properties.put("metrics-reporter-impl", Attempts.class.getName());
    Catalog catalog = CatalogUtil.buildIcebergCatalog("beside", properties, new Configuration());
    Table table = catalog.loadTable(TableIdentifier.of(args[1], args[2]));
    int next = Integer.parseInt(args[3]);
    Deque<Own> whole = new ArrayDeque<>();
    Deque<Own> cut = new ArrayDeque<>();
    for (int n = 1; ; n++) {
      // Whoever started it closes the pipe, or writes a line, when the crowd has ended.
      if (System.in.available() > 0) {
        break;
      }
      long began = System.nanoTime();
      if (n % 7 == 0 && !cut.isEmpty()) {
        Own own = cut.removeFirst();
        table.newDelete().deleteFile(own.file()).commit();
        print("drop", began, List.of(own.first(), own.first() + 2));
      } else if (n % 8 == 0 && !whole.isEmpty()) {
        Own own = whole.removeFirst();
        deleteMiddle(table, own.file(), n);
        cut.addLast(own);
        print("delete", began, List.of(own.first() + 1));
      } else {
        DataFile file = write(table, next, n);
        table.newFastAppend().appendFile(file).commit();
        List<Integer> ids = new ArrayList<>();
        for (int id = next; id < next + ROWS; id++) {
          ids.add(id);
        }
        whole.addLast(new Own(file, next));
        next += ROWS;
        print("append", began, ids);
      }
    }
  }
}
