package org.apache.iceberg;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.File;
import java.io.InputStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/**
 * Writes manifests and manifest lists of format versions 1 to 3 with the Java library and, beside
 * them, what the Java library reads back from them (inheritance applied) as JSON. Lives in the
 * library's package because the writer of manifest lists is not public.
 */
public class MakeManifests {
  static final String ROOT = "memory:/golden/";
  static final long SNAPSHOT = 3055729675574597004L;
  static final long PARENT = 3051729675574597004L;
  static final long SEQ = 34;
  final InMemoryFileIO io = new InMemoryFileIO();
  final Path out;

  MakeManifests(String dir) {
    out = new File(dir).toPath();
  }

  static Schema schema(int version) {
    List<Types.NestedField> f = new ArrayList<>();
    f.add(Types.NestedField.required(1, "id", Types.LongType.get()));
    f.add(Types.NestedField.optional(2, "b", Types.BooleanType.get()));
    f.add(Types.NestedField.optional(3, "i", Types.IntegerType.get()));
    f.add(Types.NestedField.optional(4, "l", Types.LongType.get()));
    f.add(Types.NestedField.optional(5, "f", Types.FloatType.get()));
    f.add(Types.NestedField.optional(6, "d", Types.DoubleType.get()));
    f.add(Types.NestedField.optional(7, "dt", Types.DateType.get()));
    f.add(Types.NestedField.optional(8, "t", Types.TimeType.get()));
    f.add(Types.NestedField.optional(9, "ts", Types.TimestampType.withoutZone()));
    f.add(Types.NestedField.optional(10, "tz", Types.TimestampType.withZone()));
    f.add(Types.NestedField.optional(11, "s", Types.StringType.get()));
    f.add(Types.NestedField.optional(12, "u", Types.UUIDType.get()));
    f.add(Types.NestedField.optional(13, "fx", Types.FixedType.ofLength(5)));
    f.add(Types.NestedField.optional(14, "bin", Types.BinaryType.get()));
    f.add(Types.NestedField.optional(15, "dec", Types.DecimalType.of(11, 2)));
    f.add(Types.NestedField.optional(16, "dec2", Types.DecimalType.of(38, 10)));
    if (version >= 3) {
      f.add(Types.NestedField.optional(17, "ns", Types.TimestampNanoType.withoutZone()));
      f.add(Types.NestedField.optional(18, "nz", Types.TimestampNanoType.withZone()));
    }
    return new Schema(7, f);
  }

  /**
   * Every transform and every type as the result of a transform; names that Avro does not take. All
   * but fixed: this version writes a length before a fixed partition value, which Avro's encoding
   * does not have.
   */
  static PartitionSpec spec(int version, boolean nanos, int id) {
    PartitionSpec.Builder b = PartitionSpec.builderFor(schema(version)).withSpecId(id);
    b.identity("b").identity("i").identity("l").identity("f").identity("d").identity("dt");
    b.identity("t").identity("ts").identity("tz").identity("s").identity("u");
    b.identity("bin").identity("dec").identity("dec2");
    if (nanos) {
      b.identity("ns").identity("nz");
    }
    b.bucket("id", 16, "1 id.bucket").truncate("s", 4, "s-trunc\u00e9").truncate("dec", 10);
    b.year("dt", "y").month("ts", "m").day("tz", "day").alwaysNull("u", "gone");
    if (nanos) {
      b.hour("ns", "h");
    }
    return b.build();
  }

  /** 0 is unpartitioned; 4 is 3 without nanoseconds, which not every reader of manifests knows. */
  static Map<Integer, PartitionSpec> specs(int version) {
    Map<Integer, PartitionSpec> specs = new TreeMap<>();
    specs.put(0, PartitionSpec.builderFor(schema(version)).withSpecId(0).build());
    specs.put(3, spec(version, version >= 3, 3));
    if (version >= 3) {
      specs.put(4, spec(version, false, 4));
    }
    return specs;
  }

  static PartitionData tuple(PartitionSpec spec, int n) {
    PartitionData p = new PartitionData(spec.partitionType());
    List<Types.NestedField> fields = spec.partitionType().fields();
    for (int i = 0; i < fields.size(); i++) {
      if (n == 2 || fields.get(i).name().equals("gone")) {
        continue; // all null
      }
      p.set(i, value(fields.get(i).type(), n));
    }
    return p;
  }

