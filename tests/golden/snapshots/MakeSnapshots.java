package org.apache.iceberg;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.io.DeleteWriteResult;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.types.Types;

/** Runs sequences of operations and records, after each, the snapshot and every entry of its manifests. */
public class MakeSnapshots {
  static final ObjectMapper MAPPER = new ObjectMapper();
  static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "p", Types.IntegerType.get()));

  final InMemoryCatalog catalog = new InMemoryCatalog();
  final ArrayNode all = MAPPER.createArrayNode();
  final Map<String, DataFile> files = new HashMap<>();
  Table table;
  ArrayNode steps;
  List<Long> snapshots;

  static String path(String name) {
    return "file:///t/data/" + name + ".parquet";
  }

  static String name(String path) {
    return path.replace("file:///t/data/", "").replace(".parquet", "");
  }

  void sequence(String name, int version, String... properties) {
    ObjectNode o = all.addObject();
    o.put("name", name);
    o.put("version", version);
    ObjectNode p = o.putObject("properties");
    Map<String, String> map = new HashMap<>();
    for (int i = 0; i < properties.length; i += 2) {
      p.put(properties[i], properties[i + 1]);
      map.put(properties[i], properties[i + 1]);
    }
    map.put("format-version", Integer.toString(version));
    steps = o.putArray("steps");
    snapshots = new ArrayList<>();
    files.clear();
    table =
        catalog
            .buildTable(TableIdentifier.of("n", name), SCHEMA)
            .withPartitionSpec(PartitionSpec.unpartitioned())
            .withProperties(map)
            .create();
  }

  ObjectNode step(String op, String ref) {
    ObjectNode s = steps.addObject();
    s.put("op", op);
    s.put("ref", ref);
    return s;
  }

  DataFile file(String name, long records) {
    DataFile f =
        DataFiles.builder(PartitionSpec.unpartitioned())
            .withPath(path(name))
            .withFormat("PARQUET")
            .withRecordCount(records)
            .withFileSizeInBytes(records * 10)
            .build();
    files.put(name, f);
    return f;
  }

  void append(String ref, Object... namesAndRecords) {
    ObjectNode s = step("append", ref);
    ArrayNode list = s.putArray("files");
    AppendFiles a = table.newAppend().toBranch(ref);
    for (int i = 0; i < namesAndRecords.length; i += 2) {
      String n = (String) namesAndRecords[i];
      int records = (Integer) namesAndRecords[i + 1];
      list.addArray().add(n).add(records);
      a.appendFile(file(n, records));
    }
    a.commit();
    result(s, ref);
  }

  /** The live vector of a data file on a branch. */
  DeleteFile vector(String ref, String name) throws Exception {
    for (ManifestFile m : table.snapshot(ref).deleteManifests(table.io())) {
      try (ManifestReader<DeleteFile> r = ManifestFiles.readDeleteManifest(m, table.io(), table.specs())) {
        for (DeleteFile f : r) {
          if (path(name).equals(f.referencedDataFile())) {
            return f.copy();
          }
        }
      }
    }
    return null;
  }

  PositionDeleteIndex load(String ref, String path) {
    try {
      DeleteFile dv = vector(ref, name(path));
      if (dv == null) {
        return null;
      }
      InputFile in = table.io().newInputFile(dv.location());
      byte[] bytes = new byte[dv.contentSizeInBytes().intValue()];
      try (SeekableInputStream s = in.newStream()) {
        s.seek(dv.contentOffset());
        IOUtil.readFully(s, bytes, 0, bytes.length);
      }
      return PositionDeleteIndex.deserialize(bytes, dv);
    } catch (Exception e) {
      throw new RuntimeException(e);
    }
  }

  RowDelta vectors(String ref, ObjectNode s, Object... namesAndPositions) throws Exception {
    ArrayNode list = s.putArray("deletes");
    OutputFileFactory factory =
        OutputFileFactory.builderFor(table, 1, 1).format(FileFormat.PUFFIN).build();
    BaseDVFileWriter w = new BaseDVFileWriter(factory, p -> load(ref, p));
    for (int i = 0; i < namesAndPositions.length; i += 2) {
      String n = (String) namesAndPositions[i];
      String positions = (String) namesAndPositions[i + 1];
      list.addArray().add(n).add(positions);
      for (String part : positions.split(" ")) {
        String[] ends = part.split("-");
        for (long at = Long.parseLong(ends[0]); at <= Long.parseLong(ends[ends.length - 1]); at++) {
          w.delete(path(n), at, PartitionSpec.unpartitioned(), null);
        }
      }
    }
    w.close();
    DeleteWriteResult r = w.result();
    RowDelta d =
        table.newRowDelta().toBranch(ref).validateFromSnapshot(table.snapshot(ref).snapshotId());
    r.deleteFiles().forEach(d::addDeletes);
    r.rewrittenDeleteFiles().forEach(d::removeDeletes);
    return d;
  }

  void delete(String ref, Object... namesAndPositions) throws Exception {
    ObjectNode s = step("delete", ref);
    vectors(ref, s, namesAndPositions).commit();
    result(s, ref);
  }

  void update(String ref, String to, int records, Object... namesAndPositions) throws Exception {
    ObjectNode s = step("update", ref);
    RowDelta d = vectors(ref, s, namesAndPositions);
    s.putArray("files").addArray().add(to).add(records);
    d.addRows(file(to, records)).commit();
    result(s, ref);
  }

  void drop(String ref, String... names) throws Exception {
    ObjectNode s = step("drop", ref);
    ArrayNode list = s.putArray("deletes");
    DeleteFiles d = table.newDelete().toBranch(ref);
    for (String n : names) {
      list.addArray().add(n).add("0-" + (files.get(n).recordCount() - 1));
      d.deleteFile(files.get(n));
    }
    d.commit();
    result(s, ref);
  }

  void branch(String name) {
    step("branch", name);
    table.manageSnapshots().createBranch(name).commit();
  }

  void upgrade() {
    step("upgrade", "main");
    table.updateProperties().set("format-version", "3").commit();
  }

  <F extends ContentFile<F>> void entries(ManifestReader<F> r, long snapshot, TreeMap<String, ObjectNode> out)
      throws Exception {
    try (ManifestReader<F> reader = r) {
      for (ManifestEntry<F> e : reader.entries()) {
        ObjectNode o = MAPPER.createObjectNode();
        boolean data = e.file().content() == FileContent.DATA;
        String of = data ? e.file().location() : ((DeleteFile) e.file()).referencedDataFile();
        o.put("content", data ? "data" : "dv");
        o.put("name", name(of));
        o.put("status", e.status().toString());
        o.put("snapshot", snapshots.indexOf(e.snapshotId()));
        o.put("seq", e.dataSequenceNumber());
        o.put("file-seq", e.fileSequenceNumber());
        o.put("records", e.file().recordCount());
        if (data) {
          o.put("first-row-id", e.file().firstRowId());
        } else {
          o.put("blob", ((DeleteFile) e.file()).contentSizeInBytes());
        }
        out.put(o.get("content").asText() + " " + o.get("name").asText() + " " + e.status(), o);
      }
    }
  }

  void result(ObjectNode step, String ref) {
    try {
      table.refresh();
      TableMetadata m = ((BaseTable) table).operations().current();
      Snapshot s = table.snapshot(ref);
      snapshots.add(s.snapshotId());
      step.put("last-sequence-number", m.lastSequenceNumber());
      step.put("next-row-id", m.nextRowId());
      ObjectNode o = step.putObject("snapshot");
      o.put("sequence-number", s.sequenceNumber());
      o.put("parent", s.parentId() == null ? -1 : snapshots.indexOf(s.parentId()));
      o.put("first-row-id", s.firstRowId());
      o.put("added-rows", s.addedRows());
      o.put("operation", s.operation());
      ObjectNode summary = o.putObject("summary");
      new TreeMap<>(s.summary()).forEach(summary::put);
      TreeMap<String, ObjectNode> out = new TreeMap<>();
      ArrayNode manifests = step.putArray("manifests");
      for (ManifestFile f : s.allManifests(table.io())) {
        if (f.content() == ManifestContent.DATA) {
          entries(ManifestFiles.read(f, table.io(), table.specs()), s.snapshotId(), out);
        } else {
          entries(ManifestFiles.readDeleteManifest(f, table.io(), table.specs()), s.snapshotId(), out);
        }
        ObjectNode r = manifests.addObject();
        r.put("content", f.content() == ManifestContent.DATA ? "data" : "dv");
        r.put("seq", f.sequenceNumber());
        r.put("min-seq", f.minSequenceNumber());
        r.put("snapshot", snapshots.indexOf(f.snapshotId()));
        r.put("added-rows", f.addedRowsCount());
        r.put("existing-rows", f.existingRowsCount());
        r.put("deleted-rows", f.deletedRowsCount());
        r.put("first-row-id", f.firstRowId());
      }
      ArrayNode list = step.putArray("entries");
      out.values().forEach(list::add);
    } catch (Exception e) {
      throw new RuntimeException(e);
    }
  }

  void run() throws Exception {
    catalog.initialize("golden", Map.of());
    catalog.createNamespace(Namespace.of("n"));

    sequence("append", 3);
    append("main", "a", 125);
    append("main", "b", 100, "c", 90);

    sequence("vectors", 3);
    append("main", "a", 100, "b", 50);
    delete("main", "a", "3 5 7");
    delete("main", "a", "11 13");
    delete("main", "a", "20-49", "b", "0");
    delete("main", "b", "1-9 20-29");
    append("main", "c", 10);
    delete("main", "c", "9");

    sequence("drop", 3);
    append("main", "a", 100, "b", 50);
    append("main", "c", 30);
    delete("main", "a", "1-10", "b", "2");
    drop("main", "a");
    drop("main", "c");
    append("main", "d", 7);
    drop("main", "b", "d");
    append("main", "e", 5);

    sequence("update", 3);
    append("main", "a", 100, "b", 50);
    update("main", "c", 3, "a", "1-3");
    update("main", "d", 5, "a", "4 5", "b", "10-12");
    delete("main", "c", "0", "d", "4");

    sequence("branches", 3);
    append("main", "a", 100);
    branch("b");
    append("b", "x", 10);
    append("main", "y", 20);
    delete("b", "a", "1 2");
    delete("main", "a", "2-4", "y", "0");
    append("main", "z", 5);
    drop("b", "x");
    delete("b", "a", "3");

    sequence("upgrade", 2);
    append("main", "a", 125, "b", 100);
    append("main", "c", 90);
    upgrade();
    delete("main", "a", "0-14");
    append("main", "d", 11);
    drop("main", "b");

    sequence("old", 2);
    append("main", "a", 125);
    append("main", "b", 100);
  }

  public static void main(String[] args) throws Exception {
    MakeSnapshots m = new MakeSnapshots();
    m.run();
    MAPPER.writerWithDefaultPrettyPrinter().writeValue(new File(args[0]), m.all);
  }
}
