"""--scan of audit.py: an independent reader that applies deletes and computes row lineage."""
import datetime, decimal, hashlib, json, re, struct, uuid
import pyarrow.parquet as pq
from rawice import *

EXACT = decimal.Context(prec=80)  # decimals have up to 38 digits, the default context 28


def json_value(t, v):
    """A Python value from Arrow as JSON, in the single-value JSON form of the specification; nested fields by name"""
    if v is None:
        return None
    if isinstance(t, dict):
        if t['type'] == 'struct':
            return {f['name']: json_value(f['type'], v.get(f['name'])) for f in t['fields']}
        if t['type'] == 'list':
            return [json_value(t['element'], x) for x in v]
        return [[json_value(t['key'], k), json_value(t['value'], x)] for k, x in v]
    if isinstance(v, bytes):
        return str(uuid.UUID(bytes=v)) if t == 'uuid' else v.hex()
    if isinstance(v, float):
        if t == 'float':  # the shortest text that is the same float
            v = next(x for x in (float(f'%.{n}g' % v) for n in range(6, 10)) if v != v or struct.pack('<f', x) == struct.pack('<f', v))
        return v if v == v and abs(v) != float('inf') else str(v)
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=None).isoformat(timespec='microseconds') + ('+00:00' if 'tz' in t else '')
    return v if isinstance(v, (int, str, bool)) else str(v)


def arrow_by_id(fields, arr):
    """The arrays of a struct-like list of (Arrow field, array) under their field ids"""
    return {int(f.metadata[b'PARQUET:field_id']): (f, a) for f, a in arr if f.metadata and b'PARQUET:field_id' in f.metadata}


def project(t, v, at):
    """A nested Arrow value, renamed from the file's field names to those of type t by field id"""
    if v is None or not isinstance(t, dict):
        return v
    if t['type'] == 'struct':
        ids = {int(at.field(i).metadata[b'PARQUET:field_id']): at.field(i) for i in range(at.num_fields)}
        return {f['name']: project(f['type'], v[ids[f['id']].name], ids[f['id']].type) if f['id'] in ids else None for f in t['fields']}
    if t['type'] == 'list':
        return [project(t['element'], x, at.value_type) for x in v]
    return [(project(t['key'], k, at.key_type), project(t['value'], x, at.item_type)) for k, x in v]


def part_value(t, v):
    """A raw partition value as the Python value that Arrow would give"""
    if v is None or not isinstance(v, (int, bytes)) or isinstance(v, bool):
        return v
    epoch = datetime.datetime(1970, 1, 1)
    if t.startswith('decimal'):
        return decimal.Decimal(int.from_bytes(v, 'big', signed=True)).scaleb(-int(re.findall(r'\d+', t)[1]), EXACT)
    if t == 'date':
        return epoch.date() + datetime.timedelta(v)
    return epoch + datetime.timedelta(microseconds=v) if t.startswith('timestamp') and not t.endswith('_ns') else v


def plain(t, v):
    """A Python value from Arrow in the domain of decode() and raw()"""
    if isinstance(v, datetime.datetime):
        d = v.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return (d.days * 86400 + d.seconds) * 1000000 + d.microseconds
    if isinstance(v, datetime.date):
        return (v - datetime.date(1970, 1, 1)).days
    if isinstance(v, datetime.time):
        return (v.hour * 3600 + v.minute * 60 + v.second) * 1000000 + v.microsecond
    if isinstance(v, decimal.Decimal):
        return int(v.scaleb(int(re.findall(r'\d+', t)[1]), EXACT))
    return v.encode() if isinstance(v, str) else v.bytes if isinstance(v, uuid.UUID) else v


def murmur3(b):
    rot, m = lambda x, r: (x << r | x >> 32 - r) & 0xffffffff, 0xffffffff
    mix = lambda k: rot(k * 0xcc9e2d51 & m, 15) * 0x1b873593 & m
    h = 0
    for i in range(0, len(b) & ~3, 4):
        h = rot(h ^ mix(int.from_bytes(b[i:i + 4], 'little')), 13) * 5 + 0xe6546b64 & m
    if len(b) & 3:
        h ^= mix(int.from_bytes(b[len(b) & ~3:], 'little'))
    h ^= len(b)
    h = (h ^ h >> 16) * 0x85ebca6b & m
    h = (h ^ h >> 13) * 0xc2b2ae35 & m
    return h ^ h >> 16