  static Object value(Type t, int n) {
    switch (t.typeId()) {
      case BOOLEAN: return n == 1;
      case INTEGER: return n == 0 ? -7 : Integer.MAX_VALUE;
      case DATE: return n == 0 ? -1 : 19000;
      case LONG: return n == 0 ? Long.MIN_VALUE : 5_000_000_000L;
      case TIME: return n == 0 ? 0L : 86_399_999_999L;
      case TIMESTAMP:
      case TIMESTAMP_NANO: return n == 0 ? -1L : 1_700_000_000_123_456L;
      case FLOAT: return n == 0 ? Float.NaN : -0.5f;
      case DOUBLE: return n == 0 ? -0.0d : Double.NaN;
      case STRING: return n == 0 ? "" : "h\u00e9llo";
      case UUID: return n == 0 ? new UUID(0xf79c3e09677c4bbdL, 0xa4793f349cb785e7L) : new UUID(-1, -2);
      case FIXED: return ByteBuffer.wrap(n == 0 ? new byte[] {1, 2, 3, 4, 5} : new byte[] {-1, 0, 0, 0, 9});
      case BINARY: return ByteBuffer.wrap(n == 0 ? new byte[0] : new byte[] {0, -1, 127});
      case DECIMAL:
        int scale = ((Types.DecimalType) t).scale();
        return n == 0 ? new BigDecimal("-1.28").setScale(scale) : new BigDecimal("14200.10").setScale(scale);
      default: throw new IllegalArgumentException(t.toString());
    }
  }

  static <V> Map<Integer, V> map(V a, V b) {
    Map<Integer, V> m = new TreeMap<>();
    m.put(1, a);
    m.put(11, b);
    return m;
  }

  static ByteBuffer text(String s) {
    return ByteBuffer.wrap(s.getBytes(StandardCharsets.UTF_8));
  }

  static DataFile data(PartitionSpec spec, String name, int n, long records, Long firstRowId) {
    DataFiles.Builder b = DataFiles.builder(spec).withPath("s3://b/\u00e9/" + name).withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(1L << 40).withRecordCount(records);
    if (spec.isPartitioned()) {
      b.withPartition(tuple(spec, n));
    }
    if (n == 0) {
      b.withMetrics(new Metrics(records, map(100L, 1L << 33), map(records, records), map(0L, 3L), map(0L, 1L),
          map(ByteBuffer.allocate(8), text("a")), map(ByteBuffer.wrap(new byte[] {-1, -1, -1, -1, -1, -1, -1, 127}), text("z\u00e9"))));
      b.withSplitOffsets(List.of(4L, 1L << 35)).withSortOrder(SortOrder.unsorted())
          .withEncryptionKeyMetadata(ByteBuffer.wrap(new byte[] {9, 8, 7}));
    }
    if (firstRowId != null) {
      b.withFirstRowId(firstRowId);
    }
    return b.build();
  }

  ManifestFile dataManifest(int version, PartitionSpec spec, String name, boolean existing) throws Exception {
    ManifestWriter<DataFile> w = ManifestFiles.write(version, spec, io.newOutputFile(ROOT + name), SNAPSHOT);
    w.add(data(spec, "added-0.parquet", 0, 100, null));
    if (existing) {
      w.existing(data(spec, "existing-1.parquet", 1, 25, version >= 3 ? 900L : null), PARENT, 12, 11L);
      w.delete(data(spec, "deleted-2.parquet", 2, 7, null), 13, 13L);
      if (version >= 2) {
        w.add(data(spec, "compacted.parquet", 1, 60, null), 5);
      }
    }
    w.add(data(spec, "added-3.parquet", 2, 30, null));
    w.close();
    return w.toManifestFile();
  }

  ManifestFile deleteManifest(int version, PartitionSpec spec, String name) throws Exception {
    ManifestWriter<DeleteFile> w = ManifestFiles.writeDeleteManifest(version, spec, io.newOutputFile(ROOT + name), SNAPSHOT);
    PartitionData p = tuple(spec, 0);
    if (version == 2) {
      w.add(FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withPath("s3://b/pos.parquet").withFormat(FileFormat.PARQUET)
          .withPartition(p).withFileSizeInBytes(500).withRecordCount(3).withReferencedDataFile("s3://b/added-0.parquet").build());
    } else {
      w.add(FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withPath("s3://b/dv.puffin").withFormat(FileFormat.PUFFIN)
          .withPartition(p).withFileSizeInBytes(500).withRecordCount(3).withReferencedDataFile("s3://b/added-0.parquet")
          .withContentOffset(4).withContentSizeInBytes(46).build());
      w.existing(FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withPath("s3://b/dv.puffin").withFormat(FileFormat.PUFFIN)
          .withPartition(p).withFileSizeInBytes(500).withRecordCount(9).withReferencedDataFile("s3://b/added-3.parquet")
          .withContentOffset(50).withContentSizeInBytes(1L << 31).build(), PARENT, 12, 12L);
    }
    w.add(FileMetadata.deleteFileBuilder(spec).ofEqualityDeletes(1, 11).withPath("s3://b/eq.avro").withFormat(FileFormat.AVRO)
        .withPartition(tuple(spec, 1)).withFileSizeInBytes(77).withRecordCount(2).withSortOrder(SortOrder.unsorted()).build());
    w.close();
    return w.toManifestFile();
  }

