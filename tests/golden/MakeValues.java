/* Writes values_java.json: what the Java implementation says about the values of values.json.
 *
 * usage: java -cp 'iceberg-core-1.11.0.jar:...' MakeValues.java values.json > values_java.json
 *
 * "values": single-value JSON. "paths": a transform, its result in single-value bytes and the partition
 * path of a field named "p q". "bounds": texts and bytes cut to some length. "schemas": a schema as it
 * was given, as it is written, and with fresh ids. Binary is hexadecimal. */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.SingleValueParser;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.BinaryUtil;
import org.apache.iceberg.util.UnicodeUtil;

public class MakeValues {
	static final ObjectMapper JSON = new ObjectMapper();
	static final List<String> TRANSFORMS = List.of("identity", "void", "bucket[2147483647]",
		"truncate[3]", "truncate[10]", "year", "month", "day", "hour");

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

	static String hex(ByteBuffer b) {
		StringBuilder s = new StringBuilder();
		for (ByteBuffer d = b.duplicate(); d.hasRemaining();)
			s.append(String.format("%02x", d.get()));
		return s.toString();
	}

	static ByteBuffer bytes(String hex) {
		byte[] b = new byte[hex.length() / 2];
		for (int i = 0; i < b.length; i++)
			b[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
		return ByteBuffer.wrap(b);
	}

	static void paths(ArrayNode out, JsonNode row, Type.PrimitiveType type, Object value) {
		Schema schema = new Schema(Types.NestedField.optional(1, "c", type));
		for (String text : TRANSFORMS) {
			PartitionSpec spec;
			try {
				spec = PartitionSpecParser.fromJson(schema,
					"{\"spec-id\":0,\"fields\":[{\"name\":\"p q\",\"transform\":\"" + text
					+ "\",\"source-id\":1,\"field-id\":1000}]}");
			} catch (RuntimeException refused) {
				continue;
			}
			@SuppressWarnings("unchecked")
			var bound = ((org.apache.iceberg.transforms.Transform<Object, Object>)
				spec.fields().get(0).transform()).bind(type);
			Object result = bound.apply(value);
			Type resultType = spec.partitionType().fields().get(0).type();
			ObjectNode o = out.addObject();
			o.put("type", row.get("type").asText());
			o.set("json", row.get("json"));
			o.put("transform", text);
			o.put("result", result == null ? null : hex(Conversions.toByteBuffer(resultType, result)));
			o.put("path", spec.partitionToPath(new One(result)));
		}
	}

	static void bound(ArrayNode out, String kind, String in, int length) {
		ObjectNode o = out.addObject();
		o.put("type", kind);
		o.put("bytes", in);
		o.put("length", length);
		if (kind.equals("string")) {
			Literal<CharSequence> s = Literal.of((CharSequence)
				Conversions.fromByteBuffer(Types.StringType.get(), bytes(in)).toString());
			o.put("lower", hex(UnicodeUtil.truncateStringMin(s, length).toByteBuffer()));
			Literal<CharSequence> up = UnicodeUtil.truncateStringMax(s, length);
			o.put("upper", up == null ? null : hex(up.toByteBuffer()));
		} else {
			Literal<ByteBuffer> b = Literal.of(bytes(in));
			o.put("lower", hex(BinaryUtil.truncateBinaryMin(b, length).toByteBuffer()));
			Literal<ByteBuffer> up = BinaryUtil.truncateBinaryMax(b, length);
			o.put("upper", up == null ? null : hex(up.toByteBuffer()));
		}
	}

	static void schema(ArrayNode out, String text) throws Exception {
		Schema s = SchemaParser.fromJson(text);
		ObjectNode o = out.addObject();
		o.put("given", text);
		o.put("written", SchemaParser.toJson(s));
		AtomicInteger last = new AtomicInteger(0);
		o.put("fresh", SchemaParser.toJson(TypeUtil.assignFreshIds(s.schemaId(), s, last::incrementAndGet)));
	}

	public static void main(String[] args) throws Exception {
		ObjectNode root = JSON.createObjectNode();
		root.put("made_by", "iceberg-java 1.11.0");
		ArrayNode values = root.putArray("values"), paths = root.putArray("paths");
		for (JsonNode row : JSON.readTree(new File(args[0])).get("values")) {
			Type.PrimitiveType type = Types.fromPrimitiveString(row.get("type").asText());
			Object value = Conversions.fromByteBuffer(type, bytes(row.get("bytes").asText()));
			ObjectNode o = values.addObject();
			o.put("type", row.get("type").asText());
			o.put("bytes", hex(Conversions.toByteBuffer(type, value)));
			o.set("json", JSON.readTree(SingleValueParser.toJson(type, value)));
			paths(paths, row, type, value);
		}
		/* Times that end in zeros, years of five digits, floats at the ends of plain notation. */
		for (String[] e : new String[][] {
			{"time", "\"10:12:00\""}, {"time", "\"10:12:55\""}, {"time", "\"10:12:55.5\""},
			{"timestamp", "\"2017-11-16T22:31:00\""}, {"timestamp", "\"2017-11-16T22:31:08.120\""},
			{"timestamptz", "\"2017-11-16T22:31:08+00:00\""},
			{"timestamptz", "\"2017-11-16T22:00:00+00:00\""},
			{"timestamp_ns", "\"2017-11-16T22:31:08\""}, {"timestamp_ns", "\"2017-11-16T22:31:08.00001\""},
			{"timestamptz_ns", "\"2017-11-16T22:31:08.5+00:00\""},
			{"date", "\"+12017-11-16\""}, {"date", "\"-0044-03-15\""}, {"date", "\"0000-01-01\""},
			{"timestamp", "\"+12017-11-16T22:31:08\""}, {"timestamp", "\"-0044-03-15T12:00:00\""},
			{"double", "9999999.5"}, {"double", "0.0001"}, {"double", "100.0"}, {"double", "1.0E7"},
			{"double", "-123456.789"}, {"float", "0.1"}, {"float", "16777216.0"},
			{"float", "1.0E10"}, {"float", "-0.5"}, {"fixed[4]", "\"000102ff\""},
			{"decimal(4, 2)", "\"-0.05\""}, {"string", "\"~!*'()/\\\\\\u0000\""},
		}) {
			ObjectNode row = JSON.createObjectNode();
			Type.PrimitiveType type = Types.fromPrimitiveString(e[0]);
			row.put("type", e[0]);
			row.set("json", JSON.readTree(e[1]));
			paths(paths, row, type, SingleValueParser.fromJson(type, e[1]));
		}
		ArrayNode bounds = root.putArray("bounds");
		for (String s : List.of("616263", "61c3a9f09f98807a", "617f21", "ed9fbf21", "efbfbf21", "62f48fbfbf21",
			"f48fbfbff48fbfbf21", ""))
			for (int n = 1; n <= 3; n++)
				bound(bounds, "string", s, n);
		for (String s : List.of("010203", "01ff03", "ffff03", "ff", "", "00"))
			for (int n = 1; n <= 3; n++)
				bound(bounds, "binary", s, n);
		ArrayNode schemas = root.putArray("schemas");
		schema(schemas, "{\"type\":\"struct\",\"schema-id\":4,\"identifier-field-ids\":[21,20],\"fields\":["
			+ "{\"id\":20,\"name\":\"id\",\"required\":true,\"type\":\"long\",\"doc\":\"the \\\"id\\\"\"},"
			+ "{\"id\":10,\"name\":\"s\",\"required\":true,\"type\":{\"type\":\"struct\",\"fields\":["
			+ "{\"id\":21,\"name\":\"x\",\"required\":true,\"type\":\"string\"},"
			+ "{\"id\":22,\"name\":\"y\",\"required\":false,\"type\":\"decimal(9,2)\"}]}},"
			+ "{\"id\":30,\"name\":\"l\",\"required\":false,\"type\":{\"type\":\"list\",\"element-id\":31,"
			+ "\"element\":{\"type\":\"struct\",\"fields\":["
			+ "{\"id\":32,\"name\":\"x\",\"required\":false,\"type\":\"fixed[ 16 ]\"}]},\"element-required\":true}},"
			+ "{\"id\":40,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":41,"
			+ "\"key\":{\"type\":\"struct\",\"fields\":[{\"id\":44,\"name\":\"k\",\"required\":true,\"type\":\"uuid\"}]},"
			+ "\"value-id\":42,\"value\":{\"type\":\"struct\",\"fields\":["
			+ "{\"id\":43,\"name\":\"v\",\"required\":false,\"type\":\"double\"}]},\"value-required\":false}}]}");
		schema(schemas, "{\"type\":\"struct\",\"schema-id\":0,\"fields\":["
			+ "{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\",\"initial-default\":7,\"write-default\":8},"
			+ "{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":\"variant\"},"
			+ "{\"id\":3,\"name\":\"c\",\"required\":false,\"type\":\"unknown\"},"
			+ "{\"id\":4,\"name\":\"d\",\"required\":false,\"type\":\"geometry(srid:4326)\"},"
			+ "{\"id\":5,\"name\":\"e\",\"required\":false,\"type\":\"geography(srid:4326, karney)\"},"
			+ "{\"id\":6,\"name\":\"f\",\"required\":false,\"type\":\"timestamptz_ns\"},"
			+ "{\"id\":7,\"name\":\"g\",\"required\":false,\"type\":\"geometry(OGC:CRS84)\"},"
			+ "{\"id\":8,\"name\":\"h\",\"required\":false,\"type\":\"string\",\"write-default\":\"x\"}]}");
		System.out.println(JSON.writerWithDefaultPrettyPrinter().writeValueAsString(root));
	}
}
