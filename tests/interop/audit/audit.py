#!/usr/bin/env python3
"""Audit an Apache Iceberg table (format v1-v3) from its raw bytes.

Shares no code with any writer: Avro containers, Puffin, deletion-vector frames and Roaring bitmaps are parsed here
(fastavro only decodes datums, pyroaring only cross-checks); pyarrow reads Parquet footers and, with --scan, rows.
Prints one line a violation (RULE: object: detail) and exits 1; exits 0 if clean, 2 on a usage or load error.
INFO lines tell of oddities that readers tolerate; --strict makes those a careful writer avoids violations.
"""
import argparse, contextlib, json, os, re, struct, sys, urllib.parse, urllib.request
import pyarrow.parquet as pq
from rawice import *
from deleterules import DeleteRules
from metarules import MetadataRules
from scan import compare, scan


class Audit(MetadataRules, DeleteRules):
    def __init__(self, a):
        self.a, self.st, self.lines, self.reach, self.states, self.man, self.eff = a, Store(a.relocate), {}, {}, {}, {}, {}
        self.schemas, self.specs, self.snaps, self.files, self.puffins, self.dv, self.pos = {}, {}, {}, {}, {}, {}, {}
        self.types = {k: {v} for k, v in RESERVED.items()}

    def say(self, rule, obj, detail, level='BAD'):
        """level: BAD, SOFT (a violation only under --strict), INFO"""
        if rule in self.a.waive or level == 'INFO' or level == 'SOFT' and not self.a.strict:
            rule = 'INFO ' + rule
        self.lines[rule, str(obj), str(detail)] = None

    def need(self, ok, rule, obj, detail, level='BAD'):
        if not ok:
            self.say(rule, obj, detail, level)
        return ok

    @contextlib.contextmanager
    def guard(self, obj):
        try:
            yield
        except Fault as e:
            self.say(e.rule, obj, e.detail)
        except Exception as e:  # whatever a corrupt object does to the parsers
            self.say('CORRUPT', obj, f'{type(e).__name__}: {e}'[:300])

    def touch(self, loc, who):
        """Note that an object is referenced; its size, or None (a violation) if it does not exist"""
        self.reach.setdefault(self.st.key(loc), loc)
        n = self.st.size(loc)
        self.need(n is not None, 'REACH', loc, f'does not exist ({who})')
        return n

    # ------------------------------------------------------------ manifest list and manifests: loading

    def manifest(self, loc):
        if loc not in self.man:
            self.man[loc] = None
            with self.guard(loc):
                meta, schema, rows = read_avro(self.st.read(loc))
                fs = {f.get('field-id'): optional(f['type'])[1] for f in schema['fields']}
                df = fs[2]
                part = next(optional(f['type'])[1] for f in df['fields'] if f.get('field-id') == 102)
                out = []
                for r in rows:
                    r = by_id(schema, r)
                    d = by_id(df, r.pop(2))
                    e = {n: r.get(i) for i, (n, *_) in ENTRY.items() if i != 2}
                    e.update({n: d.get(i) for i, (n, *_) in FILE.items()})
                    e['partition'], e['content'] = {k: NAN if v != v else v for k, v in by_id(part, d[102]).items()}, e['content'] or 0
                    out.append(e)
                self.man[loc] = dict(header={k: x.decode('utf-8') for k, x in meta.items()}, schema=schema, df=df, part=part, rows=out)
        return self.man[loc]

    @staticmethod
    def version(header, schema):
        """The version that an Avro file states; else (DuckDB's lists state none) the one whose fields it has"""
        if 'format-version' in header:
            return int(header['format-version'])
        ids = {f.get('field-id') for f in schema['fields']}
        return 3 if 520 in ids else 2 if ids & {517, 3} else 1

    def entries(self, r, lfv):
        """The entries of a manifest with inherited values (sid, seq, fseq, rid) in the light of its list record"""
        key = r['manifest_path'], r['added_snapshot_id'], r['sequence_number'], r['first_row_id']
        if key not in self.eff:
            m, out, run = self.manifest(r['manifest_path']), [], r['first_row_id']
            old = m and self.version(m['header'], m['schema']) == 1
            for e in m['rows'] if m else []:
                add, e = e['status'] == ADDED, dict(e, spec=r['partition_spec_id'], manifest=r['manifest_path'])
                e['sid'] = r['added_snapshot_id'] if e['snapshot_id'] is None else e['snapshot_id']
                for k, src in (('seq', 'sequence_number'), ('fseq', 'file_sequence_number')):
                    e[k] = 0 if old else r['sequence_number'] if e[src] is None and add else e[src]
                e['rid'] = e['first_row_id']
                if e['status'] != DELETED and r['content'] == 0 and e['rid'] is None and run is not None:
                    e['rid'], run = run, run + e['record_count']
                if run is None and e['status'] != DELETED:
                    e['rid'] = None
                out.append(e)
            self.eff[key] = out, run
        return self.eff[key]

    def state(self, s):
        i = s['snapshot-id']
        if i not in self.states:
            self.states[i] = None
            with self.guard(f'snapshot {i}'):
                self.states[i] = self.load(s)
        return self.states[i]

    def load(self, s):
        st, o = State(), s['manifest-list']
        if self.touch(o, f"manifest list of {s['snapshot-id']}") is None:
            return None
        meta, st.schema, recs = read_avro(self.st.read(o))
        st.header = {k: x.decode('utf-8') for k, x in meta.items()}
        st.fv = self.version(st.header, st.schema)
        item = next((optional(f['type'])[1]['items'] for f in st.schema['fields'] if f.get('field-id') == 507), None)
        st.item, st.dups = item and optional(item)[1], []
        for r in recs:
            r = by_id(st.schema, r)
            r = {n: r.get(i) for i, (n, *_) in LIST.items()}
            for k in ('content', 'sequence_number', 'min_sequence_number'):
                r[k] = r[k] or 0
            r['partitions'] = [{n: by_id(st.item, p).get(i) for i, (n, *_) in SUMM.items()} for p in r['partitions'] or []]
            st.recs.append(r)
            if self.touch(r['manifest_path'], o) is None:
                continue
            for e in self.entries(r, st.fv)[0]:
                st.entries.append(e)
                if e['status'] == DELETED:
                    continue
                live = st.deletes if e['content'] else st.data
                if identity(e) in live:
                    st.dups.append(identity(e))
                live[identity(e)] = e
                if is_dv(e):
                    st.dvs.setdefault(e['referenced_data_file'], []).append(e)
                self.reach.setdefault(self.st.key(e['file_path']), e['file_path'])
        return st

    # ------------------------------------------------------------ checks of one snapshot

    def snapshot(self, s):
        i, o = s['snapshot-id'], f"snapshot {s['snapshot-id']}"
        st, p = self.state(s), self.snaps.get(s.get('parent-snapshot-id'))
        pst = self.state(p) if p else State() if s.get('parent-snapshot-id') is None else None
        if st is None:
            return
        with self.guard(s['manifest-list']):
            self.check_list(s, st, pst)
        for r in st.recs:
            if self.manifest(r['manifest_path']):
                with self.guard(r['manifest_path']):
                    self.check_manifest(r, s, st)
        for d in st.dups:
            self.say('FILE-DUP', o, f'{d} is live twice')
        for e in [*st.data.values(), *st.deletes.values()]:
            with self.guard(e['file_path']):
                self.check_file(e)
        with self.guard(o):
            self.check_deletes(s, st)
        with self.guard(o):
            self.check_rows(s, st, pst)
        with self.guard(o):
            if pst:
                self.check_kept_deletes(s, st, pst)
        with self.guard(o):
            self.check_summary(s, st, pst)

    def check_list(self, s, st, pst):
        i, o, h, seq = s['snapshot-id'], s['manifest-list'], st.header, s.get('sequence-number', 0)
        for d in check_fields(st.schema, LIST, st.fv):
            self.say('LIST-SCHEMA', o, d)
        for d in check_fields(st.item, SUMM, st.fv) if st.item else []:
            self.say('LIST-SCHEMA', o, 'partitions: ' + d)
        want = {'snapshot-id': i, 'parent-snapshot-id': s.get('parent-snapshot-id'), 'format-version': st.fv}
        want |= {'sequence-number': seq} if st.fv > 1 else {}
        want |= {'first-row-id': s.get('first-row-id')} if st.fv > 2 else {}
        for k, x in want.items():
            x = 'null' if x is None else str(x)
            self.need(h.get(k) == x, 'LIST-HEADER', o, f'{k} is {h.get(k)}, not {x}')
        self.need(st.fv <= self.v and (st.fv > 2) == ('first-row-id' in s), 'LIST-HEADER', o, f'format-version {st.fv}')
        paths = [r['manifest_path'] for r in st.recs]
        self.need(len(set(paths)) == len(paths), 'LIST-DUP', o, 'a manifest is listed twice')
        before = {r['manifest_path']: r for r in pst.recs} if pst else None
        run = s.get('first-row-id')
        for r in st.recs:
            m, q = r['manifest_path'], before.get(r['manifest_path']) if before is not None else None
            n = self.st.size(m)
            self.need(n in (None, r['manifest_length']), 'LIST-LENGTH', m, f"manifest_length {r['manifest_length']}, is {n} bytes")
            self.need(r['partition_spec_id'] in self.specs, 'LIST-SPEC', m, f"partition_spec_id {r['partition_spec_id']} unknown")
            self.need(r['content'] in (0, 1), 'LIST-CONTENT', m, f"content {r['content']}")
            new, lseq = r['added_snapshot_id'] == i, r['sequence_number']
            self.need(lseq == seq if new and st.fv > 1 else lseq <= seq, 'LIST-SEQ', m, f'sequence_number {lseq} in snapshot {seq}')
            if before is not None:
                self.need(new == (q is None), 'LIST-KEPT', m, 'kept manifest has this snapshot as added_snapshot_id, or the reverse')
                diff = [k for k in r if q and r[k] != q[k] and pst.fv == st.fv and not (
                    k == 'first_row_id' and (q[k] is None or r['content'] == 1 and r[k] is None))]
                self.need(not diff, 'LIST-KEPT', m, f"kept manifest's {diff} differ from the parent's list")
            es, end = self.entries(r, st.fv)
            count = lambda x, y: sum(y(e) for e in es if e['status'] == x)
            for k, x in (('added', 1), ('existing', 0), ('deleted', 2)):
                for kk, y in (('files', lambda e: 1), ('rows', lambda e: e['record_count'])):
                    got = r[f'{k}_{kk}_count']
                    self.need(got == count(x, y) or got is None and st.fv == 1, 'LIST-COUNTS', m,
                              f'{k}_{kk}_count {got}, holds {count(x, y)}')
            live = [e for e in es if e['status'] != DELETED]
            self.need(live or new, 'LIST-STALE', m, f"snapshot {s['snapshot-id']} kept it although nothing in it is live", 'SOFT')
            mn = min([e['seq'] or 0 for e in live] + [lseq])
            self.need(st.fv == 1 or r['min_sequence_number'] == mn, 'LIST-SEQ', m, f"min_sequence_number {r['min_sequence_number']}, holds {mn}")
            self.check_bounds(r, es, m)
            if st.fv < 3:
                continue
            first = r['first_row_id']
            if r['content'] == 1:
                self.need(first is None, 'LIST-ROWID', m, f'first_row_id {first} on a delete manifest')
            elif self.need(first is not None, 'LIST-ROWID', m, 'first_row_id is null') and (
                    q['first_row_id'] is None if q else new if before is not None else first >= s['first-row-id']):
                self.need(first >= run, 'LIST-ROWID', m, f'first_row_id {first} < {run}, assigned so far')
                run = max(run, end)
        self.need(st.fv < 3 or run <= s['first-row-id'] + s['added-rows'], 'LIN-CHAIN', o,
                  f"assigned up to {run}, first-row-id {s.get('first-row-id')} + added-rows {s.get('added-rows')}")

    def source(self, f, m=None):
        """possible types of a partition field's source column: in the manifest's own schema, else in any"""
        ids = {x['id']: x['type'] for x in m['fields'].values()} if m and m.get('fields') else {}
        t = ids.get(f.get('source-id'))
        return {t} if isinstance(t, str) else self.types.get(f.get('source-id'), set())

    def check_bounds(self, r, es, m):
        fields = self.specs.get(r['partition_spec_id'], [])
        if not r['partitions'] and any('uuid' in self.source(f) for f in fields):
            return  # readers differ on the order of uuids: without any summaries nothing is skipped
        if not self.need(len(r['partitions']) == len(fields), 'LIST-PARTS', m, f"{len(r['partitions'])} summaries, {len(fields)} fields"):
            return
        for f, p in zip(fields, r['partitions']):
            vals = [e['partition'].get(f['field-id']) for e in es]
            self.need(p['contains_null'] or None not in vals, 'LIST-PARTS', m, f"{f['name']}: a null, contains_null is false")
            self.need(not p['contains_null'] or None in vals, 'LIST-PARTS', m, f"{f['name']}: contains_null, but none", 'SOFT')
            vals = [v for v in vals if v is not None]
            nan = any(v != v for v in vals)
            self.need(not nan or p['contains_nan'] is not False, 'LIST-PARTS', m, f"{f['name']}: a NaN, contains_nan is false")
            t = max((result_type(f['transform'], x) for x in self.source(f)), key=lambda x: (x in ('long', 'double') or x[:4] == 'time', x), default=None)
            if t is None or f['transform'] == 'void':
                continue
            vals = sorted(raw(t, v) for v in vals if v == v)
            try:
                lo, hi = (None if p[k] is None else decode(t, p[k]) for k in ('lower_bound', 'upper_bound'))
            except (ValueError, struct.error) as x:
                self.say('LIST-PARTS', m, f"{f['name']}: bound: {x}")
                continue
            if vals:
                self.need(lo is not None and hi is not None and lo <= vals[0] and hi >= vals[-1], 'LIST-PARTS', m,
                          f"{f['name']}: bounds {lo}..{hi} do not hold {vals[0]}..{vals[-1]}")
            self.need((lo, hi) == ((vals[0], vals[-1]) if vals else (None, None)), 'LIST-PARTS', m, f"{f['name']}: loose bounds", 'SOFT')

    def check_manifest(self, r, s, st):
        loc, m = r['manifest_path'], self.man[r['manifest_path']]
        if m.setdefault('checked', False):
            return
        m['checked'], h = True, m['header']
        fv = self.version(h, m['schema'])
        for x in [*check_fields(m['schema'], ENTRY, fv), *check_fields(m['df'], FILE, fv)]:
            self.say('MAN-SCHEMA', loc, x)
        need = lambda ok, rule, d, level='BAD': self.need(ok, rule, loc, d, level)
        need(fv <= st.fv, 'MAN-HEADER', f'format-version {fv} in a list of version {st.fv}')
        need(h.get('partition-spec-id') == str(r['partition_spec_id']), 'MAN-HEADER', f"partition-spec-id {h.get('partition-spec-id')}")
        need(fv == 1 and 'content' not in h or h.get('content') == ('data', 'deletes')[r['content']], 'MAN-HEADER', f"content {h.get('content')}")
        fields = self.specs.get(r['partition_spec_id'], [])
        sig = lambda fs: [(f['name'], f['transform'], f.get('source-id'), f.get('field-id')) for f in fs]
        need(sig(loads(h['partition-spec'])) == sig(fields) or fv == 1, 'MAN-HEADER', 'partition-spec differs from the table')
        hs = loads(h['schema'])
        m['fields'] = walk(hs['fields'])
        known = self.schemas.get(hs.get('schema-id'))
        need(known is None or known['fields'] == hs['fields'], 'MAN-HEADER', f"schema differs from the table's {hs.get('schema-id')}")
        need(known or fv == 1, 'MAN-HEADER', f"schema {hs.get('schema-id')} is not in the table", 'SOFT')
        need(h.get('schema-id', '') == str(hs.get('schema-id')), 'MAN-HEADER', f"schema-id {h.get('schema-id')} (Java leaves it out)",
             'BAD' if 'schema-id' in h else 'SOFT')
        names, pf = {}, m['part']['fields']
        need([f.get('field-id') for f in pf] == [f['field-id'] for f in fields], 'MAN-PART', 'partition field-ids are not those of the spec')
        for a, f in zip(pf, fields):
            null, t = optional(a['type'])
            t = names.get(t, t) if isinstance(t, str) else names.setdefault(t['name'], t) if isinstance(t, dict) and 'name' in t else t
            want = [avro_result(result_type(f['transform'], x)) for x in self.source(f, m)]
            want += [('int', None, {})] * (f['transform'] == 'day')
            get = lambda k: t.get(k) if isinstance(t, dict) else None
            ok = not want or any(kind(t) == k and get('logicalType') == lt and all(get(x) == y for x, y in at.items()) for k, lt, at in want)
            need(null and a.get('default', 0) is None and ok, 'MAN-PART', f"{f['name']}: type {a['type']}")
            need(a.get('iceberg-field-name', a['name']) == f['name'], 'MAN-PART', f"{f['name']} is called {a['name']}")
        need(m['rows'], 'MAN-EMPTY', 'no entries')
        keys = [identity(e) for e in m['rows']]
        need(len(set(keys)) == len(keys), 'FILE-DUP', 'an entry twice in one manifest')
        own = self.snaps.get(r['added_snapshot_id'])
        pinned = own is None or (own.get('summary') or {}).get('operation') in ('replace', 'overwrite')  # compaction keeps old numbers
        for e in self.entries(r, st.fv)[0]:
            x, rs = f"entry {e['file_path']}: ", r['sequence_number']
            status = e['status']
            need(status in (0, 1, 2), 'MAN-ENTRY', x + f'status {status}')
            need(status == 0 or e['sid'] == r['added_snapshot_id'], 'MAN-SNAPID', x + f"snapshot_id {e['snapshot_id']}, status {status}")
            need(status == ADDED or e['snapshot_id'] is not None, 'MAN-SNAPID', x + 'snapshot_id is null on an old entry')
            if fv > 1 and status == ADDED:
                need(e['sequence_number'] in (None, rs) or pinned and not is_dv(e) and 0 <= e['sequence_number'] < rs, 'MAN-SEQ',
                     x + f"sequence_number {e['sequence_number']} on an added entry")
                need(e['file_sequence_number'] is None, 'MAN-SEQ', x + 'file_sequence_number on an added entry',
                     'SOFT' if e['file_sequence_number'] == rs else 'BAD')
            elif fv > 1:
                ok = e['sequence_number'] is not None and e['file_sequence_number'] is not None
                need(ok and e['sequence_number'] <= e['file_sequence_number'] <= rs, 'MAN-SEQ',
                     x + f"sequence numbers {e['sequence_number']}, {e['file_sequence_number']} on an old entry")
            need(e['content'] in ((0,), (1, 2))[r['content']], 'MAN-ENTRY', x + f"content {e['content']}")
            need(e['record_count'] >= 0 and e['file_size_in_bytes'] > 0, 'MAN-ENTRY', x + 'record_count or file_size_in_bytes')
            need(e['file_format'].lower() in ('parquet', 'avro', 'orc') or e['content'] == 1 and is_dv(e), 'MAN-ENTRY', x + e['file_format'])
            need((e['content'] == 2) == bool(e['equality_ids']), 'MAN-ENTRY', x + 'equality_ids')
            need(e['content'] == 1 or e['referenced_data_file'] is e['content_offset'] is e['content_size_in_bytes'] is None,
                 'MAN-ENTRY', x + 'deletion vector fields')
            need(e['sort_order_id'] is None or e['content'] != 1, 'MAN-ENTRY', x + 'sort_order_id on position deletes')
            need(e['sort_order_id'] in (None, *self.orders), 'MAN-ENTRY', x + 'sort_order_id is unknown', 'SOFT')
            so = e['split_offsets'] or []
            need(so == sorted(so) and all(0 <= n < e['file_size_in_bytes'] for n in so), 'MAN-ENTRY', x + 'split_offsets')
            need(e['content'] == 0 or e['first_row_id'] is None, 'LIN-EXPLICIT', x + 'first_row_id on deletes')
            need(status != ADDED or e['first_row_id'] is None, 'LIN-EXPLICIT', x + 'first_row_id on an added entry')
            need(status == ADDED or fv < 3 or e['content'] or e['first_row_id'] is not None, 'LIN-EXPLICIT',
                 x + 'first_row_id is null on an old entry', 'SOFT')  # legal in the first snapshot after an upgrade
            for d in metrics(e, self.types):
                need(False, 'FILE-METRICS', x + d)

    def check_file(self, e):
        """existence, size and record count, once a file"""
        loc = e['file_path']
        n = self.touch(loc, e['manifest'])
        self.need(n in (None, e['file_size_in_bytes']), 'FILE-SIZE', loc, f"file_size_in_bytes {e['file_size_in_bytes']}, is {n} bytes")
        if n is None or is_dv(e):
            return
        if loc not in self.files:
            self.files[loc] = None
            fmt = e['file_format'].lower()
            with self.st.open(loc) as f:
                self.files[loc] = pq.ParquetFile(f).metadata.num_rows if fmt == 'parquet' else len(read_avro(f.read())[2]) if fmt == 'avro' \
                    else __import__('pyarrow.orc').orc.ORCFile(f).nrows
        self.need(self.files[loc] in (None, e['record_count']), 'FILE-COUNT', loc, f"record_count {e['record_count']}, holds {self.files[loc]}")

    def check_rows(self, s, st, pst):
        """row ids: disjoint, below the limits, stable; live entries unchanged since the parent"""
        o = f"snapshot {s['snapshot-id']}"
        if st.fv > 2:
            top, last = s['first-row-id'] + s['added-rows'], (0, None)
            for f, n, path in sorted((e['rid'], e['record_count'], p) for p, e in st.data.items() if e['rid'] is not None):
                self.need(f >= last[0], 'LIN-OVERLAP', path, f'row ids from {f} overlap those of {last[1]} in {o}')
                self.need(f + n <= min(top, self.md.get('next-row-id', 0)), 'LIN-NEXT', path, f'row ids to {f + n}, {o} ends at {top}')
                last = max(last, (f + n, path))
        for e in st.entries if st.fv > 2 and pst else []:
            q = pst.data.get(e['file_path']) if e['content'] == 0 and e['status'] != ADDED else None
            self.need(not q or q['rid'] is None or e['rid'] == q['rid'], 'LIN-STABLE', e['file_path'], f"first_row_id {e['rid']}, parent has {q and q['rid']}")
        for mine, theirs in ((st.data, pst.data), (st.deletes, pst.deletes)) if pst else ():
            for k, e in mine.items():
                if q := theirs.get(k):
                    diff = [x for x in ('seq', 'fseq', 'sid', 'spec', 'partition', 'record_count', 'file_size_in_bytes', 'content',
                                        'content_size_in_bytes', 'referenced_data_file') if e[x] != q[x]]
                    self.need(not diff, 'ENTRY-STABLE', e['file_path'], f'{diff} changed in {o}')

    def check_summary(self, s, st, pst):
        o, i, summ, op = f"snapshot {s['snapshot-id']}", s['snapshot-id'], s.get('summary') or {}, (s.get('summary') or {}).get('operation')
        rows = lambda es: sum(e['record_count'] for e in es)
        ds = list(st.deletes.values())
        want = {'total-data-files': len(st.data), 'total-records': rows(st.data.values()), 'total-delete-files': len(ds),
                'total-position-deletes': rows(d for d in ds if d['content'] == 1), 'total-equality-deletes': rows(d for d in ds if d['content'] == 2),
                'total-files-size': sum(content_size(e) for e in [*st.data.values(), *ds])}
        psum = (self.snaps.get(s.get('parent-snapshot-id')) or {}).get('summary')
        for k, x in want.items():
            if k in summ or s.get('parent-snapshot-id') is None or psum and k in psum:
                self.need(summ.get(k) == str(x), 'SUM-TOTAL', o, f'{k} {summ.get(k)}, counted {x}')
            else:
                self.say('SUM-TOTAL', o, f'{k} is missing, counted {x}', 'SOFT')
        mine = [e for e in st.entries if e['sid'] == i and e['status'] in (1, 2)]
        add, rem = ([e for e in mine if e['status'] == x] for x in (1, 2))
        delta = {}
        for es, a, r in ((add, 'added', 'added'), (rem, 'removed', 'deleted')):
            data, dels = [e for e in es if e['content'] == 0], [e for e in es if e['content']]
            pos, eq, dv = [e for e in dels if e['content'] == 1], [e for e in dels if e['content'] == 2], [e for e in dels if is_dv(e)]
            delta |= {f'{r}-data-files': len(data), f'{r}-records': rows(data), f'{a}-delete-files': len(dels), f'{a}-dvs': len(dv),
                      f'{a}-position-delete-files': len(pos) - len(dv), f'{a}-position-deletes': rows(pos), f'{a}-equality-delete-files': len(eq),
                      f'{a}-equality-deletes': rows(eq), f'{a}-files-size': sum(map(content_size, es))}
        delta['changed-partition-count'] = len({tuple((k, float_bits(v)) for k, v in e['partition'].items()) for e in mine})
        new = sum(r['added_snapshot_id'] == i for r in st.recs)
        if 'manifests-created' in summ:
            delta |= {'manifests-created': new, 'manifests-kept': len(st.recs) - new}
        for k, x in delta.items():
            self.need(summ.get(k, '0') == str(x), 'SUM-DELTA', o, f'{k} {summ.get(k)}, counted {x}',
                      'SOFT' if k == 'changed-partition-count' and k not in summ else 'BAD')
        n = delta
        bad = {'append': n['deleted-data-files'] or n['added-delete-files'] or n['removed-delete-files'] or not n['added-data-files'] and mine,
               'delete': n['added-data-files'],
               'overwrite': not n['deleted-data-files'] and not (n['added-data-files'] and n['added-delete-files']) and 'replace-partitions' not in summ
               and s.get('parent-snapshot-id') is not None,
               'replace': n['added-records'] > n['deleted-records']}.get(op)
        self.need(not bad, 'SUM-OP', o, f'{op}, but it adds {n["added-data-files"]} data and {n["added-delete-files"]} delete files and removes '
                  f'{n["deleted-data-files"]} and {n["removed-delete-files"]}')
        if not pst:
            return
        if op == 'replace' and None not in (st.live_rows(), pst.live_rows()):
            self.need(st.live_rows() == pst.live_rows(), 'SUM-OP', o, f'replace changes the rows from {pst.live_rows()} to {st.live_rows()}')
        for a, b, es, word in ((st, pst, add, 'added'), (pst, st, rem, 'deleted')):
            diff = (a.data.keys() - b.data.keys()) | (a.deletes.keys() - b.deletes.keys())
            for k in diff ^ {identity(e) for e in es}:
                self.say('SUM-DIFF', o, f"{k}: {'not marked' if k in diff else 'marked'} {word}, against the difference with the parent")

    # ------------------------------------------------------------ whole table

    def orphans(self):
        have = {k for k in (self.st.key(x) for x in self.st.list(self.md['location']))}
        have = {k for k in have if not re.search(r'(^|/)(\.[^/]*\.crc|version-hint\.text)$', k)}
        for k in sorted(have - set(self.reach) - {self.st.key(self.path)}):
            self.say('ORPHAN', k, 'not referenced', 'BAD' if self.a.no_orphans else 'INFO')

    def run(self, md, path):
        self.refs, self.audited = {}, 0
        with self.guard('metadata'):
            self.metadata(md, path)
        todo = list(self.snaps.values())
        if not self.a.all_snapshots:
            r = self.refs.get(self.a.ref)
            self.need(r or self.a.ref == 'main', 'META-REF', self.a.ref, 'no such ref')
            todo = [self.snaps[r['snapshot-id']]] if r and r['snapshot-id'] in self.snaps else []
        self.audited = len(todo)
        for s in sorted(todo, key=lambda s: s.get('sequence-number', 0)):
            self.snapshot(s)
        if not self.a.skip_orphans:
            for s in self.snaps.values():
                self.state(s)
            with self.guard('orphans'):
                self.orphans()
        else:
            for s in self.snaps.values():
                self.touch(s['manifest-list'], f"manifest list of {s['snapshot-id']}")
        if self.a.all_snapshots:  # across branches: one file, one range
            with self.guard('row ids'):
                spans, last = {(e['rid'], p): e['record_count'] for st in self.states.values() if st and st.fv > 2
                               for p, e in st.data.items() if e['rid'] is not None}, (0, None)
                for (f, p), n in sorted(spans.items()):
                    self.need(f >= last[0] or p == last[1], 'LIN-OVERLAP', p, f'row ids from {f} overlap those of {last[1]}')
                    last = max(last, (f + n, p))


