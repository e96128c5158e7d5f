#!/usr/bin/env python3
"""Tests of the auditor.

usage: selftest.py METADATA_JSON    corrupt copies of a clean V3 table in many ways, expect the right rule each time
"""
import base64, contextlib, copy, decimal, http.server, io, json, os, random, re, shutil, struct, sys, tempfile, threading, zlib
import fastavro, pyroaring
import audit
from rawice import Fault, bare, decode_dv, read_avro



def run(*args):
    """(exit status, {rule: count} of violations, everything printed)"""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        rc = audit.main([*args, '--json'])
    text = out.getvalue()
    rules = {}
    if rc in (0, 1):
        res = json.loads(text.splitlines()[-1])
        assert (rc == 0) == res['clean'] == (not res['violations'])
        for v in res['violations']:
            rules.setdefault(v['rule'], []).append(f"{v['object']}: {v['detail']}")
    return rc, rules, text


class Table:
    """A throw-away copy of a table whose files can be rewritten."""
    def __init__(self, metadata):
        metadata = re.sub('^file:/+', '/', metadata)
        self.old = src = re.sub('^file:/+', '/', json.load(open(metadata))['location'])
        self.dir = tempfile.mkdtemp(prefix='frazil-selftest-') + '/t'
        shutil.copytree(src, self.dir)
        self.metadata = os.path.join(self.dir, os.path.relpath(metadata, src))
        self.md = json.load(open(self.metadata))
        self.snaps = sorted(self.md['snapshots'], key=lambda s: -s['sequence-number'])

    def close(self):
        shutil.rmtree(os.path.dirname(self.dir))

    def path(self, loc):
        return re.sub('^file:/+', '/', loc).replace(self.old, self.dir)

    def args(self):
        return '--metadata', self.metadata, '--relocate', f'{self.old}={self.dir}', '--all-snapshots'

    def save(self):
        json.dump(self.md, open(self.metadata, 'w'))

    def read(self, loc):
        meta, schema, rows = read_avro(open(self.path(loc), 'rb').read())
        return {k: v.decode() for k, v in meta.items()}, schema, rows

    def write(self, loc, meta, schema, rows):
        body, f, sync = io.BytesIO(), io.BytesIO(), random.Random(1).randbytes(16)
        parsed = fastavro.parse_schema(bare(schema), _force=True)
        for r in rows:
            fastavro.schemaless_writer(body, parsed, r)
        z = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = z.compress(body.getvalue()) + z.flush()
        w = lambda t, v: fastavro.schemaless_writer(f, t, v)
        f.write(b'Obj\x01')
        w({'type': 'map', 'values': 'bytes'}, {k: v.encode() for k, v in dict(meta, **{
            'avro.schema': json.dumps(schema), 'avro.codec': 'deflate'}).items()})
        f.write(sync)
        if rows:
            w('long', len(rows))
            w('bytes', data)
            f.write(sync)
        open(self.path(loc), 'wb').write(f.getvalue())

    def edit_list(self, snap, fn):
        h, schema, recs = self.read(snap['manifest-list'])
        fn(h, schema, recs)
        self.write(snap['manifest-list'], h, schema, recs)

    def edit_manifest(self, loc, fn):
        h, schema, rows = self.read(loc)
        r = fn(h, schema, rows)
        self.write(loc, h, schema, rows if r is None else r)
        n = os.path.getsize(self.path(loc))
        for s in self.snaps:
            self.edit_list(s, lambda h, sc, recs: [r.update(manifest_length=n) for r in recs if r['manifest_path'] == loc])

    def find(self, pred):
        """(snapshot, manifest location, index) of the newest entry with pred(entry, list record, snapshot) in a new manifest"""
        for s in self.snaps:
            for r in self.read(s['manifest-list'])[2]:
                if r['added_snapshot_id'] == s['snapshot-id']:
                    for i, e in enumerate(self.read(r['manifest_path'])[2]):
                        if pred(e, r, s):
                            return s, r['manifest_path'], i
        raise SystemExit('the table has no entry that this mutation needs')

    def entry(self, pred, change):
        """Apply change(entry) to the newest entry found; the entry as it was"""
        s, loc, i = self.find(pred)
        old = []

        def fn(h, schema, rows):
            old.append(copy.deepcopy(rows[i]))
            change(rows[i])
        self.edit_manifest(loc, fn)
        return old[0]

    def dv_bytes(self, change):
        """Rewrite the newest live DV blob: change(bytearray of the frame), in place"""
        s, loc, i = self.find(dv(1))
        f = self.read(loc)[2][i]['data_file']
        p, o, n = self.path(f['file_path']), f['content_offset'], f['content_size_in_bytes']
        data = bytearray(open(p, 'rb').read())
        blob = data[o:o + n]
        change(blob)
        assert len(blob) == n
        data[o:o + n] = blob
        open(p, 'wb').write(data)

    def puffin_footer(self, change):
        s, loc, i = self.find(dv(1))
        f = self.read(loc)[2][i]['data_file']
        p = self.path(f['file_path'])
        data = open(p, 'rb').read()
        size = struct.unpack('<i', data[-12:-8])[0]
        start = len(data) - 12 - size
        foot = json.loads(data[start:-12])
        change(next(b for b in foot['blobs'] if b['offset'] == f['content_offset']))
        new = json.dumps(foot, separators=(',', ':')).encode()
        data = data[:start] + new + struct.pack('<i', len(new)) + data[-8:]
        open(p, 'wb').write(data)
        for s in self.snaps:  # keep file_size_in_bytes true
            for r in self.read(s['manifest-list'])[2]:
                if r['content'] == 1:
                    self.edit_manifest(r['manifest_path'], lambda h, sc, rows: [
                        e['data_file'].update(file_size_in_bytes=len(data)) if e['data_file']['file_path'] == f['file_path'] else None
                        for e in rows] and rows)


