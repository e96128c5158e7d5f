/* Writes types_java.json: what the Java implementation makes of every type at the edges of its range.
 *
 * usage: tests/golden/make_types.sh [VERSION]
 *
 * "accepts": for every type the transforms that take it. "rows": a type, a value in single-value bytes and
 * its human form; "t" maps a transform to the result's bytes and human form. "bounds": texts and bytes cut
 * to a width. "promotes": pairs of types. "defaults": texts of single-value JSON and their bytes, null when
 * refused. Binary is hexadecimal; one row a line. */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.SingleValueParser;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.transforms.Transform;
import org.apache.iceberg.transforms.Transforms;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.BinaryUtil;
import org.apache.iceberg.util.UnicodeUtil;

public class MakeTypes {
	static final ObjectMapper JSON = new ObjectMapper();
	static final List<String> TRANSFORMS = List.of("identity", "void", "bucket[1]", "bucket[16]",
		"bucket[2147483647]", "truncate[1]", "truncate[7]", "truncate[16]", "truncate[1000000]",
		"truncate[2147483647]", "year", "month", "day", "hour");
	static final long DAY = 86_400_000_000L;

	static String hex(ByteBuffer b) {
		StringBuilder s = new StringBuilder();
		for (ByteBuffer d = b.duplicate(); d.hasRemaining();)
			s.append(String.format("%02x", d.get()));
		return s.toString();
	}

	static String cp(int... points) {
		return new String(points, 0, points.length);
	}

	static String times(int n, int point) {
		return cp(point).repeat(n);
	}

	/* Texts around the sixteen code points of truncated bounds, of every width of UTF-8. */
	static List<String> texts() {
		List<String> l = new ArrayList<>(List.of("", "a", "iceberg", "null", "a b/c=d%", "%2F", "\u0000", "\u0001\"\\",
			"\u007f", cp(0x80), cp(0x7ff), cp(0x800), cp(0xd7ff), cp(0xe000), cp(0xffff), cp(0x10000), cp(0x10ffff)));
		for (int point : new int[] {'a', 0x7f, 0x7ff, 0xd7ff, 0xffff, 0x1f600, 0x10ffff})
			for (int n : new int[] {15, 16, 17, 40})
				l.add(times(n, point));
		l.add("a" + times(16, 0x10ffff));
		l.add(times(15, 'b') + cp(0x10ffff, 'x'));
		l.add(times(15, 'b') + cp(0x1f600, 0x1f601));
		l.add(times(14, 0x1f600) + "ab" + cp(0x1f601));
		l.add("e" + times(20, 0x301)); /* combining marks are code points of their own */
		l.add(times(15, 'z') + cp(0xd7ff, 'y'));
		return l;
	}

	static List<byte[]> blobs() {
		List<byte[]> l = new ArrayList<>(List.of(new byte[0], new byte[] {0}, new byte[] {-1}, new byte[] {0, -1, 0}));
		for (int n : new int[] {15, 16, 17, 40})
			for (byte b : new byte[] {0, 0x7f, -128, -1}) {
				byte[] x = new byte[n];
				Arrays.fill(x, b);
				l.add(x);
			}
		byte[] carry = new byte[17];
		Arrays.fill(carry, (byte) -1);
		carry[0] = 1;
		l.add(carry);
		return l;
	}

