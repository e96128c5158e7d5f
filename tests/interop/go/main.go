// iceberg-go as an engine of the suite: one request a line on standard input, one answer a line on standard output.
// The judgement is the suite's; here stand the calls of the library, one operation each.
//
// usage: frazil-go URI
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/compaction"
	"github.com/apache/iceberg-go/view"
)

// request has what any operation may need; each takes its own part.
type request struct {
	Op, Table, To, Ref, Filter, Location, Name, SQL string
	Lineage, Purge                                  bool
	Snapshot                                        *int64
	Version                                         int
	Rows, More                                      json.RawMessage
	Spec                                            [][2]string // column, transform
	Properties                                      iceberg.Properties
	Removals                                        []string
	Tables                                          []string
	Reads                                           []request
}

var (
	ctx = context.Background()
	cat *rest.Catalog
)

func ident(name string) table.Identifier { return strings.Split(name, ".") }

func load(name string) *table.Table {
	return must(cat.LoadTable(ctx, ident(name)))
}

// must and check end the operation: its error is the answer.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func schema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int32},
		iceberg.NestedField{ID: 2, Name: "region", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "name", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 4, Name: "score", Type: iceberg.PrimitiveTypes.Float64})
}

func arrowTable(s *iceberg.Schema, rows json.RawMessage) arrow.Table {
	as := must(table.SchemaToArrowSchema(s, nil, false, false))
	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, as, strings.NewReader(string(rows)))
	check(err)
	return array.NewTableFromRecords(as, []arrow.RecordBatch{record})
}

// filter: "id = 3", "id >= 20", "region = eu".
func filter(text string) iceberg.BooleanExpression {
	if text == "" {
		return iceberg.AlwaysTrue{}
	}
	part := strings.Fields(text)
	column, value := iceberg.Reference(part[0]), part[2]
	if part[0] != "id" {
		return iceberg.EqualTo(column, value)
	}
	var n int32
	must(fmt.Sscan(value, &n))
	switch part[1] {
	case ">=":
		return iceberg.GreaterThanEqual(column, n)
	case "<":
		return iceberg.LessThan(column, n)
	}
	return iceberg.EqualTo(column, n)
}

func commit(tx *table.Transaction) *table.Table { return must(tx.Commit(ctx)) }

func rowsOf(reader array.RecordReader) []json.RawMessage {
	defer reader.Release()
	out := []json.RawMessage{}
	for reader.Next() {
		var some []json.RawMessage
		check(json.Unmarshal(must(reader.RecordBatch().MarshalJSON()), &some))
		out = append(out, some...)
	}
	check(reader.Err())
	return out
}

func scan(r request) []json.RawMessage {
	var opts []table.ScanOption
	if r.Snapshot != nil {
		opts = append(opts, table.WithSnapshotID(*r.Snapshot))
	}
	if r.Lineage {
		opts = append(opts, table.WithRowLineage())
	}
	s := load(r.Table).Scan(opts...)
	if r.Ref != "" && r.Snapshot == nil {
		s = must(s.UseRef(r.Ref))
	}
	got := must(s.ToArrowTable(ctx))
	defer got.Release()
	return rowsOf(array.NewTableReader(got, 1024))
}

func namespaces(parent table.Identifier) []table.Identifier {
	return must(cat.ListNamespaces(ctx, parent))
}

func expect(kind error, err error, what string) {
	if !errors.Is(err, kind) {
		panic(fmt.Errorf("%s: %v is not %v", what, err, kind))
	}
}

func updates(r request, us ...table.Update) any {
	t := load(r.Table)
	_, location, err := cat.CommitTable(ctx, ident(r.Table), []table.Requirement{table.AssertTableUUID(t.Metadata().TableUUID())}, us)
	check(err)
	return location
}

func refType(r request, kind table.RefType) any {
	id := load(r.Table).CurrentSnapshot().SnapshotID
	if r.Snapshot != nil {
		id = *r.Snapshot
	}
	return updates(r, table.NewSetSnapshotRefUpdate(r.Ref, id, kind, 86400000, 0, 0))
}