def dv(status):
    return lambda e, r, s: r['content'] == 1 and e['status'] == status and e['data_file']['file_format'].upper() == 'PUFFIN'


def data(status, more=lambda e: True):
    return lambda e, r, s: r['content'] == 0 and e['status'] == status and s.get('first-row-id') is not None and more(e)


def crc(blob):
    blob[-4:] = struct.pack('>I', zlib.crc32(blob[4:-4]))


def setf(**kw):
    return lambda e: e['data_file'].update(kw)


def sete(**kw):
    return lambda e: e.update(kw)


def head(t):
    return next(s for s in t.snaps if s['snapshot-id'] == t.md['current-snapshot-id'])


def last_value(blob, value):
    blob[-6:-4] = struct.pack('<H', value)
    crc(blob)


def rec(pred, **kw):
    """A mutation of the first list record, of the newest snapshot that has one, which is new and for which pred holds"""
    def m(t):
        for s in t.snaps:
            h, sc, recs = t.read(s['manifest-list'])
            for r in recs:
                if r['added_snapshot_id'] == s['snapshot-id'] and pred(r):
                    r.update({k: v(r[k]) if callable(v) else v for k, v in kw.items()})
                    return t.write(s['manifest-list'], h, sc, recs)
        raise SystemExit('no such list record')
    return m


def js(fn):
    def m(t):
        fn(t.md)
        t.save()
    return m


def hd(fn):
    return js(lambda md: fn(next(s for s in md['snapshots'] if s['snapshot-id'] == md['current-snapshot-id']), md))


def summary(**kw):
    def fn(s, md):
        for k, v in kw.items():
            s['summary'][k.replace('_', '-')] = v
    return hd(fn)


def header(kind, **kw):
    return lambda t: t.edit_manifest(t.find(lambda e, r, s: r["content"] == kind)[1],
                                     lambda h, sc, rows: h.update({k.replace('_', '-'): v for k, v in kw.items()}))


def lhead(**kw):
    return lambda t: t.edit_list(head(t), lambda h, sc, recs: h.update({k.replace('_', '-'): v for k, v in kw.items()}))


def field_id(where, old, new):
    def walk(x):
        if isinstance(x, dict):
            if x.get('field-id') == old:
                x['field-id'] = new
            for v in x.values():
                walk(v)
        elif isinstance(x, list):
            for v in x:
                walk(v)
    if where == 'list':
        return lambda t: t.edit_list(head(t), lambda h, sc, recs: walk(sc))
    return lambda t: t.edit_manifest(t.find(data(1) if where == 'data' else dv(1))[1], lambda h, sc, rows: walk(sc))


def gone(what):
    def m(t):
        s, loc, i = t.find(data(1) if what != 'puffin' else dv(1))
        p = t.path({'list': head(t)['manifest-list'], 'manifest': loc}.get(what) or t.read(loc)[2][i]['data_file']['file_path'])
        os.remove(p)
    return m


def truncate(t):
    s, loc, i = t.find(data(1))
    p = t.path(t.read(loc)[2][i]['data_file']['file_path'])
    open(p, 'ab').write(b'x')


def twice(pred):
    def m(t):
        s, loc, i = t.find(pred)
        t.edit_manifest(loc, lambda h, sc, rows: rows + [copy.deepcopy(rows[i])])
    return m


