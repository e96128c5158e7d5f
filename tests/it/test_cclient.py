"""The C client against the daemon: its example worker appends a file and deletes rows, also when the daemon is
killed in between; its vectors are read by PyRoaring; its versions are negotiated with a server that exists here only."""

import ctypes
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest
from pyroaring import BitMap

import frazil
from frazil import codec, dv, parquet, wire
from support import messages
from support.daemon import binary
from support.lab import Lab

ROOT = os.path.join(os.path.dirname(__file__), "../..")
# Built beside the daemon; FRAZIL_CLIENTS names another build folder.
BUILD = os.environ.get("FRAZIL_CLIENTS") or os.path.dirname(binary())
WORKER = os.path.join(BUILD, "clients/worker")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return {"rpc.socket": str(tmp_path_factory.mktemp("s") / "rpc.sock")}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "cclient")
    yield lab
    lab.check()


def lines(text):
    """{first word: rest of its last line}"""
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


def worker(*args, code=0, **kw):
    got = subprocess.run([WORKER, *map(str, args)], capture_output=True, text=True, timeout=120, **kw)
    assert got.returncode == code, (args, got.stdout, got.stderr)
    return lines(got.stdout) if code == 0 else got.stderr


def new_file(table, n):
    """A Parquet file below the table that no one has told the server of."""
    (f,) = table.files(n)
    return f, f["path"].replace("file://", "", 1)


@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_append_then_delete(lab, daemon, transport):
    table = lab.table("c_" + transport)
    address = daemon.rpc if transport == "tcp" else daemon.settings["rpc.socket"]
    f, path = new_file(table, 10)
    got = worker(address, table.name, "append", path, 10)
    assert (got["state"], got["inserted"], got["deleted"]) == ("COMMITTED", "10", "0")
    assert got["file"] == f["path"] + " 0"
    table.added(f)
    gone = worker(address, table.name, "delete", table.head(), f["path"], 7, 0, 3, 7)
    assert (gone["state"], gone["deleted"], gone["lost"]) == ("COMMITTED", "3", f["path"] + " 3")
    table.deleted(f["path"], [0, 3, 7])
    again = worker(address, "-", "status", gone["transaction"])
    assert (again["state"], again["snapshot"], again["deleted"]) == ("COMMITTED", gone["snapshot"], "3")


def test_file_of_deletes(lab, daemon):
    """On format version 2: a finished file of position deletes, its refusal, and the total that Seal states."""
    table = lab.table("c_v2", version=2)
    a, o = table.append(8)
    b, o = table.append(8)
    r = parquet.write_deletes({a: [1, 5], b: [0]}, table.info)
    path = r["path"].replace("file://", "", 1)
    assert "FILE_GONE" in worker(daemon.rpc, table.name, "delete-file", o.snapshot_id, path, 3, a + "x", code=1)
    gone = worker(daemon.rpc, table.name, "delete-file", o.snapshot_id, path, 3, a, b)
    assert (gone["state"], gone["deleted"]) == ("COMMITTED", "3")
    table.deleted(a, [1, 5])
    table.deleted(b, [0])


def test_report(lab, daemon, tmp_path):
    """The messages of tasks of engines, each a file of JSON."""
    table = lab.table("c_report")
    f, = table.files(6)
    g, = table.files(3)
    said = []
    for i, file in enumerate((f, g)):
        said.append(tmp_path / ("m%d.json" % i))
        said[-1].write_text(messages.data("VELOX", file, table.metadata()))
    got = worker(daemon.rpc, table.name, "report", "-", "velox", *said)
    assert (got["state"], got["inserted"]) == ("COMMITTED", "9")
    table.added(f, g)
    said[0].write_text(messages.vector(f["path"], dv.encode([0, 5]), 2))
    got = worker(daemon.rpc, table.name, "report", table.head(), "trino", said[0])
    assert (got["deleted"], got["lost"]) == ("2", f["path"] + " 2")
    table.deleted(f["path"], [0, 5])
    error = worker(daemon.rpc, table.name, "report", table.head(), "velox", said[0], code=1)
    assert "BAD_REQUEST" in error and "messages[0].partitionSpecJson" in error


