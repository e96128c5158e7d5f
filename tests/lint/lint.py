#!/usr/bin/env python3
"""Checks the rules of this tree that no compiler checks: layers, libraries, banned calls, names.

usage: lint.py [ROOT]     prints "path:line: rule: text"; exit 1 on errors, warnings alone pass.

Each exception is a row of a table below and says why. A rule without a test that plants a
violation (test_lint.py) does not count as a rule.
"""

import os
import re
import subprocess
import sys

# ---- tables ------------------------------------------------------------------------------------

# Layer -> folders it may include from. Longest match wins, so that the commit core has its own row.
LAYERS = {
    "proto": ("proto",),
    "conf": ("conf", "proto"),
    "store": ("store", "conf", "proto"),
    "daemon": ("daemon", "store", "conf", "proto"),
    "daemon/commit": ("daemon/commit", "proto"),
    # Of the core, what workers staged needs no more than the transactions and what a plan is told.
    "daemon/commit/intake": ("daemon/commit/intake", "daemon/commit/state", "daemon/commit/plan",
                             "daemon/commit/algebra", "daemon/commit/posdel", "daemon/commit/mutant",
                             "proto"),
    "clients": ("clients", "proto/base", "proto/rpc/frame"),
}

# What the pure layers may take from libc: nothing with a clock, a socket, a thread or a file.
PURE_LIBC = set(
    "assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdbool.h "
    "stddef.h stdint.h stdio.h stdlib.h string.h".split()
)
PURE = ("proto", "daemon/commit")
LIBC = PURE_LIBC | set(
    "dirent.h dlfcn.h fcntl.h fnmatch.h getopt.h grp.h locale.h malloc.h netdb.h poll.h pthread.h "
    "pwd.h sched.h semaphore.h setjmp.h signal.h stdatomic.h strings.h syslog.h termios.h time.h "
    "ucontext.h unistd.h execinfo.h link.h".split()
)
LIBC_FOLDERS = ("arpa/", "linux/", "net/", "netinet/", "sys/")

# Library header -> where it may stand. "one:FOLDER" is any single file of that folder.
LIBRARIES = {
    "roaring/": ("proto/dv/bitmap64.c",),
    "openssl/": ("proto/base/digest.c",),
    "snappy": ("proto/avro/codec.c",),
    "zstd.h": ("proto/avro/codec.c",),
    "zlib.h": ("proto/",),
    "jansson.h": ("proto/base/json.c", "one:clients/ctl/"),
    "libpq": ("store/pg/pgc.c",),
    "curl/": ("one:store/obj/", "one:clients/ctl/"),
    "microhttpd.h": ("daemon/net/http.c", "daemon/net/http_req.c", "daemon/net/http_inner.h"),
    "systemd/": ("daemon/notify.c",),
    "uv.h": ("store/", "daemon/"),
    "avro.h": ("clients/c/",),
    "avro/": ("clients/c/",),
    "frazil.h": ("clients/c/example/",),
}
# Folders and files inside an allowed folder that stay free of the loop's header.
NO_UV = ("daemon/commit/", "daemon/rest/", "daemon/net/route.")

# Libc headers that one file of a pure layer may take all the same.
LIBC_EXCEPTIONS = {
    ("proto/base/digest.c", "sys/random.h"): "random bytes come from the kernel in one place",
}

