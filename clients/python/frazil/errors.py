"""Typed errors. Each carries what the server said: code, name, field, message, retry, effect."""


class Error(Exception):
    """Base of everything this package raises on purpose.

    retry: NONE, SAME (repeat the very same call), REFRESH (build the work again), LATER.
    effect: CLEAN (nothing happened) or UNKNOWN (it may have happened).
    outcome: the transaction's Outcome where there is one.
    """

    def __init__(self, message, *, code=0, name="", field="", retry="NONE", effect="CLEAN",
                 outcome=None):
        super().__init__(message)
        self.code = code
        self.name = name
        self.field = field
        self.message = message
        self.retry = retry
        self.effect = effect
        self.outcome = outcome

    def __str__(self):
        head = f"{self.name}: " if self.name else ""
        tail = f" ({self.field})" if self.field else ""
        return f"{head}{self.message}{tail}"


class Rejected(Error):
    """The transaction can never commit; `name` is the reason."""


class Conflict(Error):
    """The id was used before with other content."""


class TransactionOver(Error):
    """Aborted, expired or lost."""


class Overloaded(Error):
    """Refused before any work; the call was repeated as often as allowed."""


class Unknown(Error):
    """The outcome is open: repeat the same call or ask for the status."""


class ConnectionLost(Unknown):
    """No connection after all attempts; a request may have reached the server."""


class ProtocolError(Error):
    """The peer broke the protocol, or does not speak a version of ours."""


class SchemaError(Error):
    """Data does not fit the table; nothing was sent."""


# Statuses of the rejects that are final, by the numbers of the protocol.
_REJECTS = range(60, 100)
_BY_NAME = {
    "DIGEST_CONFLICT": Conflict,
    "TXN_EXPIRED": TransactionOver,
    "TXN_ABORTED": TransactionOver,
    "LOST": TransactionOver,
    "OVERLOADED": Overloaded,
    "UNAVAILABLE": Overloaded,
}


def from_record(record, outcome=None):
    """The exception for an Error record."""
    kind = _BY_NAME.get(record["name"])
    if kind is None and record["effect"] == "UNKNOWN":
        kind = Unknown
    if kind is None and record["code"] in _REJECTS:
        kind = Rejected
    return (kind or Error)(record["message"], code=record["code"], name=record["name"],
                           field=record["field"], retry=record["retry"],
                           effect=record["effect"], outcome=outcome)