  static String hex(ByteBuffer b) {
    StringBuilder s = new StringBuilder();
    ByteBuffer d = b.duplicate();
    while (d.hasRemaining()) {
      s.append(String.format("%02x", d.get()));
    }
    return s.toString();
  }

  static void hexOrNull(JsonGenerator g, String key, ByteBuffer b) throws Exception {
    if (b == null) {
      g.writeNullField(key);
    } else {
      g.writeStringField(key, hex(b));
    }
  }

  static void number(JsonGenerator g, String key, Number n) throws Exception {
    if (n == null) {
      g.writeNullField(key);
    } else {
      g.writeNumberField(key, n.longValue());
    }
  }

  static void longs(JsonGenerator g, String key, Map<Integer, Long> m) throws Exception {
    g.writeArrayFieldStart(key);
    if (m != null) {
      for (Map.Entry<Integer, Long> e : new TreeMap<>(m).entrySet()) {
        g.writeNumber(e.getKey());
        g.writeNumber(e.getValue());
      }
    }
    g.writeEndArray();
  }

  static void bounds(JsonGenerator g, String key, Map<Integer, ByteBuffer> m) throws Exception {
    g.writeArrayFieldStart(key);
    if (m != null) {
      for (Map.Entry<Integer, ByteBuffer> e : new TreeMap<>(m).entrySet()) {
        g.writeNumber(e.getKey());
        g.writeString(hex(e.getValue()));
      }
    }
    g.writeEndArray();
  }

  static void entry(JsonGenerator g, PartitionSpec spec, ManifestEntry<? extends ContentFile<?>> e) throws Exception {
    ContentFile<?> f = e.file();
    g.writeStartObject();
    g.writeNumberField("status", e.status().id());
    number(g, "snapshot_id", e.snapshotId());
    number(g, "sequence_number", e.dataSequenceNumber());
    number(g, "file_sequence_number", e.fileSequenceNumber());
    g.writeNumberField("content", f.content().id());
    g.writeStringField("file_path", f.location());
    g.writeStringField("file_format", f.format().toString());
    g.writeArrayFieldStart("partition");
    List<Types.NestedField> fields = spec.partitionType().fields();
    for (int i = 0; i < fields.size(); i++) {
      Object v = f.partition().get(i, Object.class);
      if (v == null) {
        g.writeNull();
      } else {
        g.writeString(hex(Conversions.toByteBuffer(fields.get(i).type(), v)));
      }
    }
    g.writeEndArray();
    number(g, "record_count", f.recordCount());
    number(g, "file_size_in_bytes", f.fileSizeInBytes());
    longs(g, "column_sizes", f.columnSizes());
    longs(g, "value_counts", f.valueCounts());
    longs(g, "null_value_counts", f.nullValueCounts());
    longs(g, "nan_value_counts", f.nanValueCounts());
    bounds(g, "lower_bounds", f.lowerBounds());
    bounds(g, "upper_bounds", f.upperBounds());
    hexOrNull(g, "key_metadata", f.keyMetadata());
    g.writeArrayFieldStart("split_offsets");
    if (f.splitOffsets() != null) {
      for (Long o : f.splitOffsets()) {
        g.writeNumber(o);
      }
    }
    g.writeEndArray();
    g.writeArrayFieldStart("equality_ids");
    if (f.equalityFieldIds() != null) {
      for (Integer id : f.equalityFieldIds()) {
        g.writeNumber(id);
      }
    }
    g.writeEndArray();
    number(g, "sort_order_id", f.sortOrderId());
    number(g, "first_row_id", f.firstRowId());
    DeleteFile d = f instanceof DeleteFile ? (DeleteFile) f : null;
    if (d == null || d.referencedDataFile() == null) {
      g.writeNullField("referenced_data_file");
    } else {
      g.writeStringField("referenced_data_file", d.referencedDataFile());
    }
    number(g, "content_offset", d == null ? null : d.contentOffset());
    number(g, "content_size_in_bytes", d == null ? null : d.contentSizeInBytes());
    g.writeEndObject();
  }

