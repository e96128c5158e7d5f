// Applies each case of cases.json with Iceberg's own builder and prints what it made of it. The clock
// shows in timestamps; those of this run are replaced by the one that the unit test passes in.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.MetadataUpdateParser;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.SortOrderParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;

public class MetadataCases {
  static final String NOW = "2000000000000";
  static final ObjectMapper MAPPER = new ObjectMapper();

  static TableMetadata.Builder start(JsonNode c, File dir) throws Exception {
    if (c.get("base").isNull()) {
      int version = 2;
      for (JsonNode u : c.get("updates")) {
        if (u.get("action").asText().equals("upgrade-format-version")) {
          version = u.get("format-version").asInt();
          break;
        }
      }
      return TableMetadata.buildFromEmpty(version);
    }
    String json = c.get("base").isObject()
        ? MAPPER.writeValueAsString(c.get("base"))
        : Files.readString(new File(dir, c.get("base").asText()).toPath());
    TableMetadata base = TableMetadataParser.fromJson("s3://b/metadata/00007-x.metadata.json", json);
    return TableMetadata.buildFrom(base);
  }

  // What a catalog does with a create request.
  static String create(JsonNode c) throws Exception {
    Schema schema = SchemaParser.fromJson(c.get("schema"));
    PartitionSpec spec = c.has("partition-spec")
        ? PartitionSpecParser.fromJson(schema, c.get("partition-spec")) : PartitionSpec.unpartitioned();
    SortOrder order = c.has("write-order")
        ? SortOrderParser.fromJson(schema, c.get("write-order")) : SortOrder.unsorted();
    Map<String, String> properties = new HashMap<>();
    if (c.has("properties")) {
      c.get("properties").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
    }
    TableMetadata m = TableMetadata.newTableMetadata(
        schema, spec, order, c.get("location").asText(), properties);
    return TableMetadataParser.toJson(m).replace(m.uuid(), "07070707-0707-0707-0707-070707070707");
  }

  static String fixTimes(String json, long from, long to) {
    Matcher m = Pattern.compile("(?<=:)[0-9]{13}(?=[,}])").matcher(json);
    return m.replaceAll(r -> {
      long t = Long.parseLong(r.group());
      return t >= from && t <= to ? NOW : r.group();
    });
  }

  public static void main(String[] args) throws Exception {
    File in = new File(args[0]);
    ArrayNode out = MAPPER.createArrayNode();
    for (JsonNode c : MAPPER.readTree(in)) {
      ObjectNode r = out.addObject();
      r.put("name", c.get("name").asText());
      long from = System.currentTimeMillis();
      try {
        if (c.has("create")) {
          String made = fixTimes(create(c.get("create")), from, System.currentTimeMillis());
          r.put("changed", true);
          r.set("result", MAPPER.readTree(made));
          continue;
        }
        TableMetadata.Builder b = start(c, in.getParentFile());
        for (JsonNode u : c.get("updates")) {
          MetadataUpdate update = MetadataUpdateParser.fromJson(MAPPER.writeValueAsString(u));
          update.applyTo(b);
        }
        TableMetadata m = b.build();
        r.put("changed", !m.changes().isEmpty());
        String json = fixTimes(TableMetadataParser.toJson(m), from, System.currentTimeMillis());
        r.set("result", MAPPER.readTree(json));
      } catch (Exception e) {
        r.put("error", e.getClass().getSimpleName());
        r.put("message", String.valueOf(e.getMessage()));
      }
    }
    // One case a line.
    String sep = "[\n";
    for (JsonNode r : out) {
      System.out.print(sep + MAPPER.writeValueAsString(r));
      sep = ",\n";
    }
    System.out.println("\n]");
  }
}