BANNED = {
    "sprintf": "use snprintf or buf_printf",
    "vsprintf": "use vsnprintf",
    "strcpy": "use memcpy with a checked length",
    "stpcpy": "use memcpy with a checked length",
    "strcat": "use buf",
    "strncpy": "does not end with NUL; use strv_cstr",
    "strncat": "use buf",
    "strtok": "keeps state; use strv_find",
    "atoi": "no error; use strv_i64",
    "atol": "no error; use strv_i64",
    "atoll": "no error; use strv_i64",
    "atof": "no error",
    "gets": "no bound",
    "alloca": "no bound",
    "time": "use the loop's clock or the time inside the event",
    "localtime": "depends on the machine",
    "gmtime": "not reentrant",
    "rand": "use the seeded generator or digest_random",
    "srand": "use the seeded generator",
    "system": "no shells",
    "popen": "no shells",
    "sleep": "blocks the loop",
    "usleep": "blocks the loop",
    "setjmp": "no unwinding",
    "longjmp": "no unwinding",
}
BANNED_STDOUT = ("printf", "vprintf", "puts", "putchar")
STDOUT_ALLOWED = ("daemon/main.c", "clients/ctl/", "clients/c/example/", "tests/")
HEAP = ("malloc", "calloc", "realloc", "reallocarray", "free", "strdup", "strndup", "asprintf", "vasprintf")
HEAP_ALLOWED = ("proto/base/", "tests/", "clients/")
# file -> why it must call the heap itself.
HEAP_EXCEPTIONS = {
    "daemon/net/http.c": "hands buffers to, and takes them from, libmicrohttpd",
}
BANNED_PURE = ("clock_gettime", "gettimeofday", "getrandom", "getenv", "fopen", "fread", "fwrite",
               "open", "socket", "pthread_create", "fprintf")
PURE_CALL_EXCEPTIONS = {
    ("proto/base/digest.c", "getrandom"): "the one source of randomness",
    ("proto/base/base.c", "fprintf"): "the message of a failed assertion",
}
# Variables that are not constant in a pure layer.
STATE_EXCEPTIONS = {
    "proto/base/digest.c": "checksum table, written once before main",
}
# Functions that return a status and may be ignored.
UNCHECKED_STATUS = {"err_set"}

# Prefixes of a file besides its own basename.
PREFIXES = {
    "err": ("status_",), "json": ("jdoc_", "jval_"), "base": ("",), "pgc": ("pgres_",), "strv": ("bytes_",),
    "types": ("type_",), "value": ("tuple_",),
    "manifest_list": ("manifest_file_",),
    "rpc_request": ("rpc_",), "listen": ("rpc_",),
    "objects": ("mlist_", "mview_", "vec_"), "cache": ("needs_",), "core": ("effects_",),
    "bind_store": ("bind_",), "http_req": ("http_",),
    "fz_client": ("fz_",), "fz_txn": ("fz_",), "fz_schema": ("fz_schemas_",),
    "fz_conn": ("fz_address_",), "fz_error": ("fz_status_", "fz_state_", "fz_version"),
    "metadata_apply": ("metadata_",), "metadata_history": ("metadata_",),
}

COLUMNS = 100
LINES_LOOK = 800
MAX_BYTES = 1 << 20

FORBIDDEN = [
    (r"(?<![\w.])/(?:work|farm|root|home)/[a-z]", "path of one machine"),
    (r"\b(?:iceberg-requirements|commit-coordination|c-libraries|c-style|architecture|protocol|"
     r"field-cases)\.md\b", "names a document outside the tree"),
    (r"\bshared/(?:design|reference|recipes|golden|cases|hooks)", "names a folder outside the tree"),
    (r"\b(?:IR|CC|CL|CS) ?§", "rule number of a document outside the tree"),
    (r"(?<![\w.\-/\"'$])P[1-9]\d?(?:[,.;:)]|\b)(?!\w)", "rule number of a document outside the tree"),
    (r"\b(?:pypi|npmjs|crates|golang)\.(?:org|com|io)\b|pythonhosted|repo1?\.maven|"
     r"deb\.debian\.|\b(?:docker|ghcr|quay)\.io\b", "host name of a package registry"),
]
# ISO 8601 periods such as P1D look like rule numbers only with a letter after, which \b excludes.

TEXT = re.compile(
    r"\.(c|h|tbl|py|sh|mk|md|ini|sql|txt|json|avsc|java|xml|toml|rs|yml|yaml|service|socket)$|"
    r"(^|/)(Makefile|Dockerfile|\.clang-format|\.gitignore|run)$"
)
SKIP = ("build/", "var/", ".git/", "tests/golden/")


# ---- reading -----------------------------------------------------------------------------------