def second_dv(t):
    """another blob for the same data file, in the same Puffin file's place of another entry"""
    s, loc, i = t.find(dv(1))

    def fn(h, sc, rows):
        e = copy.deepcopy(rows[i])
        e['data_file']['content_offset'] += 1
        return rows + [e]
    t.edit_manifest(loc, fn)


def two_files_one_range(t):
    seen = []

    def pred(e, r, s):
        if data(0)(e, r, s) and e['data_file']['first_row_id'] is not None:
            seen.append(e['data_file']['first_row_id'])
            return len(set(seen)) > 1
    s, loc, i = t.find(pred)
    t.edit_manifest(loc, lambda h, sc, rows: rows[i]['data_file'].update(first_row_id=seen[0]))


def drop_entry(status, content):
    def m(t):
        s, loc, i = t.find(lambda e, r, s: e['status'] == status and r['content'] == content)
        t.edit_manifest(loc, lambda h, sc, rows: rows[:i] + rows[i + 1:])
    return m


def part_tuple(e):
    p = e['data_file']['partition']
    for k, v in p.items():
        p[k] = 'zz' if isinstance(v, str) else (v or 0) + 1


def bytes_at(loc_of, pos):
    def m(t):
        p = t.path(loc_of(t))
        b = bytearray(open(p, 'rb').read())
        b[pos] ^= 0x55
        open(p, 'wb').write(b)
    return m


def bound(t):
    def ch(e):
        e['data_file']['lower_bounds'][0]['value'] = b'\x01\x02\x03'
    t.entry(data(1, lambda e: e['data_file']['lower_bounds'] and len(e['data_file']['lower_bounds'][0]['value']) == 8), ch)


def wrong_bound(e):
    x = next(x for x in e['data_file']['upper_bounds'] if len(x['value']) == 8)
    x['value'] = (int.from_bytes(x['value'], 'little', signed=True) - 1).to_bytes(8, 'little', signed=True)


def forget(t, what=0):
    """a new DV that forgets one position of its predecessor (kept consistent with itself)"""
    def dvs(snap, status=(0, 1)):
        return {e['data_file']['referenced_data_file']: e['data_file'] for r in t.read(snap['manifest-list'])[2] if r['content'] == 1
                for e in t.read(r['manifest_path'])[2] if e['status'] in status and e['data_file']['file_format'] == 'PUFFIN'}
    ids = {s['snapshot-id']: s for s in t.snaps}
    for s in t.snaps:
        old, blobs = dvs(ids[s['parent-snapshot-id']]) if s.get('parent-snapshot-id') in ids else {}, dvs(s)
        for ref in old.keys() & blobs.keys():
            f, g = blobs[ref], old[ref]
            if (f['file_path'], f['content_offset']) == (g['file_path'], g['content_offset']):
                continue
            get = lambda f: bytearray(open(t.path(f['file_path']), 'rb').read())
            p, data, o, n = t.path(f['file_path']), get(f), f['content_offset'], f['content_size_in_bytes']
            pos, was = decode_dv(data[o:o + n]), decode_dv(get(g)[g['content_offset']:g['content_offset'] + g['content_size_in_bytes']])
            for free in set(range(max(pos))) - set(pos):
                bm = pyroaring.BitMap(set(pos) - {was[0]} | {free})
                bm.run_optimize()
                body = b'\xd1\xd3\x39\x64' + struct.pack('<QI', 1, 0) + bm.serialize()
                if len(body) + 8 == n:
                    data[o:o + n] = struct.pack('>I', n - 8) + body + struct.pack('>I', zlib.crc32(body))
                    return open(p, 'wb').write(data)
    raise SystemExit('no DV that replaced another')


def swap_rows(t):
    """compaction output whose rows got each other's row ids"""
    import pyarrow as pa, pyarrow.parquet as pq

    def pred(e, r, s):
        return data(1)(e, r, s) and s['summary']['operation'] == 'replace' and e['data_file']['record_count'] > 2
    s, loc, i = t.find(pred)
    p = t.path(t.read(loc)[2][i]['data_file']['file_path'])
    tab = pq.read_table(p)
    k = tab.column_names.index('_row_id')
    pq.write_table(tab.set_column(k, tab.schema.field(k), pa.array(tab.column(k).to_pylist()[::-1], pa.int64())), p)


def future(t):
    """a data file whose physical _last_updated_sequence_number is above the snapshot's"""
    import pyarrow as pa, pyarrow.parquet as pq
    s, loc, i = t.find(data(1))
    p = t.path(t.read(loc)[2][i]['data_file']['file_path'])
    tab = pq.read_table(p)
    if '_last_updated_sequence_number' in tab.column_names:
        tab = tab.drop_columns('_last_updated_sequence_number')
    f = pa.field('_last_updated_sequence_number', pa.int64(), metadata={'PARQUET:field_id': '2147483539'})
    pq.write_table(tab.append_column(f, pa.array([999999] * tab.num_rows, pa.int64())), p)


