import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.trino.Session;
import io.trino.plugin.iceberg.IcebergPlugin;
import io.trino.spi.type.TimeZoneKey;
import io.trino.testing.MaterializedResult;
import io.trino.testing.MaterializedRow;
import io.trino.testing.StandaloneQueryRunner;
import io.trino.testing.TestingSession;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Trino inside of one process, as an engine of the suite: one request a line on standard input, one answer a line
 * on file descriptor 3, for Trino's log takes standard output. The rows are of ints, strings and doubles.
 *
 * <pre>TrinoEngine URI VERSION</pre>
 */
public class TrinoEngine
{
    private static final ObjectMapper JSON = new ObjectMapper();

    private TrinoEngine() {}

    public static void main(String[] args) throws Exception
    {
        PrintStream out = new PrintStream(new FileOutputStream("/dev/fd/3", true), true, StandardCharsets.UTF_8);
        Session session = TestingSession.testSessionBuilder().setCatalog("ice").setSchema("none")
                .setTimeZoneKey(TimeZoneKey.UTC_KEY).build();
        try (StandaloneQueryRunner trino = new StandaloneQueryRunner(session)) {
            trino.installPlugin(new IcebergPlugin());
            trino.createCatalog("ice", "iceberg", Map.of("iceberg.catalog.type", "rest", "iceberg.rest-catalog.uri", args[0],
                    "fs.local.enabled", "true", "local.location", "/", "iceberg.register-table-procedure.enabled", "true",
                    "iceberg.expire-snapshots.min-retention", "0s", "iceberg.rest-catalog.nested-namespace-enabled", "true"));
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                JsonNode request = JSON.readTree(line);
                Object answer;
                switch (request.get("op").asText()) {
                    case "hello" -> answer = Map.of("ok", Map.of("engine", "trino", "version", args[1]));
                    case "read" -> answer = read(trino, request);
                    case "sql" -> answer = sql(trino, request.get("text").asText());
                    case "read_many" -> {
                        List<Object> all = new ArrayList<>();
                        for (JsonNode one : request.get("reads")) {
                            all.add(read(trino, one));
                        }
                        answer = Map.of("ok", all);
                    }
                    default -> answer = Map.of("error", "unknown request");
                }
                out.println(JSON.writeValueAsString(answer));
            }
        }
        System.exit(0);
    }

    /** Rows of one statement, by column position. */
    private static Map<String, Object> sql(StandaloneQueryRunner trino, String text)
    {
        try {
            List<Object> rows = new ArrayList<>();
            for (MaterializedRow row : trino.execute(text).getMaterializedRows()) {
                Map<String, Object> values = new LinkedHashMap<>();
                for (int i = 0; i < row.getFieldCount(); i++) {
                    Object v = row.getField(i);
                    values.put("c" + i, v == null || v instanceof Number || v instanceof Boolean ? v : v.toString());
                }
                rows.add(values);
            }
            return Map.of("ok", Map.of("rows", rows));
        }
        catch (Throwable e) {
            return Map.of("error", e + (e.getCause() == null ? "" : " / " + e.getCause()));
        }
    }

    private static Map<String, Object> read(StandaloneQueryRunner trino, JsonNode r)
    {
        String table = r.get("table").asText();
        int dot = table.lastIndexOf('.');
        String lineage = r.path("lineage").asBoolean()
                ? ", \"$row_id\" AS \"_row_id\", \"$last_updated_sequence_number\" AS \"_last_updated_sequence_number\"" : "";
        String at = r.path("snapshot").isNumber() ? " FOR VERSION AS OF " + r.get("snapshot").asLong() : "";
        try {
            MaterializedResult got = trino.execute(
                    "SELECT *" + lineage + " FROM ice.\"" + table.substring(0, dot) + "\".\"" + table.substring(dot + 1) + "\"" + at);
            List<Object> rows = new ArrayList<>();
            for (MaterializedRow row : got.getMaterializedRows()) {
                Map<String, Object> values = new LinkedHashMap<>();
                for (int i = 0; i < got.getColumnNames().size(); i++) {
                    values.put(got.getColumnNames().get(i), row.getField(i));
                }
                rows.add(values);
            }
            return Map.of("ok", Map.of("rows", rows));
        }
        catch (Throwable e) {
            return Map.of("error", e + (e.getCause() == null ? "" : " / " + e.getCause()));
        }
    }
}
