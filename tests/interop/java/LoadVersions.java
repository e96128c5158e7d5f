import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.iceberg.Files;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;

/**
 * Loads metadata files as any engine on the Java library does.
 *
 * <p>Paths come one a line on standard input. For each that is refused it prints the path and why;
 * the last line is the number of those that were taken.
 */
public class LoadVersions {
  private LoadVersions() {}

  public static void main(String[] args) throws Exception {
    int taken = 0;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String path = in.readLine(); path != null; path = in.readLine()) {
      try {
        TableMetadata m = TableMetadataParser.read(Files.localInput(path));
        m.snapshots().forEach(s -> m.snapshot(s.snapshotId()).timestampMillis());
        // Parsing what it writes again applies every rule once more.
        TableMetadataParser.fromJson(path, TableMetadataParser.toJson(m));
        taken++;
      } catch (RuntimeException e) {
        System.out.println(path + ": " + e);
      }
    }
    System.out.println(taken);
  }
}