def stale(t):
    """keep, in the head's list, a manifest that only tells of an old removal"""
    for s in t.snaps[1:]:
        for r in t.read(s['manifest-list'])[2]:
            if r['added_snapshot_id'] == s['snapshot-id'] and not r['added_files_count'] and not r['existing_files_count']:
                return t.edit_list(head(t), lambda h, sc, recs: recs.append(r))
    raise SystemExit('no manifest of only deleted entries')


def orphan(t):
    open(t.dir + '/data/stray.parquet', 'w').close()


def dup_key(t):
    text = open(t.metadata).read()
    open(t.metadata, 'w').write(text.replace('{', '{"table-uuid":"x",', 1))


def listed_twice(t):
    t.edit_list(head(t), lambda h, sc, recs: recs.append(dict(recs[0])))


def old_list(t):
    """drop the newest data manifest from the head's list"""
    t.edit_list(head(t), lambda h, sc, recs: recs.pop(next(i for i, r in enumerate(recs) if r['content'] == 0)))


def kept(t):
    i = head(t)['snapshot-id']
    t.edit_list(head(t), lambda h, sc, recs: next(r for r in recs if r['added_snapshot_id'] != i and r['content'] == 0).update(
        first_row_id=7777))


def first_bound(r):
    return [dict(p, lower_bound=b'zzz', upper_bound=b'zzz') if isinstance(p['lower_bound'], bytes) else p for p in r]


