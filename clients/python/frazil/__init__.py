"""Client of frazild, the commit coordinator for Apache Iceberg tables.

    import frazil
    with frazil.Client("127.0.0.1:8182") as client:
        txn = client.table("db.events").begin(kind="APPEND")
        txn.append(arrow_table)
        print(txn.commit().snapshot_id)

A worker writes data files and stages facts about them; the daemon decides and publishes. Every
message may be repeated with the same ids, which this client does after a lost connection.
"""

from . import codec, dv, parquet
from .aio import AsyncClient, AsyncTransaction
from .client import Client, Transaction
from .errors import (Conflict, ConnectionLost, Error, Overloaded, ProtocolError, Rejected,
                     SchemaError, TransactionOver, Unknown)
from .txn import Outcome, Staged, uuid7

__all__ = ["AsyncClient", "AsyncTransaction", "Client", "Conflict", "ConnectionLost", "Error",
           "Outcome", "Overloaded", "ProtocolError", "Rejected", "SchemaError", "Staged",
           "Transaction", "TransactionOver", "Unknown", "codec", "dv", "parquet", "uuid7"]
