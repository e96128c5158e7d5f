"""The loop of an engine process, and the one form in which all engines give their rows.

A worker reads one JSON request a line from standard input and answers with one JSON line:
  {"op": "hello"}                            -> {"ok": {"engine": ..., "version": ...}}
  {"op": "read", "table", "lineage", ...}    -> {"ok": {"rows": [...]}}
  {"op": "sql", "text"} and others           -> {"ok": ...}
or {"cannot": reason} where the engine itself says that it does not offer this, or {"error": text}.
Standard output carries nothing else; whatever a library prints goes to standard error.

Rows are JSON objects in which a value has one form, whichever engine gave it:
  decimal: text with its scale     binary, fixed: lower-case hex       float: number, or NaN, Infinity, -Infinity as text
  date: YYYY-MM-DD                 timestamp: YYYY-MM-DDThh:mm:ss.ffffff, with +00:00 where it has a zone
  uuid: lower-case text            map: array of [key, value], sorted by the key's JSON text
"""

import datetime
import decimal
import json
import math
import os
import sys
import traceback
import uuid

LINEAGE = ("_row_id", "_last_updated_sequence_number")


class Cannot(Exception):
    """The engine says that it cannot do this."""


class Map(list):
    """A map as (key, value) pairs."""


def value(v):
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if math.isfinite(v) else "NaN" if v != v else "Infinity" if v > 0 else "-Infinity"
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, datetime.datetime):
        if v.tzinfo is not None:
            v = v.astimezone(datetime.timezone.utc)
        return v.isoformat(timespec="microseconds")
    if isinstance(v, datetime.time):
        return v.isoformat(timespec="microseconds")
    if isinstance(v, datetime.date):
        return v.isoformat()
    if isinstance(v, (bytes, bytearray, memoryview)):
        return bytes(v).hex()
    if isinstance(v, uuid.UUID):
        return str(v)
    if isinstance(v, Map):
        return sorted(([value(k), value(x)] for k, x in v), key=lambda pair: json.dumps(pair[0]))
    if hasattr(v, "asDict"):
        return {k: value(x) for k, x in v.asDict(recursive=False).items()}
    if isinstance(v, dict):
        return {str(k): value(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [value(x) for x in v]
    if hasattr(v, "item"):
        return value(v.item())
    return str(v)


def arrow_value(v, t):
    """A Python value of pyarrow with its type at hand: maps come as lists of pairs."""
    import pyarrow as pa

    if v is None:
        return None
    if pa.types.is_map(t):
        pairs = v.items() if isinstance(v, dict) else v
        return Map((arrow_value(k, t.key_type), arrow_value(x, t.item_type)) for k, x in pairs)
    if pa.types.is_struct(t):
        return {f.name: arrow_value(v[f.name], f.type) for f in t}
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return [arrow_value(x, t.value_type) for x in v]
    return v


def arrow_rows(table):
    names = [f.name for f in table.schema]
    columns = [[arrow_value(v, f.type) for v in table.column(i).to_pylist()] for i, f in enumerate(table.schema)]
    return [dict(zip(names, row)) for row in zip(*columns)]


def split(table):
    """("a.b", "t") of "a.b.t"."""
    namespace, _, name = table.rpartition(".")
    return namespace, name


def read_many(engine, request):
    """One answer for each of the requests in "reads", as the loop would give it."""
    out = []
    for r in request["reads"]:
        try:
            out.append({"ok": engine.op_read(r)})
        except Cannot as e:
            out.append({"cannot": str(e).strip().splitlines()[0][:300]})
        except Exception as e:
            traceback.print_exc()
            out.append({"error": ("%s: %s" % (type(e).__name__, e))[:2000]})
    return out


DEFAULT = {"read_many": read_many}


def serve(engine):
    """engine: an object with methods hello() and op_<name>(request)."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            own = getattr(engine, "op_" + request["op"], None)
            answer = {"ok": own(request) if own else DEFAULT[request["op"]](engine, request)}
        except Cannot as e:
            answer = {"cannot": str(e).strip().splitlines()[0][:300]}
        except Exception as e:
            traceback.print_exc()
            answer = {"error": ("%s: %s" % (type(e).__name__, e))[:2000]}
        out.write(json.dumps(answer, ensure_ascii=False) + "\n")
        out.flush()


def rows_answer(rows):
    return {"rows": [{k: value(v) for k, v in row.items()} for row in rows]}
