import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.iceberg.Files;
import org.apache.iceberg.view.ViewMetadata;
import org.apache.iceberg.view.ViewMetadataParser;

/**
 * Views' metadata files as any engine on the Java library reads them, no catalog asked.
 *
 * <p>Paths come one a line on standard input. For each it prints what it took from the file, in its
 * own JSON, or "refused" and why.
 */
public class ReadViews {
  private ReadViews() {}

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String path = in.readLine(); path != null; path = in.readLine()) {
      try {
        ViewMetadata m = ViewMetadataParser.read(Files.localInput(path));
        // Parsing what it writes again applies every rule once more.
        out.println(ViewMetadataParser.toJson(ViewMetadataParser.fromJson(ViewMetadataParser.toJson(m))));
      } catch (RuntimeException e) {
        out.println("refused " + e.toString().replace('\n', ' '));
      }
    }
  }
}