def test_typed_errors(lab, daemon):
    table = lab.table("c_errors")
    f, path = new_file(table, 3)
    said = worker(daemon.rpc, lab.space + ".none", "append", path, 3, code=1)
    assert "FZ_REFUSED NO_SUCH_TABLE" in said
    said = worker(daemon.rpc, table.name, "delete", 12345, f["path"], 1, code=1)
    assert "FZ_REJECTED SNAPSHOT_TOO_OLD" in said or "FZ_REJECTED SNAPSHOT_NOT_ANCESTOR" in said
    assert "FZ_REFUSED TXN_UNKNOWN" in worker(daemon.rpc, "-", "status", frazil.uuid7(), code=1)
    worker(daemon.rpc, table.name, "append", path, 3)
    table.added(f)
    assert "DUPLICATE_PATH" in worker(daemon.rpc, table.name, "append", path, 3, code=1)


@pytest.mark.parametrize("kill", [True, False])
def test_restart_in_the_middle(lab, daemon, kill):
    """The daemon goes between Stage and Commit; the worker goes on as if nothing had been."""
    table = lab.table("c_restart_%d" % kill)
    f, path = new_file(table, 5)
    with subprocess.Popen([WORKER, "-p", daemon.rpc, table.name, "append", path, "5"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        seen = p.stdout.readline(), p.stdout.readline()
        assert seen[1] == "staged\n", (seen, p.stderr.read())
        daemon.kill() if kill else daemon.stop()
        p.stdin.write("\n")
        p.stdin.flush()
        time.sleep(0.3)  # the worker finds nobody
        daemon.restart()
        out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err
    got = lines(out)
    assert got["state"] == "COMMITTED" and got["file"] == f["path"] + " 0"
    table.added(f)
    again = worker(daemon.rpc, "-", "status", lines(seen[0])["transaction"])
    assert (again["state"], again["snapshot"]) == ("COMMITTED", got["snapshot"])


def build(folder, text):
    """The program of a C source that uses the library of this build."""
    source = folder / "p.c"
    source.write_text(text)
    flags = ["-fsanitize=address,undefined"] if "address" in BUILD else []
    subprocess.run(["gcc", *flags, "-I" + os.path.join(ROOT, "clients/c"), "-o", folder / "p", source,
                    os.path.join(BUILD, "libfrazil.a"), "-lavro", "-lcrypto", "-lz"], check=True)
    return folder / "p"


MANY = """
#include <frazil.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static void done(void *ctx, const struct fz_reply *r)
{
	printf("%s %s %lld\\n", (const char *)ctx,
	       r->status == FZ_OK ? fz_state_name(r->outcome->state) : fz_status_name(r->status),
	       r->outcome ? (long long)r->outcome->rows_deleted : -1);
	fflush(stdout);
}

/* p ADDRESS NAMESPACE TABLE SNAPSHOT DATA-FILE FIRST END: a transaction for each position, eight under way
 * at once, in a loop that knows nothing but the descriptor. */
int main(int argc, char **argv)
{
	static char ids[1000][37];
	struct fz_error err;
	const char *level = argv[argc > 7 ? 2 : 0];
	struct fz_options o = {.address = argv[1]};
	struct fz_client *c = fz_open(&o, &err);
	struct fz_begin b = {.namespace_levels = &level, .n_levels = 1, .table = argv[3], .kind = FZ_DELETE,
			     .has_read_snapshot = true, .read_snapshot_id = atoll(argv[4])};
	uint64_t next = strtoull(argv[6], NULL, 10), end = strtoull(argv[7], NULL, 10);
	while (next < end || fz_pending(c) > 0) {
		while (next < end && fz_pending(c) < 8) {
			struct fz_delete d = {.data_file = argv[5], .positions = &next, .n_positions = 1};
			struct fz_fragment f = {.fragment_id = "0", .deletes = &d, .n_deletes = 1};
			struct fz_txn *t = fz_txn_new(c, &b, &err);
			fz_id_text(fz_txn_id(t), ids[next]);
			if (fz_start_commit_once(t, &f, 1, 0, NULL, 0, done, ids[next], &err) != FZ_OK)
				return 1;
			fz_txn_free(t);
			next++;
		}
		struct pollfd p = {.fd = fz_fd(c), .events = POLLIN};
		poll(&p, 1, -1);
		fz_process(c);
	}
	fz_close(c);
	return 0;
}
"""


def test_many_at_once_while_the_daemon_is_killed(lab, daemon, tmp_path):
    """Six hundred transactions of one event loop, the daemon killed twice meanwhile: each counts once."""
    table = lab.table("c_many")
    (f,) = table.files(600)
    with frazil.Client(daemon.rpc) as c:
        c.commit_once(table.name, data_files=[f])
    table.added(f)
    told = []
    args = [build(tmp_path, MANY), daemon.rpc, lab.space, "c_many", str(table.head()), f["path"], "0", "600"]
    with subprocess.Popen(args, text=True, stdout=subprocess.PIPE) as p:
        for line in p.stdout:
            told.append(line.split())
            if len(told) in (30, 200):
                daemon.restart(kill=True)
    assert p.returncode == 0
    assert len(told) == 600 and len({t[0] for t in told}) == 600
    assert all(t[1:] == ["COMMITTED", "1"] for t in told), [t for t in told if t[1:] != ["COMMITTED", "1"]][:5]
    table.deleted(f["path"], range(600))
    with frazil.Client(daemon.rpc) as c:
        for txn, _, _ in told[::60]:
            assert c.status(txn).state == "COMMITTED"


class Cutter:
    """A proxy that cuts every connection after a random number of bytes, each way on its own, inside of frames too."""

    def __init__(self, address, seed, most):
        host, port = address.split(":")
        self.target, self.most, self.dice = (host, int(port)), most, random.Random(seed)
        self.cuts = 0
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near, _ = self.sock.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target, 30)
            except OSError:
                near.close()  # the daemon is away
                continue
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b, self.dice.randrange(self.most)), daemon=True).start()

    def pump(self, a, b, budget):
        try:
            while budget > 0:
                data = a.recv(budget)
                if not data:
                    break
                b.sendall(data)
                budget -= len(data)
            else:
                self.cuts += 1
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.sock.close()


