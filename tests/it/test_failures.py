"""What .ci/run says last: which test of which suite failed and why, however long the output was."""

import os
import subprocess
import sys

from support.postgres import ROOT

SCRIPT = os.path.join(ROOT, "scripts/failures.py")
sys.path.append(os.path.join(ROOT, "tests/interop"))
from report import Report  # noqa: E402

NOISE = "".join("ok line %d\n" % i for i in range(3000))


def tell(tmp_path, *logs, room=39):
    args = []
    for i, (name, text) in enumerate(logs):
        path = tmp_path / ("%d.log" % i)
        path.write_text(text)
        args += [name, str(path)]
    got = subprocess.run([sys.executable, SCRIPT, str(room), *args], check=True, text=True, stdout=subprocess.PIPE).stdout
    lines = got.splitlines()
    assert len(lines) <= room and max(map(len, lines)) <= 250
    return lines


def output(folder, *args):
    got = subprocess.run(args, cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env={**os.environ, "CI": "true"})
    assert got.returncode != 0
    return got.stdout


def test_pytest(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "import time\ndef test_good(): pass\ndef test_bad(): assert 'apples' == 'pears'\ndef test_gone(): open('/absent')\n")
    text = output(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_x.py")
    lines = tell(tmp_path, ("make test", NOISE + text + NOISE))
    assert lines[0] == "FAILED: make test"
    assert any("test_x.py::test_bad" in x and "apples" in x for x in lines)
    assert any("test_x.py::test_gone" in x and "/absent" in x for x in lines)
    assert not any("ok line" in x for x in lines)


def test_compiler_and_make(tmp_path):
    (tmp_path / "x.c").write_text("int f(void) { return undeclared; }\n")
    (tmp_path / "Makefile").write_text("all:\n\tgcc -c x.c\n")
    lines = tell(tmp_path, ("make", NOISE + output(tmp_path, "make")))
    assert any("x.c:1:" in x and "undeclared" in x for x in lines)


def test_programs_of_our_own(tmp_path):
    lines = tell(tmp_path, ("make test", NOISE + """tests/unit/check_fair.c:15:F:core:first:0: Assertion 'f.until_us == 1' failed
FAILED build/gcc/unit/check_fair
seed 17: at 3.000001 s: a row was lost
seed 17 failed (100)
mutant half-merge: found by seed 3: at 1.2 s: x
mutant no-fence: NOT FOUND in 400 seeds
proto/base/buf.c:3: layer: proto includes daemon
--- lint: FAILED, 1 s
==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x1
proto/dv/x.c:7:3: runtime error: signed integer overflow
fuzz avro: FOUND
repeat: build/clang-fuzz/fz_avro build/fuzz-findings/avro/crash-1
""" + NOISE))
    for what in ("check_fair.c:15", "unit/check_fair", "seed 17: at", "no-fence", "--- lint", "AddressSanitizer", "runtime error", "fuzz avro: FOUND",
                 "crash-1"):
        assert any(what in x for x in lines), what
    assert not any("half-merge" in x for x in lines)


def test_a_log_that_tells_nothing_is_shown_by_its_end(tmp_path):
    lines = tell(tmp_path, ("make run", NOISE + "the daemon did not start\nits log is x\n"))
    assert lines[-2:] == ["  the daemon did not start", "  its log is x"]


def test_many_failures_fit_and_are_counted(tmp_path):
    text = "".join("FAILED tests/it/test_%d.py::test - no\n" % i for i in range(100))
    lines = tell(tmp_path, ("make test", text), ("make crash", "FAILED tests/crash/test_c.py::test - why\n"), ("make bench", text))
    assert "  FAILED tests/crash/test_c.py::test - why" in lines
    assert sum("lines more" in x for x in lines) == 2
    assert [x for x in lines if x.startswith("FAILED: ")] == ["FAILED: make test", "FAILED: make crash", "FAILED: make bench"]


def interop(n):
    report = Report()

    def broken():
        raise ValueError("the cause\nof it")
    for i in range(n):
        report.step("part%d" % i, broken)
    return report


def test_interop_repeats_its_failures(tmp_path, capsys):
    report = interop(2)
    report.step("good", lambda: report.count("x", "ok"))
    report.fail("spark", "insert", ["read by duckdb: 3 rows, should be 4"] + ["more"] * 50)
    closing = report.closing()
    told = capsys.readouterr().out
    assert "Traceback" in told and told.count("more") == 50
    assert closing[0] == "interop: 3 FAILED" and len(closing) <= 1 + 4 * 3
    assert "FAILED part0: part0: ValueError" in closing and "       ValueError: the cause" in closing
    assert "FAILED good: spark: insert" in closing and "       read by duckdb: 3 rows, should be 4" in closing
    lines = tell(tmp_path, ("make interop", told + NOISE + "\n".join(closing) + "\nmake: *** [Makefile:76: interop] Error 1\n"))
    assert ["  " + x for x in closing] == lines[1:1 + len(closing)]


def test_interop_with_very_many_failures(capsys):
    closing = interop(50).closing()
    assert len(closing) <= 100 and closing[-1].strip() == "and 30 more"
    assert interop(0).closing() == ["interop: all passed"]


def test_ci_run_ends_with_the_cause(tmp_path):
    """The real script, its suites exchanged for others: one passes, one fails and leaves a process behind that holds its output."""
    with open(os.path.join(ROOT, ".ci/run")) as f:
        lines = f.read().splitlines()
    first = next(i for i, x in enumerate(lines) if x.startswith("suite make"))
    kept = [x for x in lines if not x.startswith(("suite ", "scripts/setup.sh"))]
    kept[first - 1:first - 1] = ["suite bash -c 'echo fine'", "suite bash -c 'seq 9999; echo FAILED x::y - why; sleep 15 & exit 3'"]
    os.makedirs(tmp_path / ".ci")
    os.symlink(os.path.join(ROOT, "scripts"), tmp_path / "scripts")
    (tmp_path / ".ci/run").write_text("\n".join(kept) + "\n")
    got = subprocess.run(["bash", str(tmp_path / ".ci/run")], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=60)
    out = got.stdout.splitlines()
    assert got.returncode == 1
    assert "fine" in out and "=== bash -c echo fine: ok, 0 s" in out and "9999" in out
    assert out[-2].startswith("FAILED: bash -c seq 9999") and out[-1] == "  FAILED x::y - why"