NEW = {'snapshot-id': 12345, 'type': 'branch'}
D, X = (lambda r: r['content'] == 0), (lambda r: r['content'] == 1)
MUTATIONS = [
    ('DV: CRC flipped', 'DV-FRAME', lambda t: t.dv_bytes(lambda b: b.__setitem__(-1, b[-1] ^ 1))),
    ('DV: magic', 'DV-FRAME', lambda t: t.dv_bytes(lambda b: (b.__setitem__(4, 0), crc(b)))),
    ('DV: length field', 'DV-FRAME', lambda t: t.dv_bytes(lambda b: b.__setitem__(3, b[3] ^ 1))),
    ('DV: cookie', 'DV-BITMAP', lambda t: t.dv_bytes(lambda b: (b.__setitem__(20, 1), crc(b)))),
    ('DV: container cardinality', 'DV-BITMAP', lambda t: t.dv_bytes(lambda b: (b.__setitem__(8, 2), crc(b)))),
    ('DV: position beyond the data file', 'DV-RANGE', lambda t: t.dv_bytes(lambda b: last_value(b, 60000))),
    ('DV: record_count', 'DV-CARD', lambda t: t.entry(dv(1), lambda e: e['data_file'].update(record_count=e['data_file']['record_count'] + 1))),
    ('DV: cardinality property', 'DV-CARD', lambda t: t.puffin_footer(lambda b: b['properties'].update(cardinality='99'))),
    ('DV: referenced-data-file property', 'DV-FOOTER', lambda t: t.puffin_footer(lambda b: b['properties'].update({'referenced-data-file': 'x'}))),
    ('DV: footer fields', 'DV-FOOTER', lambda t: t.puffin_footer(lambda b: b.update(fields=[]))),
    ('DV: footer snapshot-id', 'DV-FOOTER', lambda t: t.puffin_footer(lambda b: b.update({'snapshot-id': 4}))),
    ('DV: footer codec', 'DV-FOOTER', lambda t: t.puffin_footer(lambda b: b.update({'compression-codec': 'lz4'}))),
    ('DV: footer offset', 'DV-FOOTER', lambda t: t.puffin_footer(lambda b: b.update(length=b['length'] - 1))),
    ('DV: content_size', 'DV-FOOTER', lambda t: t.entry(dv(1), lambda e: e['data_file'].update(content_size_in_bytes=e['data_file']['content_size_in_bytes'] - 1))),
    ('Puffin: footer magic', 'DV-PUFFIN', lambda t: bytes_at(lambda t: t.read(t.find(dv(1))[1])[2][0]['data_file']['file_path'], -1)(t)),
    ('DV: wrong partition tuple', 'DV-PART', lambda t: t.entry(dv(1), part_tuple)),
    ('DV: twice for a data file', 'DV-DUP', second_dv),
    ('DV: entry twice', 'FILE-DUP', twice(dv(1))),
    ('DV: dangling', 'DV-DANGLING', lambda t: t.entry(dv(1), setf(referenced_data_file='file:/nowhere.parquet'))),
    ('DV: data file removed, DV stays', 'DV-DANGLING', old_list),
    ('DV: no referenced_data_file', 'DV-ENTRY', lambda t: t.entry(dv(1), setf(referenced_data_file=None))),
    ('DV: older than its data file', 'DV-SEQ', lambda t: t.entry(dv(1), sete(sequence_number=0))),
    ('DV: file_size_in_bytes', 'FILE-SIZE', lambda t: t.entry(dv(1), lambda e: e['data_file'].update(file_size_in_bytes=e['data_file']['file_size_in_bytes'] - 1))),
    ('v3 adds a Parquet position delete', 'DEL-V3POS', lambda t: t.entry(dv(1), setf(file_format='PARQUET'))),
    ('list: manifest_length', 'LIST-LENGTH', rec(D, manifest_length=lambda n: n + 1)),
    ('list: added_files_count', 'LIST-COUNTS', rec(D, added_files_count=lambda n: n + 1)),
    ('list: existing_rows_count', 'LIST-COUNTS', rec(D, existing_rows_count=lambda n: n + 1)),
    ('list: deleted_files_count', 'LIST-COUNTS', rec(X, deleted_files_count=lambda n: n + 1)),
    ('list: partition bounds', 'LIST-PARTS', rec(lambda r: D(r) and r['partitions'], partitions=first_bound)),
    ('list: no summaries', 'LIST-PARTS', rec(lambda r: D(r) and r['partitions'], partitions=[])),
    ('list: contains_null', 'LIST-PARTS', rec(lambda r: any(p['contains_null'] for p in r['partitions']), partitions=lambda ps: [dict(p, contains_null=False) for p in ps])),
    ('list: min_sequence_number', 'LIST-SEQ', rec(D, min_sequence_number=lambda n: n - 1)),
    ('list: sequence_number', 'LIST-SEQ', rec(D, sequence_number=lambda n: n + 1)),
    ('list: unknown spec', 'LIST-SPEC', rec(D, partition_spec_id=77)),
    ('list: content', 'LIST-CONTENT', rec(D, content=2)),
    ('list: data manifest without first_row_id', 'LIST-ROWID', rec(D, first_row_id=None)),
    ('list: delete manifest with first_row_id', 'LIST-ROWID', rec(X, first_row_id=5)),
    ('list: first_row_id before the snapshot', 'LIST-ROWID', rec(D, first_row_id=0)),
    ('list: first_row_id beyond added-rows', 'LIN-CHAIN', rec(D, first_row_id=lambda n: n + 100000)),
    ('list: manifest twice', 'LIST-DUP', listed_twice),
    ('list: kept record changed', 'LIST-KEPT', kept),
    ('list: added_snapshot_id', 'LIST-KEPT', rec(D, added_snapshot_id=lambda n: n - 1)),
    ('list: header snapshot-id', 'LIST-HEADER', lhead(snapshot_id='1')),
    ('list: header parent', 'LIST-HEADER', lhead(parent_snapshot_id='null')),
    ('list: header first-row-id', 'LIST-HEADER', lhead(first_row_id='1')),
    ('list: header sequence-number', 'LIST-HEADER', lhead(sequence_number='1')),
    ('list: field-id 520', 'LIST-SCHEMA', field_id('list', 520, 521)),
    ('list: field-id 509', 'LIST-SCHEMA', field_id('list', 517, 527)),
    ('list: sync marker', 'CORRUPT', bytes_at(lambda t: head(t)['manifest-list'], -1)),
    ('manifest: data block', 'CORRUPT', bytes_at(lambda t: t.find(data(1))[1], -40)),
    ('manifest: header spec id', 'MAN-HEADER', header(0, partition_spec_id='9')),
    ('manifest: header content', 'MAN-HEADER', header(1, content='data')),
    ('manifest: header schema-id', 'MAN-HEADER', header(0, schema_id='99')),
    ('manifest: header partition-spec', 'MAN-HEADER', header(0, partition_spec='[]')),
    ('manifest: header schema', 'MAN-HEADER', lambda t: t.edit_manifest(t.find(data(1))[1], lambda h, sc, rows: h.update(
        schema=h['schema'].replace('"name":"cat"', '"name":"dog"')))),
    ('manifest: field-id 143', 'MAN-SCHEMA', field_id('dv', 143, 999)),
    ('manifest: field-id 142', 'MAN-SCHEMA', field_id('data', 142, 141)),
    ('manifest: map id 117', 'MAN-SCHEMA', field_id('data', 117, 999)),
    ('manifest: partition field-id', 'MAN-PART', field_id('data', 1001, 1999)),
    ('manifest: empty', 'MAN-EMPTY', lambda t: t.edit_manifest(t.find(data(1))[1], lambda h, sc, rows: [])),
    ('entry: status 3', 'MAN-ENTRY', lambda t: t.entry(data(1), sete(status=3))),
    ('entry: content', 'MAN-ENTRY', lambda t: t.entry(data(1), setf(content=1))),
    ('entry: split_offsets', 'MAN-ENTRY', lambda t: t.entry(data(1), setf(split_offsets=[9, 4]))),
    ('entry: added with a sequence number', 'MAN-SEQ', lambda t: t.entry(data(1), sete(sequence_number=99))),
    ('entry: added with file_sequence_number', 'MAN-SEQ', lambda t: t.entry(data(1), sete(file_sequence_number=1))),
    ('entry: existing without a sequence number', 'MAN-SEQ', lambda t: t.entry(data(0), sete(sequence_number=None))),
    ('entry: existing without snapshot_id', 'MAN-SNAPID', lambda t: t.entry(data(0), sete(snapshot_id=None))),
    ('entry: added by another snapshot', 'MAN-SNAPID', lambda t: t.entry(data(1), sete(snapshot_id=5))),
    ('entry: sequence number changed', 'ENTRY-STABLE', lambda t: t.entry(data(0), lambda e: e.update(sequence_number=e['sequence_number'] - 1))),
    ('entry: partition changed', 'ENTRY-STABLE', lambda t: t.entry(data(0, lambda e: any(e['data_file']['partition'].values())), part_tuple)),
    ('entry: bound of 3 bytes', 'FILE-METRICS', bound),
    ('entry: null count', 'FILE-METRICS', lambda t: t.entry(data(1), lambda e: e['data_file']['null_value_counts'][0].update(value=10**6))),
    ('entry: record_count', 'FILE-COUNT', lambda t: t.entry(data(1), lambda e: e['data_file'].update(record_count=e['data_file']['record_count'] - 1))),
    ('entry: data file twice', 'FILE-DUP', twice(data(1))),
    ('data file longer', 'FILE-SIZE', truncate),
    ('data file gone', 'REACH', gone('data')), ('manifest gone', 'REACH', gone('manifest')), ('list gone', 'REACH', gone('list')),
    ('Puffin gone', 'REACH', gone('puffin')),
    ('row ids overlap', 'LIN-OVERLAP', two_files_one_range),
    ('row id changed', 'LIN-STABLE', lambda t: t.entry(data(0), lambda e: e['data_file'].update(first_row_id=e['data_file']['first_row_id'] + 1))),
    ('row id lost', 'LIN-STABLE', lambda t: t.entry(data(0), setf(first_row_id=None))),
    ('row id on an added entry', 'LIN-EXPLICIT', lambda t: t.entry(data(1), setf(first_row_id=3))),
    ('next-row-id too low', 'LIN-NEXT', js(lambda md: md.update({'next-row-id': 10}))),
    ('next-row-id below the last snapshot', 'LIN-CHAIN', js(lambda md: md.update({'next-row-id': md['next-row-id'] - 1}))),
    ('added-rows too large', 'LIN-CHAIN', js(lambda md: md['snapshots'][1].update({'added-rows': 10**6}))),
    *[(f'summary: {k}', 'SUM-TOTAL', summary(**{k.replace('-', '_'): '123456'})) for k in (
        'total-records', 'total-data-files', 'total-delete-files', 'total-position-deletes', 'total-files-size')],
    *[(f'summary: {k}', 'SUM-DELTA', summary(**{k.replace('-', '_'): '77'})) for k in (
        'added-dvs', 'removed-dvs', 'added-position-deletes', 'added-data-files', 'removed-files-size', 'changed-partition-count', 'manifests-created')],
    ('summary: DV called append', 'SUM-OP', summary(operation='append')), ('summary: DV called replace', 'SUM-OP', summary(operation='replace')),
    ('removed DV not marked', 'SUM-DIFF', drop_entry(2, 1)), ('removed data file not marked', 'SUM-DIFF', drop_entry(2, 0)),
    ('live entry lost', 'SUM-DIFF', drop_entry(0, 0)),
    ('uuid', 'META-FIELD', js(lambda md: md.update({'table-uuid': 'ABC'}))),
    ('last-column-id missing', 'META-FIELD', js(lambda md: md.update({'last-updated-ms': None}))),
    ('last-column-id low', 'META-SCHEMA', js(lambda md: md.update({'last-column-id': 1}))),
    ('schema twice', 'META-SCHEMA', js(lambda md: md['schemas'].append(md['schemas'][0]))),
    ('current schema unknown', 'META-SCHEMA', js(lambda md: md.update({'current-schema-id': 55}))),
    ('default spec unknown', 'META-SPEC', js(lambda md: md.update({'default-spec-id': 55}))),
    ('last-partition-id low', 'META-SPEC', js(lambda md: md.update({'last-partition-id': 1000}))),
    ('default sort order unknown', 'META-SORT', js(lambda md: md.update({'default-sort-order-id': 3}))),
    ('last-sequence-number low', 'META-SEQ', js(lambda md: md.update({'last-sequence-number': 1}))),
    ('two snapshots, one sequence number', 'META-SEQ', hd(lambda s, md: s.update({'sequence-number': s['sequence-number'] - 1}))),
    ('snapshot twice', 'META-SNAP', js(lambda md: md['snapshots'].append(md['snapshots'][0]))),
    ('null parent', 'META-SNAP', js(lambda md: md['snapshots'][0].update({'parent-snapshot-id': None}))),
    ('cycle', 'META-SNAP', js(lambda md: md['snapshots'][0].update({'parent-snapshot-id': md['snapshots'][2]['snapshot-id']}))),
    ('operation unknown', 'META-SNAP', hd(lambda s, md: s['summary'].update(operation='merge'))),
    ('summary value not a string', 'META-SNAP', hd(lambda s, md: s['summary'].update({'total-records': 5}))),
    ('snapshot schema-id unknown', 'META-SNAP', hd(lambda s, md: s.update({'schema-id': 55}))),
    ('snapshot without added-rows', 'META-ROWID', hd(lambda s, md: s.pop('added-rows'))),
    ('current is not main', 'META-REF', js(lambda md: md.update({'current-snapshot-id': md['snapshots'][0]['snapshot-id']}))),
    ('ref to nowhere', 'META-REF', js(lambda md: md['refs'].update(b=NEW))),
    ('tag with branch options', 'META-REF', js(lambda md: md['refs'].update(b=dict(md['refs']['main'], type='tag', **{'min-snapshots-to-keep': 1})))),
    ('snapshot-log end', 'META-SNAPLOG', js(lambda md: md['snapshot-log'].pop())),
    ('snapshot-log of a lost snapshot', 'META-SNAPLOG', js(lambda md: md['snapshot-log'].insert(0, {'timestamp-ms': 1, 'snapshot-id': 9}))),
    ('metadata-log order', 'META-LOG', js(lambda md: md['metadata-log'][0].update({'timestamp-ms': md['last-updated-ms'] + 10**6}))),
    ('metadata-log names a lost file', 'REACH', js(lambda md: md['metadata-log'].insert(0, {'timestamp-ms': 1, 'metadata-file': '/no/such'}))),
    ('last-column-id shrinks', 'META-MONO', js(lambda md: md.update({'last-partition-id': md['last-partition-id'] - 1}))),
    ('statistics of no snapshot', 'META-STATS', js(lambda md: md.update({'partition-statistics': [
        {'snapshot-id': 7, 'statistics-path': md['metadata-log'][0]['metadata-file'], 'file-size-in-bytes': 1}]}))),
    ('scan: row ids twice', 'SCAN-ROWID', lambda t: t.edit_list(head(t), lambda h, sc, recs: [
        r.update(first_row_id=0) for r in recs if r['content'] == 0])), ('scan: partition value', 'SCAN-PART', lambda t: t.entry(data(1), part_tuple)),
    ('scan: bound', 'SCAN-METRICS', lambda t: t.entry(data(1), wrong_bound)),
    ('scan: null count', 'SCAN-METRICS', lambda t: t.entry(data(1), lambda e: e['data_file']['null_value_counts'][0].update(value=1))),
    ('scan: carried sequence number in the future', 'SCAN-SEQ', future),
    ('DV: forgets a position', 'DV-LOST', forget), ('scan: compaction mixes row ids', 'SCAN-REPLACE', swap_rows),
    ('list: stale manifest', 'LIST-STALE', stale),
    ('orphan object', 'ORPHAN', orphan),
    ('duplicate JSON key', 'exit 2', dup_key),
]