	static Map<Type.PrimitiveType, List<Object>> values() {
		Map<Type.PrimitiveType, List<Object>> m = new LinkedHashMap<>();
		/* Floats whose shortest text JDKs before 19 miss are left out. */
		m.put(Types.BooleanType.get(), List.of(false, true));
		m.put(Types.IntegerType.get(), List.of(0, 1, -1, 7, -7, 34, Integer.MAX_VALUE, Integer.MIN_VALUE,
			Integer.MIN_VALUE + 1));
		m.put(Types.LongType.get(), List.of(0L, 1L, -1L, 34L, 1L << 40, -(1L << 40), (long) Integer.MAX_VALUE + 1,
			Long.MAX_VALUE, Long.MIN_VALUE, Long.MIN_VALUE + 1));
		m.put(Types.FloatType.get(), List.of(0f, -0f, 1f, -1.5f, Float.MIN_VALUE, Float.MAX_VALUE,
			-Float.MAX_VALUE, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.NaN, 1e7f, 9999999f, 1e-3f,
			9.99e-4f, 0.1f));
		m.put(Types.DoubleType.get(), List.of(0d, -0d, 1d, -1.5, Double.MIN_VALUE, Double.MIN_NORMAL, Double.MAX_VALUE,
			-Double.MAX_VALUE, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.NaN, 1e7, 9999999.999,
			1e-3, 9.99e-4, 0.1, 1e15, 123456789012345680d));
		m.put(Types.DateType.get(), List.of(0, 1, -1, 364, 365, -365, -366, 17486, 11016, -25567, -719162, -719163,
			-719528, -719529, 2932896, 2932897, -141428, Integer.MAX_VALUE, Integer.MIN_VALUE));
		m.put(Types.TimeType.get(), List.of(0L, 1L, 999L, 1000L, 999_999L, 1_000_000L, 36_720_000_000L,
			81_068_123_456L, DAY - 1));
		List<Object> micros = List.of(0L, 1L, -1L, 999L, -999L, 3_599_999_999L, 3_600_000_000L, -3_600_000_001L,
			DAY - 1, DAY, -DAY, -DAY - 1, 1_510_871_468_123_456L, 951_782_399_999_999L, -62_135_596_800_000_000L,
			-62_135_596_800_000_001L, -62_167_219_200_000_001L, 253_402_300_799_999_999L, 253_402_300_800_000_000L,
			/* hours that still fit an int */ 7_730_941_132_799_999_999L, -7_730_941_132_800_000_000L);
		List<Object> nanos = List.of(0L, 1L, -1L, 999L, -999L, 1000L, -1000L, -1001L, 3_599_999_999_999L,
			-3_600_000_000_001L, DAY * 1000 - 1, DAY * 1000, -DAY * 1000, -DAY * 1000 - 1,
			1_510_871_468_123_456_789L, 1_510_871_468_000_001_001L, 1_510_871_468_120_000_000L, Long.MAX_VALUE,
			Long.MIN_VALUE);
		m.put(Types.TimestampType.withoutZone(), micros);
		m.put(Types.TimestampType.withZone(), micros);
		m.put(Types.TimestampNanoType.withoutZone(), nanos);
		m.put(Types.TimestampNanoType.withZone(), nanos);
		m.put(Types.StringType.get(), List.copyOf(texts()));
		m.put(Types.UUIDType.get(), List.of(new UUID(0, 0), new UUID(-1, -1), new UUID(0, Long.MIN_VALUE),
			new UUID(Long.MIN_VALUE, 0), UUID.fromString("f79c3e09-677c-4bbd-a479-3f349cb785e7")));
		for (int n : new int[] {1, 3, 16, 33})
			m.put(Types.FixedType.ofLength(n), List.of(ByteBuffer.wrap(new byte[n]), ByteBuffer.wrap(full(n, 0x7f)),
				ByteBuffer.wrap(full(n, 0x80)), ByteBuffer.wrap(full(n, 0xff))));
		List<Object> bytes = new ArrayList<>();
		for (byte[] b : blobs())
			bytes.add(ByteBuffer.wrap(b));
		m.put(Types.BinaryType.get(), bytes);
		for (int p = 1; p <= 38; p++)
			for (int scale : p == 1 ? new int[] {0, 1} : p == 9 ? new int[] {0, 2, 9} : new int[] {p % 3 == 0 ? p : p / 2})
				m.put(Types.DecimalType.of(p, scale), decimals(p, scale));
		return m;
	}

	static byte[] full(int n, int b) {
		byte[] x = new byte[n];
		Arrays.fill(x, (byte) b);
		return x;
	}

	/* Zero, one, the ends of the precision, and both sides of every power of 256 below them. */
	static List<Object> decimals(int precision, int scale) {
		List<Object> l = new ArrayList<>();
		BigInteger max = BigInteger.TEN.pow(precision).subtract(BigInteger.ONE);
		for (BigInteger n : List.of(BigInteger.ZERO, BigInteger.ONE, max))
			for (BigInteger x : List.of(n, n.negate()))
				if (!l.contains(new BigDecimal(x, scale)))
					l.add(new BigDecimal(x, scale));
		BigInteger edge = BigInteger.ONE.shiftLeft((max.bitLength() - 1) / 8 * 8 + 7);
		if (edge.compareTo(max) > 0)
			edge = BigInteger.ONE.shiftLeft(Math.max(0, (max.bitLength() - 1) / 8 * 8 - 1));
		for (BigInteger x : List.of(edge, edge.subtract(BigInteger.ONE), edge.negate(),
				edge.negate().subtract(BigInteger.ONE)))
			if (x.abs().compareTo(max) <= 0 && !l.contains(new BigDecimal(x, scale)))
				l.add(new BigDecimal(x, scale));
		return l;
	}

