"""Values at the edges of each type, the transforms that take it, and tables that are partitioned by all of them."""

import datetime
import decimal
import math
import uuid

import pyarrow as pa

from frazil.schema import Type

D = decimal.Decimal
UTC = datetime.timezone.utc


def us(*when):
    return datetime.datetime(*when)


def utc(*when):
    return datetime.datetime(*when, tzinfo=UTC)


TEXTS = ["", "a", "aaaaaaaaaaaaaaaaaaaaaa", "zzzzzzzzzzzzzzzzzzzzzz", "naïve", "日本語テキスト", "😀😁😂😃", "\U0010ffff" * 20,
         "b" * 15 + "\U0010ffffx", "null", "a/b=c %"]
CALENDAR = ["year", "month", "day"]
# type, transforms, values (whole numbers for nanoseconds)
CASES = {
    "boolean": ([], [False, True]),
    "int": (["bucket[5]", "truncate[10]"], [0, 1, -1, 34, 2**31 - 1, -2**31 + 10]),
    "long": (["bucket[5]", "truncate[10]"], [0, 1, -1, 1 << 40, 2**63 - 1, -2**63 + 10]),
    "float": ([], [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan]),
    "double": ([], [0.0, -0.0, 1.5, -1e300, 5e-324, math.inf, -math.inf, math.nan]),
    "decimal(9, 2)": (["bucket[5]", "truncate[50]"], [D("0.00"), D("14.20"), D("-1.28"), D("1.28"), D("-327.68"), D("-0.01"),
                                                      D("9999999.99"), D("-9999999.00")]),
    "decimal(38, 10)": (["bucket[5]", "truncate[50]"], [D("0E-10"), D("9999999999999999999999999999.9999999999"),
                                                        D("-9999999999999999999999999999.9999999900")]),
    "date": (["bucket[5]", *CALENDAR], [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29),
                                        datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "time": (["bucket[5]"], [datetime.time(0), datetime.time(23, 59, 59, 999999), datetime.time(22, 31, 8)]),
    "timestamp": (["bucket[5]", *CALENDAR, "hour"], [us(1970, 1, 1), us(1969, 12, 31, 23, 59, 59, 999999), us(2017, 11, 16, 22, 31, 8, 5),
                                                     us(1, 1, 1), us(9999, 12, 31, 23, 59, 59, 999999)]),
    "timestamptz": (["bucket[5]", *CALENDAR, "hour"], [utc(1970, 1, 1), utc(1969, 12, 31, 22, 59, 59, 999999), utc(2017, 11, 16, 22)]),
    "timestamp_ns": (["bucket[5]", *CALENDAR, "hour"], [0, -1, -1001, 1510871468000001001, 2**63 - 1, -2**63 + 1]),
    "timestamptz_ns": (["bucket[5]", *CALENDAR, "hour"], [0, -1, 1510871468123456789]),
    "string": (["bucket[5]", "truncate[3]"], TEXTS),
    "uuid": (["bucket[5]"], [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
                             uuid.UUID("179c3e09-677c-4bbd-a479-3f349cb785e7")]),
    "fixed[3]": (["bucket[5]"], [b"\0\0\0", b"\xff\xff\xff", b"\x01\x02\x03"]),
    "binary": (["bucket[5]", "truncate[3]"], [b"", b"\0", b"\xff" * 20, b"\x01" * 20, b"\x7f\x80"]),
}
V3 = ("timestamp_ns", "timestamptz_ns")


def arrow_type(kind):
    return Type(kind).arrow()


def column(kind, values):
    target = arrow_type(kind)
    if kind == "uuid":
        values = [None if v is None else v.bytes for v in values]
    if kind in V3:
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


def version_of(kind):
    return 3 if kind in V3 else 2


def rows_of(kind):
    """(values by k, an Arrow table of k and v); the first is null."""
    values = [None, *CASES[kind][1]]
    return values, pa.table({"k": pa.array(range(len(values)), pa.int64()), "v": column(kind, values)})


def make(rest, space, name, kind, without=(), version=None, **properties):
    """Creates a table of columns k and v, v being partitioned by every transform but some: its name and the transforms."""
    transforms, _ = CASES[kind]
    fields = [{"source-id": 2, "field-id": 1000 + i, "name": "v_%d" % i, "transform": t}
              for i, t in enumerate(["identity", "void", *transforms]) if t not in without]
    target = "/v1/namespaces/%s/tables" % space
    rest.want(200, "POST", target, {
        "name": name, "properties": {"format-version": str(version or version_of(kind)), **properties},
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "k", "required": True, "type": "long"},
                                                {"id": 2, "name": "v", "required": False, "type": kind}]},
        "partition-spec": {"fields": fields}})
    return "%s.%s" % (space, name), [f["transform"] for f in fields]


def short(kind):
    return kind.replace("(", "_").replace(", ", "_").strip(")]").replace("[", "_")