  void row(JsonGenerator g, ManifestFile m, Map<Integer, PartitionSpec> specs) throws Exception {
    g.writeStartObject();
    g.writeStringField("manifest_path", m.path());
    number(g, "manifest_length", m.length());
    number(g, "partition_spec_id", m.partitionSpecId());
    number(g, "content", m.content().id());
    number(g, "sequence_number", m.sequenceNumber());
    number(g, "min_sequence_number", m.minSequenceNumber());
    number(g, "added_snapshot_id", m.snapshotId());
    number(g, "added_files_count", m.addedFilesCount());
    number(g, "existing_files_count", m.existingFilesCount());
    number(g, "deleted_files_count", m.deletedFilesCount());
    number(g, "added_rows_count", m.addedRowsCount());
    number(g, "existing_rows_count", m.existingRowsCount());
    number(g, "deleted_rows_count", m.deletedRowsCount());
    g.writeArrayFieldStart("partitions");
    for (ManifestFile.PartitionFieldSummary s : m.partitions()) {
      g.writeStartObject();
      g.writeBooleanField("contains_null", s.containsNull());
      if (s.containsNaN() == null) {
        g.writeNullField("contains_nan");
      } else {
        g.writeBooleanField("contains_nan", s.containsNaN());
      }
      hexOrNull(g, "lower_bound", s.lowerBound());
      hexOrNull(g, "upper_bound", s.upperBound());
      g.writeEndObject();
    }
    g.writeEndArray();
    hexOrNull(g, "key_metadata", m.keyMetadata());
    number(g, "first_row_id", m.firstRowId());
    g.writeArrayFieldStart("entries");
    if (m.content() == ManifestContent.DATA) {
      for (ManifestEntry<DataFile> e : ManifestFiles.read(m, io, specs).entries()) {
        entry(g, specs.get(m.partitionSpecId()), e);
      }
    } else {
      for (ManifestEntry<DeleteFile> e : ManifestFiles.readDeleteManifest(m, io, specs).entries()) {
        entry(g, specs.get(m.partitionSpecId()), e);
      }
    }
    g.writeEndArray();
    g.writeEndObject();
  }

  void save(String name) throws Exception {
    try (InputStream in = io.newInputFile(ROOT + name).newStream()) {
      java.nio.file.Files.write(out.resolve(name), in.readAllBytes());
    }
  }

  void version(int v) throws Exception {
    Map<Integer, PartitionSpec> specs = specs(v);
    PartitionSpec plain = specs.get(0);
    List<String> names = new ArrayList<>();
    List<ManifestFile> manifests = new ArrayList<>();
    names.add("v" + v + "-data.avro");
    manifests.add(dataManifest(v, specs.get(3), names.get(0), true));
    names.add("v" + v + "-plain.avro");
    manifests.add(dataManifest(v, plain, names.get(1), false));
    if (v >= 2) {
      names.add("v" + v + "-deletes.avro");
      manifests.add(deleteManifest(v, specs.get(v == 2 ? 3 : 4), names.get(2)));
    }
    String list = "v" + v + "-list.avro";
    OutputFile o = io.newOutputFile(ROOT + list);
    try (ManifestListWriter w = ManifestLists.write(v, o, PlaintextEncryptionManager.instance(), SNAPSHOT,
        v == 2 ? null : PARENT, v == 1 ? 0 : SEQ, v >= 3 ? 1000L : null)) {
      w.addAll(manifests);
    }
    for (String n : names) {
      save(n);
    }
    save(list);
    dump(v, ROOT + list, specs);
  }

  void dump(int v, String list, Map<Integer, PartitionSpec> specs) throws Exception {
    try (JsonGenerator g = new JsonFactory().createGenerator(out.resolve("v" + v + ".json").toFile(),
        com.fasterxml.jackson.core.JsonEncoding.UTF8)) {
      g.useDefaultPrettyPrinter();
      g.writeStartObject();
      g.writeFieldName("schema");
      g.writeRawValue(SchemaParser.toJson(schema(v)));
      g.writeFieldName("specs");
      List<String> texts = new ArrayList<>();
      for (PartitionSpec s : new TreeMap<>(specs).values()) {
        texts.add(PartitionSpecParser.toJson(s));
      }
      g.writeRawValue("[" + String.join(",", texts) + "]");
      g.writeArrayFieldStart("rows");
      for (ManifestFile m : ManifestLists.read(io.newInputFile(list))) {
        row(g, m, specs);
      }
      g.writeEndArray();
      g.writeEndObject();
    }
  }

  /** Reads files that another writer left in the folder: lists v1-list.avro to v3-list.avro. */
  void read(int v) throws Exception {
    File[] files = out.toFile().listFiles((dir, name) -> name.startsWith("v" + v) && name.endsWith(".avro"));
    for (File f : files) {
      io.addFile(f.getPath(), java.nio.file.Files.readAllBytes(f.toPath()));
    }
    dump(v, out.resolve("v" + v + "-list.avro").toString(), specs(v));
  }

  public static void main(String[] args) throws Exception {
    for (int v = 1; v <= 3; v++) {
      if (args.length > 1) {
        new MakeManifests(args[0]).read(v);
      } else {
        new MakeManifests(args[0]).version(v);
      }
    }
  }
}