	/* int and long: ((v % W) + W) overflows in Java for great widths, and the result is none of the spec. */
	static boolean overflows(Type type, String transform, Object value) {
		return transform.equals("truncate[2147483647]") && type.typeId() == Type.TypeID.INTEGER
			&& (Integer) value % Integer.MAX_VALUE > 0;
	}

	static ObjectNode row(Type.PrimitiveType type, Object value) {
		ObjectNode o = JSON.createObjectNode(), t = JSON.createObjectNode();
		o.put("type", type.toString());
		o.put("bytes", hex(Conversions.toByteBuffer(type, value)));
		for (String text : TRANSFORMS) {
			@SuppressWarnings("unchecked")
			Transform<Object, Object> transform = (Transform<Object, Object>) Transforms.fromString(text);
			if (!transform.canTransform(type) || overflows(type, text, value))
				continue;
			Object result = transform.bind(type).apply(value);
			Type to = transform.getResultType(type);
			ArrayNode a = t.putArray(text);
			a.add(result == null ? null : hex(Conversions.toByteBuffer(to, result)));
			a.add(transform.toHumanString(to, result));
		}
		o.set("t", t);
		return o;
	}

	static ObjectNode bound(String type, ByteBuffer in, int length) {
		ObjectNode o = JSON.createObjectNode();
		o.put("type", type);
		o.put("bytes", hex(in));
		o.put("length", length);
		if (type.equals("string")) {
			Literal<CharSequence> s = Literal.of(StandardCharsets.UTF_8.decode(in.duplicate()).toString());
			o.put("lower", hex(UnicodeUtil.truncateStringMin(s, length).toByteBuffer()));
			Literal<CharSequence> up = UnicodeUtil.truncateStringMax(s, length);
			o.put("upper", up == null ? null : hex(up.toByteBuffer()));
		} else {
			Literal<ByteBuffer> up = BinaryUtil.truncateBinaryMax(Literal.of(in), length);
			o.put("lower", hex(BinaryUtil.truncateBinaryMin(Literal.of(in), length).toByteBuffer()));
			o.put("upper", up == null ? null : hex(up.toByteBuffer()));
		}
		return o;
	}

	/* Single-value JSON as a client may send it, right and wrong. */
	static final String[][] DEFAULTS = {
		{"boolean", "true", "false", "0", "\"true\""},
		{"int", "0", "-1", "2147483647", "-2147483648", "2147483648", "1.0", "1.5", "\"1\"", "true"},
		{"long", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5", "\"1\""},
		{"float", "0", "-0.0", "1", "0.1", "3.4028235E38", "1e39", "1e-50", "\"1.0\"", "\"NaN\"", "true"},
		{"double", "0", "-0.0", "0.1", "1.7976931348623157E308", "5e-324", "\"1.0\"", "\"Infinity\""},
		{"decimal(9, 2)", "\"14.20\"", "\"-14.20\"", "\"0.00\"", "\"14.2\"", "\"14\"", "\"9999999.99\"",
			"\"99999999.99\"", "14.20", "\"x\"", "\"\""},
		{"decimal(38, 0)", "\"99999999999999999999999999999999999999\"", "\"100000000000000000000000000000000000000\""},
		{"date", "\"2017-11-16\"", "\"1969-12-31\"", "\"0001-01-01\"", "\"+12017-11-16\"", "\"-0044-03-15\"",
			"\"2023-02-29\"", "\"2024-02-29\"", "\"2017-11-16T00:00\"", "17486", "\"2017-1-1\""},
		{"time", "\"22:31:08.123456\"", "\"22:31:08\"", "\"22:31:08.5\"", "\"23:59:59.999999\"", "\"24:00:00\"",
			"\"22:31:60\"", "1"},
		{"timestamp", "\"2017-11-16T22:31:08.123456\"", "\"2017-11-16T22:31:08\"", "\"1969-12-31T23:59:59.999999\"",
			"\"2017-11-16T22:31:08.12\"", "\"2017-11-16T22:31:08Z\"", "\"2017-11-16T22:31:08+00:00\"",
			"\"2017-11-16 22:31:08\"", "\"2017-11-16\"", "1"},
		{"timestamptz", "\"2017-11-16T22:31:08.123456+00:00\"", "\"2017-11-16T22:31:08Z\"",
			"\"2017-11-16T22:31:08-07:00\"", "\"2017-11-16T22:31:08\""},
		{"timestamp_ns", "\"2017-11-16T22:31:08.123456789\"", "\"2017-11-16T22:31:08.12\"", "\"2017-11-16T22:31:08\"",
			"\"1969-12-31T23:59:59.999999999\"", "\"2262-04-11T23:47:16.854775807\"",
			"\"1677-09-21T00:12:43.145224192\"", "\"2262-04-11T23:47:16.854775808\"", "\"2300-01-01T00:00:00\"",
			"\"2017-11-16T22:31:08Z\""},
		{"timestamptz_ns", "\"2017-11-16T22:31:08.123456789+00:00\"", "\"2017-11-16T22:31:08.5Z\"",
			"\"2017-11-16T22:31:08.5+01:00\"", "\"2017-11-16T22:31:08.5\""},
		{"string", "\"\"", "\"iceberg\"", "\"\\u0000\\ud83d\\ude00\"", "1", "true"},
		{"uuid", "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"", "\"F79C3E09-677C-4BBD-A479-3F349CB785E7\"",
			"\"f79c3e09\"", "\"f79c3e09677c4bbda4793f349cb785e7\"", "1"},
		{"fixed[4]", "\"000102ff\"", "\"000102FF\"", "\"000102\"", "\"000102fff\"", "\"000102ff00\"", "\"0001zzff\""},
		{"binary", "\"\"", "\"000102ff\"", "\"0\"", "\"zz\"", "1"},
	};