def test_connections_cut_anywhere(lab, daemon, tmp_path):
    """Frames lost and halved in both directions, the daemon killed besides: every transaction is told once, and counts once."""
    table = lab.table("c_cut")
    n = 80
    (f,) = table.files(n)
    with frazil.Client(daemon.rpc) as c:
        c.commit_once(table.name, data_files=[f])
    table.added(f)
    cutter = Cutter(daemon.rpc, 11, 6000)
    told = []
    try:
        args = [build(tmp_path, MANY), cutter.address, lab.space, table.short, str(table.head()), f["path"], "0", str(n)]
        with subprocess.Popen(args, text=True, stdout=subprocess.PIPE) as p:
            for line in p.stdout:
                told.append(line.split())
                if len(told) in (20, 50):
                    daemon.restart(kill=True)
        assert p.returncode == 0
    finally:
        cutter.close()
    assert cutter.cuts > 10
    assert len(told) == n and len({t[0] for t in told}) == n
    # One position each: it was taken once, by the transaction that was told so.
    assert all(t[1:] == ["COMMITTED", "1"] for t in told), [t for t in told if t[1:] != ["COMMITTED", "1"]][:5]
    table.deleted(f["path"], range(n))
    uuid_of = table.metadata()["table-uuid"]
    decided = daemon.admin.want(200, "GET", "/admin/tables/%s/batches?limit=500" % uuid_of).json["decided"]
    assert sum(b["committed"] for b in decided) == n + 1 == sum(b["transactions"] for b in decided)


