"""What a run has found: counted, told as it happens, and told once more in short as its last lines, for whoever sees
the end of the output alone."""

import traceback

SHOWN, LINES, WIDTH = 20, 3, 220


def brief(error):
    """The lines that tell an exception; of a program that ended also what it said."""
    said = getattr(error, "stderr", None) or getattr(error, "output", None) or ""
    said = said.decode(errors="replace") if isinstance(said, bytes) else said
    lines = ["%s: %s" % (type(error).__name__, error)] + said.splitlines()[-2:]
    return [x for line in lines for x in line.splitlines() if x.strip() and not x.startswith("\tat ")]


class Report:
    def __init__(self):
        self.part = "set-up"  # what runs now
        self.failures = []  # (part, who, what, lines of the cause)
        self.counts = {}

    def count(self, who, verdict):
        self.counts[who, verdict] = self.counts.get((who, verdict), 0) + 1

    def fail(self, who, what, lines, cause=None):
        """cause: what to repeat at the end, where that is not how the lines begin."""
        self.failures.append((self.part, who, what, list(cause or lines)))
        self.count(who, "FAILED")
        print("FAILED %s: %s" % (who, what))
        for line in lines:
            print("       " + line)

    def broke(self, who, error):
        """An exception that nobody expected."""
        self.fail(who, type(error).__name__, "".join(traceback.format_exception(error)).splitlines()[-12:], brief(error))

    def step(self, part, f, *args):
        """Runs a part; when it breaks, the next ones run all the same."""
        self.part = part
        try:
            return f(*args)
        except Exception as e:
            self.broke(part, e)

    def closing(self):
        """The last lines of the output."""
        if not self.failures:
            return ["interop: all passed"]
        out = ["interop: %d FAILED" % len(self.failures)]
        for part, who, what, lines in self.failures[:SHOWN]:
            first = "FAILED %s: %s: %s" % (part, who, what)
            out.append(first[:WIDTH])
            out += ["       " + line[:WIDTH] for line in lines[:LINES]]
        if len(self.failures) > SHOWN:
            out.append("       and %d more" % (len(self.failures) - SHOWN))
        return out