def files_of(root):
    """Tracked and new files of a git tree, or all files of a plain folder."""
    if os.path.isdir(os.path.join(root, ".git")) or os.path.isfile(os.path.join(root, ".git")):
        out = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
            check=True, stdout=subprocess.PIPE).stdout.decode()
        names = [n for n in out.split("\0") if n]
    else:
        names = []
        for folder, subs, here in os.walk(root):
            names += [os.path.relpath(os.path.join(folder, n), root) for n in here]
    return sorted({n for n in names
                   if not n.startswith(SKIP) and os.path.isfile(os.path.join(root, n))})


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def strip_comments(text):
    """Comments and literals become spaces, so that lines and columns stay."""
    def one(m):
        s = m.group(0)
        if s[0] == '"':
            return '"' + " " * (len(s) - 2) + '"'
        return blank(m)
    return TOKEN.sub(one, text)


def layer_of(path):
    best = ""
    for name in LAYERS:
        if path.startswith(name + "/") and len(name) > len(best):
            best = name
    return best


def line_of(text, at):
    return text.count("\n", 0, at) + 1


class Lint:
    def __init__(self, root):
        self.root = root
        self.files = files_of(root)
        self.errors = []
        self.warnings = []
        self.single = {}  # (library, folder) -> files, for the "one:" rows

    def error(self, path, line, rule, text):
        self.errors.append((path, line, rule, text))

    def warn(self, path, line, rule, text):
        self.warnings.append((path, line, rule, text))

    def run(self):
        self.names()
        for path in self.files:
            full = os.path.join(self.root, path)
            size = os.path.getsize(full)
            if size > MAX_BYTES:
                self.error(path, 0, "size", "%d bytes; let a script make it" % size)
                continue
            if not TEXT.search(path):
                continue
            with open(full, encoding="utf-8", errors="replace") as f:
                text = f.read()
            self.words(path, text)
            if path.endswith((".c", ".h")):
                self.c_file(path, text)
            elif path.endswith(".py"):
                self.weak_python(path, text)
            elif path.endswith("Makefile") or path.endswith(".mk"):
                self.make_file(path, text)
        for (library, folder), users in sorted(self.single.items()):
            for path, line in users[1:]:
                self.error(path, line, "library", "%s stands in %s already; one file of %s may use it"
                           % (library, users[0][0], folder))

    # Unique basenames: a.c, a.h and a.tbl of one folder are one noun.
    def names(self):
        seen = {}
        for path in self.files:
            if path.endswith((".c", ".h", ".tbl")):
                stem = os.path.splitext(os.path.basename(path))[0]
                folder = os.path.dirname(path)
                other = seen.setdefault(stem, folder)
                if other != folder:
                    self.error(path, 0, "basename", "%s stands in %s too" % (stem, other))

    def words(self, path, text):
        if path.startswith("tests/lint/"):
            return
        for pattern, why in FORBIDDEN:
            for m in re.finditer(pattern, text):
                self.error(path, line_of(text, m.start()), "words", "%s: %r" % (why, m.group(0)))
        if not path.endswith(".md"):
            for m in re.finditer(r"\b(?:TODO|FIXME|XXX)\b", text):
                self.error(path, line_of(text, m.start()), "unfinished", m.group(0))
        for n, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip() and not path.endswith((".md", ".txt")):
                self.error(path, n, "space", "space at the end of the line")

    def weak_python(self, path, text):
        for m in re.finditer(r"^\s*assert (?:True|1)\s*$", text, re.M):
            self.error(path, line_of(text, m.start()), "weak", "an assertion that cannot fail")

    def make_file(self, path, text):
        for m in re.finditer(r"^(?![\t#])(?=.*:(?!=))[^\n=]*\$\((?:CURDIR|PWD|abspath)\b", text, re.M):
            self.error(path, line_of(text, m.start()), "make",
                       "absolute path in a rule: breaks on a space in the folder's name")

    # ---- C ----
    def c_file(self, path, text):
        code = strip_comments(text)
        self.format(path, text)
        self.includes(path, text)
        self.calls(path, code)
        self.typedefs(path, code)
        if path.endswith(".h"):
            self.guard(path, text)
            self.must_check(path, code)
        if path.startswith(PURE) and path.endswith(".c"):
            self.state(path, code)
        self.functions(path, text, code)
        if path.startswith("tests/"):
            for m in re.finditer(r"\bck_assert\((?:1|true)\)", code):
                self.error(path, line_of(code, m.start()), "weak", "an assertion that cannot fail")

    def format(self, path, text):
        lines = text.split("\n")
        wide = [n for n, line in enumerate(lines, 1)
                if len(line.rstrip("\\ \t").expandtabs(8)) > COLUMNS]
        if wide:
            self.warn(path, wide[0], "columns", "%d line(s) over %d columns" % (len(wide), COLUMNS))
        if len(lines) - 1 > LINES_LOOK:
            self.warn(path, 0, "lines", "%d lines: which second noun lives here?" % (len(lines) - 1))

    def includes(self, path, text):
        layer = layer_of(path)
        stem = os.path.splitext(path)[0]
        own = stem + ".h"
        first = True
        for m in re.finditer(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", text, re.M):
            line, target = line_of(text, m.start()), m.group(2)
            if first and path.endswith(".c") and own in self.files and target != own:
                self.error(path, line, "own-header", "the first include must be %s" % own)
            first = False
            if m.group(1) == '"':
                self.include_own(path, line, layer, target)
            else:
                self.include_library(path, line, layer, target)

    def include_own(self, path, line, layer, target):
        if target.startswith("gen/"):  # made by a rule, in the build folder
            return
        if target not in self.files:
            self.error(path, line, "include", "%s is not a path from the root" % target)
            return
        if path.startswith("tests/"):
            return
        allowed = LAYERS.get(layer, ())
        inside = [a for a in allowed if target.startswith((a + "/", a + "."))]
        if layer == "daemon" or not layer.startswith("daemon"):
            if not inside:
                self.error(path, line, "layer", "%s may not include %s" % (layer or "?", target))
        elif not inside:
            self.error(path, line, "layer", "the commit core may not include %s" % target)

    def include_library(self, path, line, layer, target):
        for library, places in LIBRARIES.items():
            if not target.startswith(library):
                continue
            if path.startswith("tests/"):  # an oracle may use what it likes
                return
            if library == "uv.h" and path.startswith(NO_UV):
                self.error(path, line, "library", "%s may not stand here" % target)
                return
            for place in places:
                if place.startswith("one:"):
                    folder = place[4:]
                    if path.startswith(folder):
                        users = self.single.setdefault((library, folder), [])
                        if path not in [u[0] for u in users]:
                            users.append((path, line))
                        return
                elif path == place or (place.endswith("/") and path.startswith(place)):
                    return
            self.error(path, line, "library", "%s may stand in %s only" % (target, ", ".join(places)))
            return
        if path.startswith("tests/"):
            return
        if path.startswith(PURE):
            if target not in PURE_LIBC and (path, target) not in LIBC_EXCEPTIONS:
                self.error(path, line, "library", "<%s> is not for a pure layer" % target)
        elif target not in LIBC and not target.startswith(LIBC_FOLDERS):
            self.error(path, line, "library", "<%s> is no known library" % target)

    def calls(self, path, code):
        def each(names):
            pattern = r"(?<![\w.>])(%s)\s*\(" % "|".join(names)
            for m in re.finditer(pattern, code):
                yield m.group(1), line_of(code, m.start())
        for name, line in each(BANNED):
            if name in ("sleep", "usleep") and path.startswith("tests/"):
                continue
            self.error(path, line, "banned", "%s: %s" % (name, BANNED[name]))
        if not path.startswith(STDOUT_ALLOWED):
            for name, line in each(BANNED_STDOUT):
                self.error(path, line, "banned", "%s: a daemon logs" % name)
        if not path.startswith(HEAP_ALLOWED) and path not in HEAP_EXCEPTIONS:
            for name, line in each(HEAP):
                self.error(path, line, "heap", "%s: use arena, buf or base_alloc" % name)
        if path.startswith(PURE):
            for name, line in each(BANNED_PURE):
                if (path, name) not in PURE_CALL_EXCEPTIONS:
                    self.error(path, line, "pure", "%s: not in a pure layer" % name)

    def typedefs(self, path, code):
        for m in re.finditer(r"\btypedef\s+(?:struct|union|enum)\b", code):
            self.error(path, line_of(code, m.start()), "typedef", "no typedefs for structs")

    def guard(self, path, text):
        want = re.sub(r"[^A-Z0-9]", "_", path.upper())
        m = re.search(r"^#ifndef (\w+)\n#define (\w+)$", text, re.M)
        if not m or m.group(1) != want or m.group(2) != want:
            self.error(path, 1, "guard", "the guard must be %s" % want)

    def must_check(self, path, code):
        for m in re.finditer(r"^(?:static inline )?enum status (\w+)\(", code, re.M):
            if m.group(1) not in UNCHECKED_STATUS:
                self.error(path, line_of(code, m.start()), "must-check",
                           "%s returns a status without MUST_CHECK" % m.group(1))

    # Non-constant variables at file level, and static ones inside functions.
    def state(self, path, code):
        if path in STATE_EXCEPTIONS:
            return
        depth = 0
        for n, line in enumerate(code.split("\n"), 1):
            bare = line.strip()
            top = depth == 0
            depth += line.count("{") - line.count("}")
            if bare.startswith("#") or bare.endswith("\\"):
                continue
            if top and re.match(
                    r"^(?!(?:struct|enum|union) \w+;)(?:static\s+)?(?:struct |enum |unsigned |_Atomic )*\w+[\s*]+\w+(?:\[[^\]]*\])*\s*(?:=|;)", line):
                if not re.search(r"\bconst\b|\btypedef\b|\bextern\b|\breturn\b", line):
                    self.error(path, n, "state", "a variable in a pure layer")
            elif re.match(r"^\s+static\b(?!.*\bconst\b)(?!\s+inline)", line) and "(" not in line.split("=")[0]:
                self.error(path, n, "state", "a static variable in a pure layer")

    # Recursion must be visibly bounded; file-crossing names carry the file's prefix (warning).
    def functions(self, path, text, code):
        if path.startswith("tests/"):
            return
        stem = os.path.splitext(os.path.basename(path))[0]
        allowed = tuple(PREFIXES.get(stem, ())) + (stem + "_",)
        pattern = re.compile(r"^(?!#|\s|\}|typedef)([^\n;{}=]*?)\b(\w+)\(([^;{}]*)\)\s*\n?\{", re.M)
        for m in pattern.finditer(code):
            start = m.end() - 1
            depth, at = 0, start
            while at < len(code):
                depth += {"{": 1, "}": -1}.get(code[at], 0)
                at += 1
                if depth == 0:
                    break
            name, body = m.group(2), code[start:at]
            line = line_of(code, m.start())
            if re.search(r"(?<![\w.>])%s\(" % re.escape(name), body) and \
                    not re.search(r"depth|bounded", text[max(0, m.start() - 400):at], re.I):
                self.error(path, line, "recursion", "%s calls itself without a depth" % name)
            if name.isupper() or name.startswith("__") or name == "main":
                continue
            if "static" not in m.group(1) and path.endswith(".c") and \
                    not (name == stem or name.startswith(allowed)):
                self.warn(path, line, "prefix", "%s does not begin with %s_" % (name, stem))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    lint = Lint(root)
    lint.run()
    for kind, rows in (("warning: ", lint.warnings), ("", lint.errors)):
        for path, line, rule, text in sorted(rows):
            print("%s:%d: %s%s: %s" % (path, line, kind, rule, text))
    print("lint: %d files, %d errors, %d warnings" % (len(lint.files), len(lint.errors), len(lint.warnings)))
    return 1 if lint.errors else 0


if __name__ == "__main__":
    sys.exit(main())