	static ObjectNode parsed(String type, String text) throws Exception {
		ObjectNode o = JSON.createObjectNode();
		Type.PrimitiveType t = Types.fromPrimitiveString(type);
		o.put("type", t.toString());
		o.put("text", text);
		try {
			o.put("bytes", hex(Conversions.toByteBuffer(t, SingleValueParser.fromJson(t, text))));
		} catch (RuntimeException refused) {
			o.putNull("bytes");
		}
		return o;
	}

	static final List<String> KINDS = List.of("boolean", "int", "long", "float", "double", "date", "time", "timestamp",
		"timestamptz", "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[3]", "fixed[4]", "binary",
		"decimal(9, 2)", "decimal(9, 3)", "decimal(18, 2)", "unknown", "variant", "geometry", "geometry(srid:4326)",
		"geography");

	static void print(PrintStream out, String name, List<? extends JsonNode> rows, boolean last) throws Exception {
		out.println("\"" + name + "\": [");
		for (int i = 0; i < rows.size(); i++)
			out.println(ascii(JSON.writeValueAsString(rows.get(i))) + (i + 1 < rows.size() ? "," : ""));
		out.println("]" + (last ? "" : ","));
	}

	static String ascii(String s) {
		StringBuilder b = new StringBuilder();
		for (char c : s.toCharArray())
			b.append(c < 0x7f ? String.valueOf(c) : String.format("\\u%04x", (int) c));
		return b.toString();
	}

	public static void main(String[] args) throws Exception {
		List<ObjectNode> accepts = new ArrayList<>(), rows = new ArrayList<>(), bounds = new ArrayList<>(),
			promotes = new ArrayList<>(), defaults = new ArrayList<>();
		for (String kind : KINDS) {
			Type type = Types.fromTypeName(kind);
			ObjectNode o = JSON.createObjectNode();
			o.put("type", type.toString());
			ArrayNode a = o.putArray("transforms");
			for (String text : TRANSFORMS)
				if (Transforms.fromString(text).canTransform(type))
					a.add(text);
			accepts.add(o);
			ArrayNode to = JSON.createArrayNode();
			for (String other : KINDS)
				if (!other.equals("variant") && TypeUtil.isPromotionAllowed(type, Types.fromPrimitiveString(other)))
					to.add(Types.fromPrimitiveString(other).toString());
			o = JSON.createObjectNode();
			o.put("type", type.toString());
			o.set("to", to);
			promotes.add(o);
		}
		for (Map.Entry<Type.PrimitiveType, List<Object>> e : values().entrySet())
			for (Object value : e.getValue())
				rows.add(row(e.getKey(), value));
		for (String s : texts())
			for (int n : new int[] {1, 2, 16})
				bounds.add(bound("string", ByteBuffer.wrap(s.getBytes(StandardCharsets.UTF_8)), n));
		for (byte[] b : blobs())
			for (int n : new int[] {1, 2, 16})
				bounds.add(bound("binary", ByteBuffer.wrap(b), n));
		for (String[] line : DEFAULTS)
			for (int i = 1; i < line.length; i++)
				defaults.add(parsed(line[0], line[i]));
		PrintStream out = new PrintStream(System.out, false, "US-ASCII");
		out.println("{\"made_by\": \"iceberg-java " + args[0] + "\",");
		print(out, "accepts", accepts, false);
		print(out, "rows", rows, false);
		print(out, "bounds", bounds, false);
		print(out, "promotes", promotes, false);
		print(out, "defaults", defaults, true);
		out.println("}");
		out.flush();
	}
}
