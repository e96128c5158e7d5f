#!/usr/bin/env python3
"""Plants one violation of each rule in a temporary tree; lint must name it, and only it.

run: python3 tests/lint/test_lint.py
"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lint  # noqa: E402

HEADER = "#ifndef %s\n#define %s\n\n%s\n#endif\n"


def header(path, body=""):
    guard = path.upper().replace("/", "_").replace(".", "_")
    return HEADER % (guard, guard, body)


# A tree without a fault; each test adds to it or replaces a file of it.
CLEAN = {
    "proto/base/ink.h": header("proto/base/ink.h", "__attribute__((warn_unused_result)) enum status ink_put(int n);\n"),
    "proto/base/ink.c": '#include "proto/base/ink.h"\n\n#include <string.h>\n\nstatic const int ink_size = 3;\n\n'
                        "enum status ink_put(int n)\n{\n\treturn n + ink_size;\n}\n",
    "conf/pen.h": header("conf/pen.h"),
    "conf/pen.c": '#include "conf/pen.h"\n\n#include <time.h>\n\n#include "proto/base/ink.h"\n',
    "store/pg/jar.c": '#include <uv.h>\n\n#include "conf/pen.h"\n',
    "daemon/commit/core.c": '#include "proto/base/ink.h"\n',
    "daemon/bind/drive.c": '#include <uv.h>\n\n#include "conf/pen.h"\n',
    "Makefile": "all:\n\techo\n",
}


class Planted(unittest.TestCase):
    def lint(self, extra):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **extra}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as f:
                    f.write(text)
            found = lint.Lint(root)
            found.run()
            return found

    def caught(self, rule, extra, path=None):
        found = self.lint(extra)
        rules = {(p, r) for p, _, r, _ in found.errors}
        self.assertEqual(rules, {(path or list(extra)[-1], rule)})

    def warned(self, rule, extra):
        found = self.lint(extra)
        self.assertEqual(found.errors, [])
        self.assertIn(rule, {r for _, _, r, _ in found.warnings})

    def clean(self, extra):
        self.assertEqual(self.lint(extra).errors, [])

    def test_clean_tree(self):
        found = self.lint({})
        self.assertEqual((found.errors, found.warnings), ([], []))

    # Layers
    def test_proto_takes_conf(self):
        self.caught("layer", {"proto/base/cap.c": '#include "conf/pen.h"\n'})

    def test_conf_takes_store(self):
        self.caught("layer", {"store/pg/lid.h": header("store/pg/lid.h"), "conf/cap.c": '#include "store/pg/lid.h"\n'})

    def test_store_takes_daemon(self):
        self.caught("layer", {"daemon/bind/lid.h": header("daemon/bind/lid.h"),
                              "store/pg/cap.c": '#include "daemon/bind/lid.h"\n'})

    def test_core_takes_conf(self):
        self.caught("layer", {"daemon/commit/cap.c": '#include "conf/pen.h"\n'})

    def test_core_takes_daemon(self):
        self.caught("layer", {"daemon/bind/lid.h": header("daemon/bind/lid.h"),
                              "daemon/commit/cap.c": '#include "daemon/bind/lid.h"\n'})

    # What holds of the core holds of its folder.
    def test_intake_is_core(self):
        lid = {"daemon/bind/lid.h": header("daemon/bind/lid.h")}
        cap = "daemon/commit/intake/cap.c"
        for target in ("conf/pen.h", "daemon/bind/lid.h"):
            with self.subTest(target=target):
                self.caught("layer", {**lid, cap: '#include "%s"\n' % target})
        for library in ("uv.h", "pthread.h", "time.h"):
            with self.subTest(library=library):
                self.caught("library", {cap: "#include <%s>\n" % library})
        self.caught("pure", {cap: "static void cap(void)\n{\n\tgetenv(0);\n}\n"})
        self.caught("state", {cap: "static int count;\n"})

    def test_intake_takes_core(self):
        lid = "daemon/commit/%s.h"
        inner = "daemon/commit/intake/cap.c"
        self.caught("layer", {lid % "batch": header(lid % "batch"), inner: '#include "%s"\n' % (lid % "batch")})
        self.clean({lid % "state": header(lid % "state"), inner: '#include "%s"\n' % (lid % "state")})

    def test_client_takes_iceberg(self):
        self.caught("layer", {"proto/iceberg/lid.h": header("proto/iceberg/lid.h"),
                              "clients/c/cap.c": '#include "proto/iceberg/lid.h"\n'})

    def test_client_takes_frame(self):
        self.clean({"proto/rpc/frame.h": header("proto/rpc/frame.h"),
                    "clients/c/cap.c": '#include "proto/rpc/frame.h"\n'})

    def test_include_not_from_root(self):
        self.caught("include", {"conf/cap.c": '#include "pen.h"\n'})

    def test_own_header_first(self):
        self.caught("own-header", {"conf/pen.c": '#include <time.h>\n\n#include "conf/pen.h"\n'})

    # Libraries
    def test_libraries(self):
        for where, library in (
                ("proto/dv/cap.c", "roaring/roaring.h"), ("store/obj/cap.c", "openssl/evp.h"),
                ("proto/dv/cap.c", "zstd.h"), ("proto/dv/cap.c", "snappy-c.h"),
                ("proto/iceberg/cap.c", "jansson.h"), ("store/pg/cap.c", "libpq-fe.h"),
                ("store/pg/cap.c", "curl/curl.h"), ("daemon/rest/cap.c", "microhttpd.h"),
                ("daemon/cap.c", "systemd/sd-daemon.h"), ("daemon/commit/cap.c", "uv.h"),
                ("daemon/rest/cap.c", "uv.h"), ("proto/rpc/cap.c", "uv.h"), ("conf/cap.c", "zlib.h"),
                ("proto/avro/cap.c", "avro.h"), ("store/pg/cap.c", "lmdb.h"),
                ("proto/base/cap.c", "time.h"), ("proto/base/cap.c", "sys/socket.h"),
                ("daemon/commit/cap.c", "pthread.h")):
            with self.subTest(where=where, library=library):
                self.caught("library", {where: "#include <%s>\n" % library})

    def test_libraries_in_their_place(self):
        self.clean({"proto/dv/bitmap64.c": "#include <roaring/roaring.h>\n",
                    "proto/avro/codec.c": "#include <snappy-c.h>\n#include <zstd.h>\n#include <zlib.h>\n",
                    "store/pg/pgc.c": "#include <libpq-fe.h>\n", "daemon/net/http.c": "#include <microhttpd.h>\n",
                    "tests/unit/check_ink.c": "#include <avro.h>\n#include <sys/socket.h>\n"})

    def test_second_file_with_curl(self):
        self.clean({"store/obj/fetch.c": "#include <curl/curl.h>\n"})
        self.caught("library", {"store/obj/fetch.c": "#include <curl/curl.h>\n",
                                "store/obj/gcs.c": "#include <curl/curl.h>\n"})

    # Calls
    def test_banned_calls(self):
        for name in lint.BANNED:
            with self.subTest(name=name):
                self.caught("banned", {"conf/cap.c": "static int cap(void)\n{\n\treturn (int)%s(0);\n}\n" % name})

    def test_banned_name_in_text_is_no_call(self):
        self.clean({"conf/cap.c": '/* strcpy(a, b) */\nstatic const char *cap = "sprintf(x)"; // atoi(1)\n'
                                  "static int cap_time(int t)\n{\n\treturn t->time(0) + x.rand(1);\n}\n"})

    def test_stdout(self):
        self.caught("banned", {"conf/cap.c": 'static void cap(void)\n{\n\tprintf("x");\n}\n'})
        self.clean({"daemon/main.c": 'static void cap(void)\n{\n\tprintf("x");\n}\n'})

    def test_heap(self):
        for name in lint.HEAP:
            with self.subTest(name=name):
                self.caught("heap", {"store/pg/cap.c": "static void cap(void)\n{\n\t%s(0);\n}\n" % name})

    def test_impure_call(self):
        for name in lint.BANNED_PURE:
            with self.subTest(name=name):
                self.caught("pure", {"daemon/commit/cap.c": "static void cap(void)\n{\n\t%s(0);\n}\n" % name})

    def test_state_in_pure_layer(self):
        for line in ("static int count;", "int count = 3;", "static struct ink *ink_last;", "static char names[3][4];",
                     "static int f(void)\n{\n\tstatic int calls;\n\treturn calls++;\n}"):
            with self.subTest(line=line):
                self.caught("state", {"proto/base/cap.c": line + "\n"})
        self.clean({"conf/lid.c": "static int count;\n",
                    "proto/base/cap.c": "static const int count = 3;\nstruct ink;\nint f(void);\n"
                                        "static int g(int n)\n{\n\tint m = n;\n\treturn m;\n}\n"})

    def test_recursion(self):
        body = "static int walk(int n)\n{\n\treturn n ? walk(n - 1) : 0;\n}\n"
        self.caught("recursion", {"proto/base/cap.c": body})
        self.clean({"proto/base/cap.c": "/* depth is bounded by the caller */\n" + body})

    # Form
    def test_guard(self):
        self.caught("guard", {"conf/cap.h": "#ifndef CAP_H\n#define CAP_H\n#endif\n"})

    def test_must_check(self):
        self.caught("must-check", {"conf/cap.h": header("conf/cap.h", "enum status cap_put(int n);\n")})

    def test_typedef(self):
        self.caught("typedef", {"conf/cap.h": header("conf/cap.h", "typedef struct cap cap_t;\n")})

    def test_basename(self):
        self.caught("basename", {"store/pg/pen.c": "\n"})

    def test_space(self):
        self.caught("space", {"conf/cap.c": "static const int x = 1; \n"})

    def test_size(self):
        self.caught("size", {"docs/big.txt": "x" * (lint.MAX_BYTES + 1)})

    def test_unfinished(self):
        self.caught("unfinished", {"conf/cap.c": "/* TO" "DO: later */\n"})

    def test_words(self):
        for text in ("see /wo" "rk/main", "in /ro" "ot/x", "as architec" "ture.md says", "sha" "red/design",
                     "IR" " §3.6", "rule P" "15 says", "(P" "4)", "from pypi" ".org"):
            with self.subTest(text=text):
                self.caught("words", {"docs/page.md": text + "\n"})
        self.clean({"docs/page.md": "a p50 of 3 ms, P1D, /var/tmp, ~/.cache, {\"P0\":1}\n"})

    def test_weak_assertions(self):
        self.caught("weak", {"tests/it/test_x.py": "def test_x():\n    assert True\n"})
        self.caught("weak", {"tests/unit/check_x.c": "static void f(void)\n{\n\tck_assert(true);\n}\n"})

    def test_absolute_path_in_rule(self):
        self.caught("make", {"Makefile": "$(CURDIR)/x: y\n\techo\n"})

    # Warnings
    def test_long_file(self):
        self.warned("lines", {"conf/cap.c": "\n" * (lint.LINES_LOOK + 1)})

    def test_wide_line(self):
        self.warned("columns", {"conf/cap.c": "/* %s */\n" % ("x" * 100)})

    def test_prefix(self):
        self.warned("prefix", {"conf/cap.c": "int other(void)\n{\n\treturn 0;\n}\n"})

    # Every error and warning that lint can give has a test above.
    def test_every_rule_is_planted(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "lint.py"), encoding="utf-8") as f:
            rules = set(lint.re.findall(r"self\.(?:error|warn)\([^\"]*?\"([a-z-]+)\"", f.read()))
        with open(os.path.join(here, "test_lint.py"), encoding="utf-8") as f:
            planted = set(lint.re.findall(r"self\.(?:caught|warned)\(\"([a-z-]+)\"", f.read()))
        self.assertEqual(rules - planted, set())
        self.assertGreater(len(rules), 15)


if __name__ == "__main__":
    unittest.main(verbosity=0)