def mutations(metadata):
    bad = hit = 0
    rules = set()
    t = Table(metadata)
    rc, found, text = run(*t.args(), '--waive', 'ORPHAN')
    print('clean copy:', 'ok' if rc == 0 else f'FAILED {found} {text[:500]}')
    bad += rc != 0
    # the writer used for the mutations must itself be neutral
    for s in t.snaps:
        for r in t.read(s['manifest-list'])[2]:
            t.edit_manifest(r['manifest_path'], lambda h, sc, rows: None)
    rc, found, text = run(*t.args())
    print('clean copy, rewritten:', 'ok' if rc == 0 else f'FAILED {found} {text[:500]}')
    bad += rc != 0
    t.close()
    for name, rule, fn in MUTATIONS:
        t = Table(metadata)
        try:
            fn(t)
            more = {'ORPHAN': ['--no-orphans'], 'LIST-STALE': ['--strict']}.get(rule, ['--scan'] if rule.startswith('SCAN') else [])
            rc, found, text = run(*t.args(), *more)
            ok = rule in found if rc == 1 else rc == 2 and rule == 'exit 2'
            hit += ok
            rules.add(rule)
            others = sorted(set(found) - {rule})
            print(f"{'ok  ' if ok else 'FAIL'} {name}: {rule}{'; also ' + ' '.join(others) if others else ''}")
            if not ok:
                bad += 1
                print('     ', rc, {k: v[:1] for k, v in found.items()}, text[:300] if rc == 2 else '')
        finally:
            t.close()
    bad += (not rest(metadata)) + (not vectors())
    here = os.path.dirname(os.path.abspath(__file__))
    known = set(re.findall(r"'((?:META|LIST|MAN|FILE|DV|DEL|LIN|SUM|ENTRY|SCAN|REST)-[A-Z0-9]+|REACH|ORPHAN|CORRUPT)'", ''.join(
        open(f'{here}/{f}').read() for f in ('audit.py', 'metarules.py', 'rawice.py', 'scan.py'))))
    print('rules without a mutation:', ' '.join(sorted(known - rules - {'REST-META'})) or 'none')
    print(f'{hit} of {len(MUTATIONS)} mutations caught')
    return bad