def test_killed_in_the_middle_of_a_commit(make_daemon):
    """The daemon dies while the batch is written: the same call ends with the one outcome that the rows tell."""
    d = make_daemon(settings={"fs.put-delay-ms": 200})
    lab = Lab(d, "mid")
    table = lab.table("t")
    for pause in (0.05, 0.3, 0.5):
        f, path = new_file(table, 5)
        with subprocess.Popen([WORKER, "-p", d.rpc, table.name, "append", path, "5"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            txn = lines(p.stdout.readline())["transaction"]
            assert p.stdout.readline() == "staged\n"
            p.stdin.write("\n")
            p.stdin.flush()
            time.sleep(pause)
            d.restart(kill=True)
            out, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
        got = lines(out)
        assert got["state"] == "COMMITTED" and got["inserted"] == "5"
        again = worker(d.rpc, "-", "status", txn)
        assert {k: again[k] for k in ("state", "snapshot", "inserted", "file")} == {
            k: got[k] for k in ("state", "snapshot", "inserted", "file")}
        table.added(f)
    lab.check()


# ---- vectors

def test_vectors_read_by_another(tmp_path):
    """A small program of the library's own function, its blobs read container by container by CRoaring."""
    program = build(tmp_path, """
#include <frazil.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	static uint64_t v[200000];
	size_t n = fread(v, sizeof *v, 200000, stdin), size;
	uint8_t *blob;
	int64_t cardinality;
	struct fz_error err;
	if (fz_vector(v, n, &blob, &size, &cardinality, &err) != FZ_OK)
		return 1;
	fwrite(blob, 1, size, stdout);
	fz_free(blob);
	return 0;
}
""")
    dice = random.Random(5)
    sets = [[], [0], [1, 65535, 65536, 2 ** 32 - 1], list(range(4096)), list(range(4097)),
            dice.sample(range(2 ** 17), 50000), [k << 32 | p for k in (0, 3, 7) for p in (1, 99999)],
            dice.sample(range(2 ** 36), 3000)]
    for positions in sets:
        dice.shuffle(positions)
        blob = subprocess.run([program], input=struct.pack("<%dQ" % len(positions), *positions),
                              stdout=subprocess.PIPE, check=True).stdout
        assert frazil.dv.decode(blob) == sorted(positions)
        (count,), at, found = struct.unpack_from("<Q", blob, 8), 16, []
        for _ in range(count):
            (key,) = struct.unpack_from("<I", blob, at)
            bits = BitMap.deserialize(blob[at + 4:-4])
            at += 4 + len(bits.serialize())
            found += [key << 32 | p for p in bits]
        assert found == sorted(positions)


# ---- versions

class Other:
    """A server that answers Hello with a version of its choice, if the client offers it."""

    def __init__(self, version):
        self.version = version
        self.hellos = []
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen()
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            with conn:
                reader = wire.Reader()
                for data in iter(lambda: conn.recv(65536), b""):
                    for kind, version, request_id, payload in reader.feed(data):
                        name, record = wire.answer(kind, payload)
                        self.hellos.append((name, version, record))
                        reply = {"version": self.version, "server": "other", "daemon_id": bytes(16),
                                 "max_frame_bytes": 1 << 20, "capabilities": ["new"]}
                        conn.sendall(wire.frame(codec.messages()[1]["hello_reply"], request_id,
                                                codec.load("hello_reply").encode(reply)))


@pytest.mark.parametrize("version", [0, 2, 255])
def test_a_server_of_another_version(version):
    server = Other(version)
    said = worker(server.address, "-", "status", frazil.uuid7(), code=1)
    assert "FZ_PROTOCOL UNSUPPORTED" in said
    (hello,) = server.hellos
    assert hello[0] == "hello" and hello[1] == 1
    assert (hello[2]["min_version"], hello[2]["max_version"]) == (1, 1)
    server.sock.close()


@pytest.mark.parametrize("low,high,good", [(1, 2, True), (0, 9, True), (2, 2, False), (2, 1, False), (0, 0, False)])
def test_the_daemon_chooses_a_common_version(daemon, low, high, good):
    host, port = daemon.rpc.split(":")
    with socket.create_connection((host, int(port)), 30) as s:
        s.sendall(wire.request("hello", 7, {"min_version": low, "max_version": high, "client": "t",
                                            "capabilities": ["unknown"]}))
        frames = []
        reader = wire.Reader()
        while not frames:
            data = s.recv(65536)
            assert data
            frames += reader.feed(data)
        name, record = wire.answer(frames[0][0], frames[0][3])
        if good:
            assert (name, record["version"]) == ("hello_reply", 1)
        else:
            assert (name, record["name"], record["effect"]) == ("error", "UNSUPPORTED", "CLEAN")
            assert s.recv(1) == b""


def test_manual():
    """The page names every function of the header and no other, and is well-formed."""
    with open(os.path.join(ROOT, "clients/c/frazil.h"), encoding="utf-8") as f:
        declared = set(re.findall(r"\b(fz_\w+)\(", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)))
    page = os.path.join(ROOT, "docs/frazil.3")
    with open(page, encoding="utf-8") as f:
        named = set(re.findall(r"\bfz_[a-z_]*[a-z]\b", f.read()))
    assert len(declared) > 30 and declared - named == set() and named - declared <= {"fz_fragment", "fz_error", "fz_status", "fz_start"}
    for page in ("frazil.3", "frazilctl.1"):
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", os.path.join(ROOT, "docs", page)],
                                  capture_output=True, text=True)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), page


def test_shared_library(tmp_path):
    """The shared library stands alone, and shows the public names only."""
    so = os.path.join(BUILD, "libfrazil.so.0")
    names = subprocess.run(["nm", "-D", "--defined-only", so], capture_output=True, text=True, check=True).stdout
    public = {line.split()[-1] for line in names.splitlines()}
    header = os.path.join(ROOT, "clients/c/frazil.h")
    with open(header, encoding="utf-8") as f:
        text = f.read()
    declared = {w for w in public if w.startswith("fz_")}
    assert public == declared and {"fz_open", "fz_vector", "fz_start_commit_once"} <= public
    assert all(name + "(" in text for name in public)
    if "address" not in BUILD:
        lib = ctypes.CDLL(so)
        lib.fz_version.restype = ctypes.c_char_p
        assert lib.fz_version().decode() in text