def from_rest(a):
    def get(path):
        q = urllib.request.Request(a.uri.rstrip('/') + path, headers={'Authorization': 'Bearer ' + a.token} if a.token else {})
        with urllib.request.urlopen(q, timeout=60) as r:
            return loads(r.read())
    if a.prefix is None:
        c = get('/v1/config')
        a.prefix = c.get('overrides', {}).get('prefix') or c.get('defaults', {}).get('prefix') or ''
    ns, name = a.table.rsplit('.', 1)
    q = lambda x: urllib.parse.quote(x, safe='')
    r = get(f"/v1/{a.prefix + '/' if a.prefix else ''}namespaces/{'%1F'.join(map(q, ns.split('.')))}/tables/{q(name)}")
    return r['metadata-location'], r['metadata']


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    src = p.add_mutually_exclusive_group(required=True)
    src.add_argument('--uri', help='REST catalog, without /v1')
    src.add_argument('--metadata', help='location of a metadata.json')
    p.add_argument('--prefix', help='REST prefix (default: ask /v1/config)')
    p.add_argument('--token', help='bearer token')
    p.add_argument('--table', help='ns.tbl, with --uri')
    p.add_argument('--ref', default='main', help='audit the head of this branch or tag (default main)')
    p.add_argument('--all-snapshots', action='store_true', help='audit every snapshot in depth')
    p.add_argument('--no-orphans', action='store_true', help='orphan objects are violations')
    p.add_argument('--skip-orphans', action='store_true', help='neither list orphans nor read the other snapshots for that')
    p.add_argument('--strict', action='store_true', help='habits that readers tolerate are violations too')
    p.add_argument('--waive', default='', help='rules (comma-separated) that are only reported as INFO')
    p.add_argument('--relocate', metavar='OLD=NEW', help='read locations that begin with OLD under NEW (a copied table)')
    p.add_argument('--json', action='store_true', help='one JSON object instead of lines')
    p.add_argument('--scan', action='store_true', help='print the rows of --ref, sorted, and a digest')
    p.add_argument('-q', '--quiet', action='store_true', help='no INFO lines')
    a = p.parse_args(argv)
    a.waive = set(filter(None, a.waive.split(',')))
    au = Audit(a)
    try:
        if a.uri and not a.table:
            p.error('--uri needs --table')
        loc, served = from_rest(a) if a.uri else (a.metadata, None)
        md = read_metadata(au.st, loc)
    except Exception as e:
        print(f'cannot load the table: {type(e).__name__}: {e}', file=sys.stderr)
        return 2
    au.need(served in (None, md), 'REST-META', loc, f'differs from the metadata served in {[k for k in md if served and served.get(k) != md[k]]}')
    au.run(md, loc)
    r = au.refs.get(a.ref)
    if a.scan and r:
        with au.guard('scan'):
            scan(au, au.snaps[r['snapshot-id']])
        for s in au.snaps.values() if a.all_snapshots else ():
            with au.guard(f"scan of snapshot {s['snapshot-id']}"):
                compare(au, s)
    bad = [x for x in au.lines if not x[0].startswith('INFO ')]
    shown = bad if a.quiet else list(au.lines)
    if a.json:
        keys = ('rule', 'object', 'detail')
        print(json.dumps({'clean': not bad, 'metadata': loc, 'snapshots': len(au.snaps), 'audited': au.audited,
                          'violations': [dict(zip(keys, x)) for x in bad],
                          'info': [dict(zip(keys, (x[0][5:], *x[1:]))) for x in au.lines if x not in bad]}))
    else:
        for x in shown:
            print(': '.join(x), file=sys.stderr if a.scan else sys.stdout)
    return 1 if bad else 0


if __name__ == '__main__':
    status = main()
    sys.stdout.flush()
    os._exit(status)  # Arrow's threads may abort an orderly exit