var operations = map[string]func(r request) any{
	"namespace": func(r request) any {
		ns := ident(r.Name)
		check(cat.CreateNamespace(ctx, ns, iceberg.Properties{"kind": "tests", "note": "ü"}))
		check(cat.CreateNamespace(ctx, append(ident(r.Name), "in1"), nil))
		check(cat.CreateNamespace(ctx, append(ident(r.Name), "in2"), nil))
		expect(catalog.ErrNamespaceAlreadyExists, cat.CreateNamespace(ctx, ns, nil), "create again")
		expect(catalog.ErrNamespaceNotEmpty, cat.DropNamespace(ctx, ns), "drop with some in it")
		expect(catalog.ErrNoSuchNamespace, cat.DropNamespace(ctx, table.Identifier{"absent"}), "drop what is not there")
		must(cat.UpdateNamespaceProperties(ctx, ns, []string{"note"}, iceberg.Properties{"more": "1"}))
		check(cat.DropNamespace(ctx, append(ident(r.Name), "in2")))
		return []any{namespaces(ns), must(cat.CheckNamespaceExists(ctx, ns)), must(cat.LoadNamespaceProperties(ctx, ns))}
	},
	"create": func(r request) any {
		opts := []catalog.CreateTableOpt{catalog.WithProperties(r.Properties)}
		if len(r.Spec) > 0 {
			var fields []iceberg.PartitionField
			for i, f := range r.Spec {
				source, _ := schema().FindFieldByName(f[0])
				fields = append(fields, iceberg.PartitionField{SourceIDs: []int{source.ID}, FieldID: 1000 + i, Name: "p_" + f[0],
					Transform: must(iceberg.ParseTransform(f[1]))})
			}
			spec := iceberg.NewPartitionSpec(fields...)
			opts = append(opts, catalog.WithPartitionSpec(&spec))
		}
		t, err := cat.CreateTable(ctx, ident(r.Table), schema(), opts...)
		if errors.Is(err, catalog.ErrTableAlreadyExists) {
			return "exists"
		}
		check(err)
		return t.MetadataLocation()
	},
	"rename": func(r request) any {
		must(cat.RenameTable(ctx, ident(r.Table), ident(r.To)))
		_, err := cat.LoadTable(ctx, ident(r.Table))
		expect(catalog.ErrNoSuchTable, err, "the old name")
		return must(cat.CheckTableExists(ctx, ident(r.To)))
	},
	"list": func(r request) any {
		out := []table.Identifier{}
		for t, err := range cat.ListTables(ctx, ident(r.Name)) {
			check(err)
			out = append(out, t)
		}
		return out
	},
	"drop": func(r request) any {
		if r.Purge {
			check(cat.PurgeTable(ctx, ident(r.Table)))
		} else {
			check(cat.DropTable(ctx, ident(r.Table)))
		}
		return nil
	},
	"register": func(r request) any {
		return must(cat.RegisterTable(ctx, ident(r.Table), r.Location)).MetadataLocation()
	},
	"append": func(r request) any {
		t := load(r.Table)
		tx := t.NewTransaction()
		if r.Ref != "" {
			tx = t.NewTransactionOnBranch(r.Ref)
		}
		check(tx.AppendTable(ctx, arrowTable(t.Schema(), r.Rows), 1024, nil))
		return commit(tx).MetadataLocation()
	},
	"overwrite": func(r request) any {
		t := load(r.Table)
		return must(t.OverwriteTable(ctx, arrowTable(t.Schema(), r.Rows), 1024, nil, table.WithOverwriteFilter(filter(r.Filter)))).MetadataLocation()
	},
	"delete": func(r request) any {
		return must(load(r.Table).Delete(ctx, filter(r.Filter), nil)).MetadataLocation()
	},
	"properties": func(r request) any {
		tx := load(r.Table).NewTransaction()
		check(tx.SetProperties(r.Properties))
		check(tx.RemoveProperties(r.Removals))
		order := must(table.NewSortOrder(1, []table.SortField{
			{SourceIDs: []int{2}, Transform: iceberg.IdentityTransform{}, Direction: table.SortASC, NullOrder: table.NullsLast},
			{SourceIDs: []int{1}, Transform: iceberg.BucketTransform{NumBuckets: 4}, Direction: table.SortDESC, NullOrder: table.NullsLast}}))
		check(tx.ReplaceSortOrder(order))
		return commit(tx).MetadataLocation()
	},
	"schema": func(r request) any {
		tx := load(r.Table).NewTransaction()
		u := tx.UpdateSchema(true, true).
			AddColumn([]string{"note"}, iceberg.PrimitiveTypes.String, "a note", false, nil).
			RenameColumn([]string{"name"}, "title").
			UpdateColumn([]string{"id"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}}).
			DeleteColumn([]string{"score"}).
			MoveFirst([]string{"note"})
		check(u.Commit())
		return commit(tx).MetadataLocation()
	},
	"narrow": func(r request) any {
		tx := load(r.Table).NewTransaction()
		check(tx.UpdateSchema(true, false).UpdateColumn([]string{"id"}, table.ColumnUpdate{
			FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int32, Valid: true}}).Commit())
		return commit(tx).MetadataLocation()
	},
	"spec": func(r request) any {
		tx := load(r.Table).NewTransaction()
		u := tx.UpdateSpec(true)
		for _, name := range r.Removals {
			u = u.RemoveField(name)
		}
		for _, f := range r.Spec {
			u = u.AddField(f[0], must(iceberg.ParseTransform(f[1])), "p_"+f[0])
		}
		check(u.Commit())
		return commit(tx).MetadataLocation()
	},
	"upgrade": func(r request) any {
		tx := load(r.Table).NewTransaction()
		check(tx.UpgradeFormatVersion(r.Version))
		return commit(tx).MetadataLocation()
	},
	"rollback": func(r request) any {
		tx := load(r.Table).NewTransaction()
		check(tx.RollbackToSnapshot(*r.Snapshot))
		return commit(tx).MetadataLocation()
	},
	"branch":   func(r request) any { return refType(r, table.BranchRef) },
	"tag":      func(r request) any { return refType(r, table.TagRef) },
	"drop-ref": func(r request) any { return updates(r, table.NewRemoveSnapshotRefUpdate(r.Ref)) },
	"as-of": func(r request) any {
		out := []int64{}
		t := load(r.Table)
		for _, s := range t.Metadata().Snapshots() {
			out = append(out, must(t.Scan(table.WithSnapshotAsOf(s.TimestampMs)).ToArrowTable(ctx)).NumRows())
		}
		return out
	},
	"inspect": func(r request) any {
		i := load(r.Table).Inspect()
		out := map[string]any{}
		for name, f := range map[string]func(context.Context) (array.RecordReader, error){
			"snapshots": i.Snapshots, "history": i.History, "refs": i.Refs, "files": i.DataFiles, "delete files": i.DeleteFiles,
			"manifests": i.Manifests, "entries": i.Entries, "partitions": i.Partitions, "position deletes": i.PositionDeletes} {
			out[name] = len(rowsOf(must(f(ctx))))
		}
		return out
	},
	"expire": func(r request) any {
		tx := load(r.Table).NewTransaction()
		check(tx.ExpireSnapshots(table.WithOlderThan(time.Millisecond), table.WithRetainLast(1)))
		return commit(tx).MetadataLocation()
	},
	"orphans": func(r request) any {
		got := must(load(r.Table).DeleteOrphanFiles(ctx, table.WithFilesOlderThan(72*time.Hour)))
		return got.DeletedFiles
	},
	"rewrite": func(r request) any {
		t := load(r.Table)
		var group table.CompactionTaskGroup
		for _, task := range must(t.Scan().PlanFiles(ctx)) {
			group.Tasks = append(group.Tasks, task)
			group.TotalSizeBytes += task.File.FileSizeBytes()
		}
		got := must(t.RewriteDataFiles(ctx, []table.CompactionTaskGroup{group}, table.RewriteDataFilesOptions{}))
		return []any{got.RemovedDataFiles, got.AddedDataFiles}
	},
	"plan": func(r request) any {
		cfg := compaction.DefaultConfig()
		cfg.MinInputFiles = 2
		return len(must(compaction.Analyze(ctx, load(r.Table), cfg)).Groups)
	},
	"manifests": func(r request) any {
		tx := load(r.Table).NewTransaction()
		got := must(tx.RewriteManifests(ctx))
		commit(tx)
		return []int{len(got.RewrittenManifests), len(got.AddedManifests)}
	},
	"statistics": func(r request) any {
		t := load(r.Table)
		s := t.CurrentSnapshot()
		return updates(r, table.NewSetStatisticsUpdate(table.StatisticsFile{
			SnapshotID: s.SnapshotID, StatisticsPath: t.Location() + "/metadata/counted.puffin", FileSizeInBytes: 100,
			FileFooterSizeInBytes: 50, BlobMetadata: []table.BlobMetadata{{Type: "apache-datasketches-theta-v1",
				SnapshotID: s.SnapshotID, SequenceNumber: s.SequenceNumber, Fields: []int32{1}, Properties: map[string]string{"ndv": "5"}}}}))
	},
	"transaction": func(r request) any {
		t := load(r.Table)
		tx := t.NewTransaction()
		check(tx.AppendTable(ctx, arrowTable(t.Schema(), r.Rows), 1024, nil))
		check(tx.SetProperties(iceberg.Properties{"a": "b"}))
		check(tx.Delete(ctx, filter(r.Filter), nil))
		return commit(tx).MetadataLocation()
	},
	"tables": func(r request) any {
		m := must(catalog.NewMultiTableTransaction(cat))
		for _, name := range r.Tables {
			t := load(name)
			tx := t.NewTransaction()
			check(tx.AppendTable(ctx, arrowTable(t.Schema(), r.Rows), 1024, nil))
			check(m.AddTransaction(tx))
		}
		if r.Ref != "" { // what comes between: the last table moves on
			other := load(r.Tables[len(r.Tables)-1])
			must(other.AppendTable(ctx, arrowTable(other.Schema(), r.More), 1024, nil))
		}
		return must(m.CommitAndReload(ctx))[0].MetadataLocation()
	},
	// Two handles of one table: the second one's commit finds the table changed.
	"conflict": func(r request) any {
		a, b := load(r.Table), load(r.Table)
		must(a.AppendTable(ctx, arrowTable(a.Schema(), r.Rows), 1024, nil))
		_, first := b.AppendTable(ctx, arrowTable(b.Schema(), r.More), 1024, nil)
		a, b = load(r.Table), load(r.Table)
		must(a.Delete(ctx, filter("id = 1"), nil))
		_, second := b.Delete(ctx, filter("id = 2"), nil)
		for _, err := range []error{first, second} {
			if err != nil && !errors.Is(err, rest.ErrCommitFailed) && !errors.Is(err, table.ErrCommitFailed) {
				panic(err)
			}
		}
		return []bool{first == nil, second == nil}
	},
	"view": func(r request) any {
		name := ident(r.Table)
		version := must(view.NewVersion(1, 0, []view.Representation{view.NewRepresentation(r.SQL, "trino")}, name[:len(name)-1]))
		must(cat.CreateView(ctx, name, version, iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "x", Type: iceberg.PrimitiveTypes.Int32})))
		_, err := cat.CreateView(ctx, name, version, schema())
		expect(catalog.ErrViewAlreadyExists, err, "create again")
		v := must(cat.LoadView(ctx, name))
		next := must(view.NewVersion(2, 0, []view.Representation{view.NewRepresentation("SELECT 2 AS x", "trino")}, name[:len(name)-1]))
		must(cat.UpdateView(ctx, name, nil, []view.Update{view.NewAddViewVersionUpdate(next), view.NewSetCurrentVersionUpdate(-1)}))
		w := must(cat.LoadView(ctx, name))
		must(cat.RenameView(ctx, name, append(append(table.Identifier{}, name[:len(name)-1]...), "view2")))
		listed := []table.Identifier{}
		for x, err := range cat.ListViews(ctx, name[:len(name)-1]) {
			check(err)
			listed = append(listed, x)
		}
		check(cat.DropView(ctx, listed[0]))
		return []any{v.Metadata().CurrentVersion().Representations[0].Sql, w.Metadata().CurrentVersion().Representations[0].Sql, listed,
			must(cat.CheckViewExists(ctx, listed[0]))}
	},
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/apache/iceberg-go" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "?"
}

func answer(r request) (out map[string]any) {
	defer func() {
		if e := recover(); e != nil {
			out = map[string]any{"error": fmt.Sprint(e)}
			if _, ours := e.(error); !ours {
				debug.PrintStack()
			}
		}
	}()
	switch r.Op {
	case "hello":
		return map[string]any{"ok": map[string]any{"engine": "iceberg-go", "version": version()}}
	case "read":
		return map[string]any{"ok": map[string]any{"rows": scan(r)}}
	case "read_many":
		all := []any{}
		for _, one := range r.Reads {
			one.Op = "read"
			all = append(all, answer(one))
		}
		return map[string]any{"ok": all}
	}
	f, known := operations[r.Op]
	if !known {
		return map[string]any{"error": "unknown request"}
	}
	return map[string]any{"ok": f(r)}
}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	cat = must(rest.NewCatalog(ctx, "ice", os.Args[1]))
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		check(err)
		var r request
		check(json.Unmarshal(line, &r))
		fmt.Println(string(must(json.Marshal(answer(r)))))
	}
}
