import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Flink's SQL in batch mode inside of one process, as an engine of the suite: one request a line on standard input,
 * one answer a line on file descriptor 3. The rows are of ints, strings and doubles.
 *
 * <pre>FlinkEngine URI VERSION</pre>
 */
public class FlinkEngine {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int TOGETHER = 20;

  private FlinkEngine() {}

  public static void main(String[] args) throws Exception {
    PrintStream out =
        new PrintStream(new FileOutputStream("/dev/fd/3", true), true, StandardCharsets.UTF_8);
    Configuration conf = new Configuration();
    conf.setString("parallelism.default", "1");
    TableEnvironment flink =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inBatchMode().withConfiguration(conf).build());
    flink.executeSql(
        "CREATE CATALOG ice WITH ('type'='iceberg', 'catalog-type'='rest', 'cache-enabled'='false', 'uri'='"
            + args[0]
            + "')");
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode request = JSON.readTree(line);
      Object answer;
      switch (request.get("op").asText()) {
        case "hello" -> answer = Map.of("ok", Map.of("engine", "flink", "version", args[1]));
        case "read" -> answer = read(flink, request);
        case "sql" -> answer = sql(flink, request.get("text").asText());
        case "read_many" -> {
          List<JsonNode> reads = new ArrayList<>();
          request.get("reads").forEach(reads::add);
          List<Object> all = new ArrayList<>();
          for (int i = 0; i < reads.size(); i += TOGETHER) {
            all.addAll(together(flink, reads.subList(i, Math.min(i + TOGETHER, reads.size()))));
          }
          answer = Map.of("ok", all);
        }
        default -> answer = Map.of("error", "unknown request");
      }
      out.println(JSON.writeValueAsString(answer));
    }
    System.exit(0);
  }

  /** Rows of one statement, by column position; a change is awaited. */
  private static Map<String, Object> sql(TableEnvironment flink, String text) {
    try {
      TableResult got = flink.executeSql(text);
      List<Object> rows = new ArrayList<>();
      if (!text.startsWith("SELECT") && !text.startsWith("SHOW")) {
        got.await();
        return Map.of("ok", Map.of("rows", rows));
      }
      try (CloseableIterator<Row> each = got.collect()) {
        while (each.hasNext()) {
          Row row = each.next();
          Map<String, Object> values = new LinkedHashMap<>();
          for (int i = 0; i < row.getArity(); i++) {
            Object v = row.getField(i);
            values.put("c" + i, v == null || v instanceof Number || v instanceof Boolean ? v : v.toString());
          }
          rows.add(values);
        }
      }
      return Map.of("ok", Map.of("rows", rows));
    } catch (Throwable e) {
      e.printStackTrace();
      Throwable cause = e;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return Map.of("error", e + " / " + cause);
    }
  }

  private static String from(JsonNode r) {
    String table = r.get("table").asText();
    int dot = table.lastIndexOf('.');
    String at =
        r.path("ref").isTextual() ? " /*+ OPTIONS('branch'='" + r.get("ref").asText() + "') */" : "";
    return " FROM ice.`" + table.substring(0, dot) + "`.`" + table.substring(dot + 1) + "`" + at;
  }

  /** Many tables of the same columns in one job; where it fails, one by one. */
  private static List<Object> together(TableEnvironment flink, List<JsonNode> reads) {
    List<List<Object>> rows = new ArrayList<>();
    List<Object> answers = new ArrayList<>();
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < reads.size(); i++) {
      rows.add(new ArrayList<>());
      answers.add(Map.of("ok", Map.of("rows", rows.get(i))));
      text.append(i == 0 ? "" : " UNION ALL ");
      text.append("SELECT ").append(i).append(" AS which__, *").append(from(reads.get(i)));
    }
    try {
      TableResult got = flink.executeSql(text.toString());
      List<String> names = got.getResolvedSchema().getColumnNames();
      try (CloseableIterator<Row> each = got.collect()) {
        while (each.hasNext()) {
          Row row = each.next();
          Map<String, Object> values = new LinkedHashMap<>();
          for (int i = 1; i < names.size(); i++) {
            values.put(names.get(i), row.getField(i));
          }
          rows.get((Integer) row.getField(0)).add(values);
        }
      }
      return answers;
    } catch (Throwable e) {
      e.printStackTrace();
      answers.clear();
      reads.forEach(r -> answers.add(read(flink, r)));
      return answers;
    }
  }

  private static Map<String, Object> read(TableEnvironment flink, JsonNode r) {
    try {
      TableResult got = flink.executeSql("SELECT *" + from(r));
      List<String> names = got.getResolvedSchema().getColumnNames();
      List<Object> rows = new ArrayList<>();
      try (CloseableIterator<Row> each = got.collect()) {
        while (each.hasNext()) {
          Row row = each.next();
          Map<String, Object> values = new LinkedHashMap<>();
          for (int i = 0; i < names.size(); i++) {
            values.put(names.get(i), row.getField(i));
          }
          rows.add(values);
        }
      }
      return Map.of("ok", Map.of("rows", rows));
    } catch (Throwable e) {
      Throwable cause = e;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      return Map.of("error", e + " / " + cause);
    }
  }
}
