/* Writes messages_java.json: for each value of values.json that a partition may have, the content file that the
 * Java implementation writes for it, and the text that the engines make of the same tuple.
 *
 * usage: java -cp 'iceberg-core-1.11.0.jar:...' MakeMessages.java values.json > messages_java.json
 *
 * "bytes": the value in single-value binary form, hexadecimal. "iceberg": ContentFileParser's text, only where
 * that reads it back. "engine": {"partitionValues":[…]} by the generator that Presto and Trino use, fed with the
 * classes that they feed it with; absent where it has no form. */
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.ContentFileParser;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class MakeMessages {
	static final ObjectMapper JSON = new ObjectMapper();

	static class One implements StructLike {
		final Object value;

		One(Object value) {
			this.value = value;
		}

		public int size() {
			return 1;
		}

		public <T> T get(int pos, Class<T> type) {
			return type.cast(value);
		}

		public <T> void set(int pos, T v) {
			throw new UnsupportedOperationException();
		}
	}

	static ByteBuffer bytes(String hex) {
		byte[] b = new byte[hex.length() / 2];
		for (int i = 0; i < b.length; i++)
			b[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
		return ByteBuffer.wrap(b);
	}

	static String hex(ByteBuffer b) {
		StringBuilder s = new StringBuilder();
		for (ByteBuffer d = b.duplicate(); d.hasRemaining();)
			s.append(String.format("%02x", d.get()));
		return s.toString();
	}

	static String iceberg(Type.PrimitiveType type, Object value, ByteBuffer bound) {
		Schema schema = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()),
			Types.NestedField.optional(2, "p", type));
		PartitionSpec spec = PartitionSpec.builderFor(schema).withSpecId(1).identity("p").build();
		Map<Integer, Long> one = Map.of(2, 1L);
		DataFile file = DataFiles.builder(spec).withPath("file:///t/data/p/a.parquet").withFormat("parquet")
			.withFileSizeInBytes(77).withPartition(new One(value))
			.withMetrics(new Metrics(1L, one, one, Map.of(2, 0L), null, Map.of(2, bound), Map.of(2, bound)))
			.build();
		String text = ContentFileParser.toJson(file, spec);
		try {
			ContentFileParser.fromJson(JSON.readTree(text), Map.of(1, spec));
		} catch (Exception unreadable) {
			return null;
		}
		return text;
	}

	static String engine(Object value) throws Exception {
		if (value instanceof ByteBuffer b) {
			byte[] copy = new byte[b.remaining()];
			b.duplicate().get(copy);
			value = copy;
		} else if (value instanceof CharSequence s) {
			value = s.toString();
		}
		StringWriter out = new StringWriter();
		JsonGenerator g = new JsonFactory().createGenerator(out);
		g.writeStartObject();
		g.writeArrayFieldStart("partitionValues");
		try {
			g.writeObject(value);
		} catch (IllegalStateException none) {
			return null;
		}
		g.writeEndArray();
		g.writeEndObject();
		g.flush();
		return out.toString();
	}

	public static void main(String[] args) throws Exception {
		ObjectNode root = JSON.createObjectNode();
		root.put("made_by", "iceberg-java " + args[1]);
		ArrayNode rows = root.putArray("rows");
		for (JsonNode row : JSON.readTree(new File(args[0])).get("values")) {
			Type.PrimitiveType type = Types.fromPrimitiveString(row.get("type").asText());
			Object value = Conversions.fromByteBuffer(type, bytes(row.get("bytes").asText()));
			ByteBuffer b = Conversions.toByteBuffer(type, value);
			ObjectNode o = rows.addObject();
			o.put("type", row.get("type").asText());
			o.put("bytes", hex(b));
			String text = iceberg(type, value, b);
			if (text != null)
				o.put("iceberg", text);
			text = engine(value);
			if (text != null)
				o.put("engine", text);
		}
		System.out.println(JSON.writerWithDefaultPrettyPrinter().writeValueAsString(root));
	}
}
