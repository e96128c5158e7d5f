#!/usr/bin/env python3
"""Writes values.json: what PyIceberg says about single values, transforms and bucket hashes.

usage: make_values.py > values.json          needs pyiceberg 0.12.0

Each row of "values" holds a type, a value in single-value JSON and its single-value bytes; each row of
"transforms" adds a transform, its result type and the result's bytes (null when the result is null).
Binary is hexadecimal.
"""

import json
import sys
import uuid
from datetime import date
from decimal import Decimal

import pyiceberg
from pyiceberg.conversions import to_bytes, to_json
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, LongType,
    StringType, TimestampNanoType, TimestampType, TimestamptzNanoType, TimestamptzType, TimeType, UUIDType,
)

DAY = (date(2017, 11, 16) - date(1970, 1, 1)).days
US = DAY * 86_400_000_000 + (22 * 3600 + 31 * 60 + 8) * 1_000_000 + 123_456
NS = US * 1000 + 789

VALUES = [
    (BooleanType(), [False, True]),
    (IntegerType(), [0, 34, -1, 2**31 - 1, -(2**31)]),
    (LongType(), [0, 34, -1, 2**63 - 1, -(2**63), 1 << 40]),
    (FloatType(), [0.0, -0.0, 1.0, -4.5, 3.4028234663852886e38, 1.401298464324817e-45]),
    (DoubleType(), [0.0, -0.0, 1.0, 0.1, -1e300, 5e-324, 123456789.125, 1e7, 0.001, 0.00012]),
    (DateType(), [0, DAY, -1, -141428, 2932896, -719162]),
    (TimeType(), [1, 81068123456, 86399999999]),
    (TimestampType(), [US, -1, 1, -62135596799999999, 253402300799999999]),
    (TimestamptzType(), [US, -1, 951782399999999]),
    (TimestampNanoType(), [NS, -1, -1001, 1510871468000001001]),
    (TimestamptzNanoType(), [NS, -1]),
    (StringType(), ["", "iceberg", "a b/c=d", "naïve", "日本語テキスト", "😀😁", "\x01\"\\"]),
    (UUIDType(), [uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), uuid.UUID(int=0)]),
    (FixedType(4), [b"\x00\x01\x02\xff"]),
    (BinaryType(), [b"", b"\x00\x01\x02\x03", bytes(range(40))]),
    (DecimalType(9, 2), [Decimal("14.20"), Decimal("-14.20"), Decimal("0.00"), Decimal("-0.01"),
                         Decimal("1.27"), Decimal("1.28"), Decimal("-1.28"), Decimal("-1.29"),
                         Decimal("9999999.99")]),
    (DecimalType(38, 0), [Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(0)]),
    (DecimalType(38, 38), [Decimal("0." + "9" * 38)]),
]

TRANSFORMS = {
    "identity": None,
    "void": None,
    "bucket[2147483647]": (IntegerType, LongType, DateType, TimeType, TimestampType, TimestamptzType,
                           TimestampNanoType, TimestamptzNanoType, StringType, UUIDType, FixedType,
                           BinaryType, DecimalType),
    "bucket[16]": (IntegerType, LongType, StringType, DecimalType),
    "truncate[3]": (IntegerType, LongType, StringType, BinaryType, DecimalType),
    "truncate[10]": (IntegerType, LongType, StringType, BinaryType, DecimalType),
    "year": (DateType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType),
    "month": (DateType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType),
    "day": (DateType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType),
    "hour": (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType),
}


def as_json(kind, value):
    # PyIceberg has no JSON of nanosecond types; the spec's form is the microsecond one and three digits.
    if isinstance(kind, (TimestampNanoType, TimestamptzNanoType)):
        micros = TimestampType() if isinstance(kind, TimestampNanoType) else TimestamptzType()
        text = to_json(micros, value // 1000)
        head, zone = (text[:-6], text[-6:]) if text.endswith("+00:00") else (text, "")
        if "." not in head:
            head += ".000000"
        return head + "%03d" % (value % 1000) + zone
    return to_json(kind, value)


def main():
    values, transforms, refused = [], [], []
    for kind, examples in VALUES:
        for value in examples:
            row = {"type": str(kind), "json": as_json(kind, value), "bytes": to_bytes(kind, value).hex()}
            values.append(row)
            for text, kinds in TRANSFORMS.items():
                if kinds is not None and not isinstance(kind, kinds):
                    continue
                transform = parse_transform(text)
                try:
                    result_type = transform.result_type(kind)
                    result = transform.transform(kind)(value)
                    out = None if result is None else to_bytes(result_type, result).hex()
                except Exception as e:  # what PyIceberg cannot do is listed, not hidden
                    refused.append(f"{text} {kind} {value!r}: {type(e).__name__}: {e}")
                    continue
                transforms.append(dict(row, transform=text, result_type=str(result_type), result=out))
    for line in refused:
        print(line, file=sys.stderr)
    json.dump({"made_by": f"pyiceberg {pyiceberg.__version__}", "values": values, "transforms": transforms},
              sys.stdout, indent=0, ensure_ascii=True)
    print()


main()