GOLDEN = [  # computed with the C Roaring library and zlib
    ([0], '00000022d1d339640100000000000000000000003a3000000100000000000000100000000000f7a6b4b5'),
    ([0, 5], '00000024d1d339640100000000000000000000003a3000000100000000000100100000000000050086d2574a'),
    (range(100), '0000001fd1d339640100000000000000000000003b3000000100006300010000006300883cd529'),
    ([1 << 33], '0000003ad1d339640300000000000000000000003a30000000000000010000003a30000000000000020000003a3000000100000000000000100000'
                '000000fabeda4e'),
    ([1 << 33], '00000022d1d339640100000000000000020000003a3000000100000000000000100000000000d9f67d35')]


def vectors():
    """Deletion vectors: golden blobs, every container kind, and each truncation refused"""
    ok = all(decode_dv(bytes.fromhex(h)) == list(v) for v, h in GOLDEN)
    rnd = random.Random(7)
    for vals in ([*rnd.sample(range(200000), 5000)], [*rnd.sample(range(65536), 30000), 70000, 1 << 31], range(10, 180000), range(65536), [
            *range(5), *range(65536, 65540), *range(1 << 20, (1 << 20) + 9), *range(1 << 21, (1 << 21) + 9), *range(1 << 22, 1 << 23, 3)]):
        for run_opt in (False, True):
            b = pyroaring.BitMap(vals)
            if run_opt:
                b.run_optimize()
            body = b'\xd1\xd3\x39\x64' + struct.pack('<QI', 1, 3) + b.serialize()
            blob = lambda x: struct.pack('>I', len(x)) + x + struct.pack('>I', zlib.crc32(x))
            ok &= decode_dv(blob(body)) == [3 << 32 | v for v in sorted(vals)]
            for n in (1, 2, 7):
                for cut in (body[:-n], body + b'\0' * n):
                    with contextlib.suppress(Fault):
                        decode_dv(blob(cut))
                        ok = False
    print('ok   deletion vectors' if ok else 'FAIL deletion vectors')
    return ok


def rest(metadata):
    """--uri against a stub catalog: the same metadata is clean, different metadata is told"""
    md = json.load(open(metadata))
    seen = []

    class H(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers.get('Authorization')))
            body = {'overrides': {'prefix': 'p'}, 'defaults': {}} if self.path == '/base/v1/config' else {
                'metadata-location': metadata, 'metadata': md}
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *a):
            pass
    srv = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
    threading.Thread(target=srv.serve_forever, daemon=True).start()
    args = ('--uri', f'http://127.0.0.1:{srv.server_port}/base', '--table', 'a b.c.t', '--token', 'tok')
    one = run(*args)
    md = dict(md, **{'last-updated-ms': 1})
    two = run(*args)
    srv.shutdown()
    ok = one[0] == 0 and 'REST-META' in two[1] and seen[1] == ('/base/v1/p/namespaces/a%20b%1Fc/tables/t', 'Bearer tok')
    print('ok  ' if ok else f'FAIL {one} {two[1]} {seen}', 'REST')
    return ok


if __name__ == '__main__':
    sys.exit(1 if mutations(re.sub('^file:/+', '/', sys.argv[1])) else 0)