def transform(tr, t, v):
    """The partition value of a plain() value of type t"""
    if v is not None and t.endswith('_ns') and tr != 'identity':
        v //= 1000
    n = int((re.findall(r'\d+', tr) or [0])[0])
    if v is None or tr == 'identity':
        return v
    if tr.startswith('bucket'):
        if t.startswith('decimal'):
            b = v.to_bytes((v if v >= 0 else ~v).bit_length() // 8 + 1, 'big', signed=True)
        else:
            b = v if isinstance(v, bytes) else v.to_bytes(8, 'little', signed=True)
        return (murmur3(b) & 0x7fffffff) % n
    if tr.startswith('truncate'):
        return v.decode()[:n].encode() if t == 'string' else v[:n] if isinstance(v, bytes) else v - v % n
    if tr == 'hour':
        return v // 3600000000
    day = v if t == 'date' else v // 86400000000
    d = datetime.date(1970, 1, 1) + datetime.timedelta(day)
    return {'day': day, 'year': d.year - 1970, 'month': (d.year - 1970) * 12 + d.month - 1}[tr]


def check_rows(au, e, n, cols, types, have):
    """All rows of a data file against its partition tuple, bounds and counts"""
    path, cnt = e['file_path'], {k: {x['key']: x['value'] for x in e[k] or []} for k in (
        'value_counts', 'null_value_counts', 'lower_bounds', 'upper_bounds')}
    for i in have:
        t, vals = types[i], cols[i]
        nulls = sum(v is None for v in vals)
        au.need(cnt['null_value_counts'].get(i, nulls) == nulls and cnt['value_counts'].get(i, n) == n, 'SCAN-METRICS', path,
                f"field {i}: value and null counts {cnt['value_counts'].get(i)}, {cnt['null_value_counts'].get(i)}, holds {n}, {nulls}")
        vals = [plain(t, v) for v in vals if v is not None and v == v]
        for k, ok in (('lower_bounds', lambda v, b: b <= v), ('upper_bounds', lambda v, b: b >= v)):
            b = decode(t, cnt[k][i]) if i in cnt[k] else None
            au.need(b is None or all(ok(v, b) for v in vals), 'SCAN-METRICS', path, f'field {i}: {k} {b} does not hold for the rows')
    for f in au.specs[e['spec']]:
        i, tr = f.get('source-id'), f['transform']
        if i in have and re.match('identity|bucket|truncate|year|month|day|hour', tr):
            want = raw(result_type(tr, types[i]), e['partition'].get(f['field-id']))
            wrong = next((v for v in cols[i] if (w := transform(tr, types[i], plain(types[i], v))) != want and (w == w or want == want)), path)
            au.need(wrong is path, 'SCAN-PART', path, f"{f['name']} is {want}, a row has {wrong!r}")


def read_rows(au, e, fields):
    """(Python rows in the order of the file as {field id: value}, with _row_id and _last_updated_sequence_number)"""
    with au.st.open(e['file_path']) as f:
        table = pq.read_table(f, use_threads=False)
    cols = {int(f.metadata[b'PARQUET:field_id']): (f, table.column(i)) for i, f in enumerate(table.schema)
            if f.metadata and b'PARQUET:field_id' in f.metadata}
    ident = {f.get('source-id'): e['partition'].get(f['field-id']) for f in au.specs[e['spec']] if f['transform'] == 'identity'}
    n, out = table.num_rows, {'have': []}
    for f in fields:
        i, t = f['id'], f['type']
        if i in cols:
            col = cols[i][1].cast('int64') if t in ('timestamp_ns', 'timestamptz_ns') else cols[i][1]  # Python has no nanoseconds
            out[i] = [project(t, v, cols[i][0].type) for v in col.to_pylist()]
            out['have'] += [i] if isinstance(t, str) else []
        else:
            out[i] = [part_value(t, ident[i]) if i in ident else f.get('initial-default')] * n
    for i, base in ((ROW_ID, None if e['rid'] is None else e['rid']), (LAST_SEQ, e['seq'])):
        own = cols[i][1].to_pylist() if i in cols else [None] * n
        out[i] = [v if v is not None else None if base is None or e['rid'] is None else base + k * (i == ROW_ID) for k, v in enumerate(own)]
    return n, out


def live(au, s):
    """(path, position, row) of each live row of a snapshot, checked against its file's entry; lineage from V3 on.
    Rows have the form of json_value"""
    st, fields = au.state(s), au.schemas[au.md.get('current-schema-id', 0)]['fields']
    applies = lambda d, e: (d['spec'], d['partition']) == (e['spec'], e['partition']) or not au.specs[d['spec']] and d['content'] == 2
    eq_files = []
    for d in st.others(2):
        fs = [f for i, f in au.cur.items() if i in d['equality_ids']]
        n, cols = read_rows(au, dict(d, rid=None), fs)
        eq_files.append((d, [f['id'] for f in fs], {repr([cols[f['id']][k] for f in fs]) for k in range(n)}))
    for path, e in st.data.items():
        with au.guard(path):
            n, cols = read_rows(au, e, fields)
            check_rows(au, e, n, cols, {f['id']: f['type'] for f in fields}, cols['have'])
            dvs = st.dvs.get(path)
            gone = set(au.positions(dvs[0]) or []) if dvs else {
                p for d in st.others(1) if d['seq'] >= e['seq'] and applies(d, e) for p in au.parquet_deletes(d).get(path, ())}
            for d, key, vals in eq_files:
                if d['seq'] > e['seq'] and applies(d, e):
                    gone |= {k for k in range(n) if repr([cols[i][k] for i in key]) in vals}
            for k in range(n):
                if k not in gone:
                    row = {f['name']: json_value(f['type'], cols[f['id']][k]) for f in fields}
                    if st.fv > 2:
                        row |= {'_row_id': cols[ROW_ID][k], '_last_updated_sequence_number': cols[LAST_SEQ][k]}
                    ok = st.fv < 3 or cols[LAST_SEQ][k] is None or cols[LAST_SEQ][k] <= s['sequence-number']
                    au.need(ok, 'SCAN-SEQ', path, f'row {k}: _last_updated_sequence_number {cols[LAST_SEQ][k]}')
                    yield path, k, row


def rows(au, s):
    """The live rows of a snapshot as sorted JSON lines; no row id twice"""
    lines, ids = [], []
    for _, _, row in live(au, s):
        lines.append(json.dumps(row, ensure_ascii=False, separators=(',', ':')))
        ids.append(row.get('_row_id'))
    real = [i for i in ids if i is not None]
    au.need(len(set(real)) == len(real), 'SCAN-ROWID', f"snapshot {s['snapshot-id']}", 'two live rows have one _row_id')
    au.need(not real or max(real) < au.md.get('next-row-id', 0), 'SCAN-ROWID', f"snapshot {s['snapshot-id']}", f'_row_id {max(real, default=0)}')
    return sorted(lines)


def scan(au, s):
    """Print the live rows of a snapshot and a digest"""
    lines = rows(au, s)
    for x in lines:
        print(x)
    print(f"#digest sha256:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()} rows {len(lines)} snapshot {s['snapshot-id']}")


def compare(au, s):
    """A replace must not change any row, row id or last updated sequence number"""
    p, op = au.snaps.get(s.get('parent-snapshot-id')), (s.get('summary') or {}).get('operation')
    if op == 'replace' and p and au.state(s) and au.state(p) and au.state(s).fv == au.state(p).fv:
        a, b = set(rows(au, p)), set(rows(au, s))
        au.need(a == b, 'SCAN-REPLACE', f"snapshot {s['snapshot-id']}", f'replace loses {sorted(a - b)[:2]} and adds {sorted(b - a)[:2]}, '
                f'{len(a - b)} and {len(b - a)} rows')
