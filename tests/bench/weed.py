"""SeaweedFS with its Iceberg REST catalog, as its package brings it: one process, unsigned requests, fresh data."""

import os
import subprocess
import time
import urllib.request

from support.daemon import die_with_parent, free_ports
from support.postgres import ROOT


class Weed:
    """why: None, or why there is none; the bench goes on without it then."""

    def __init__(self, folder):
        self.process = None
        got = subprocess.run(["scripts/venv.sh", "tests/requirements-weed.txt"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                             stdin=subprocess.DEVNULL, check=False)
        self.program = os.path.join(got.stdout.strip(), "bin/weed")
        self.folder = folder
        self.why = None if got.returncode == 0 and os.access(self.program, os.X_OK) else "its package cannot be had"
        if not self.why:
            self.start()

    def start(self):
        master, volume, filer, s3, self.port, metrics, *grpc = free_ports(10)
        self.grpc = dict(zip(("master", "volume", "filer", "s3"), grpc))
        os.makedirs(self.folder, exist_ok=True)
        self.process = subprocess.Popen(
            [self.program, "server", "-dir=" + self.folder, "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.port=%d" % master,
             "-volume.port=%d" % volume, "-filer", "-filer.port=%d" % filer, "-s3", "-s3.port=%d" % s3,
             *("-%s.port.grpc=%d" % p for p in self.grpc.items()), "-s3.port.iceberg=%d" % self.port, "-s3.port.lance=0",
             "-metricsPort=%d" % metrics, "-master.volumeSizeLimitMB=64", "-volume.max=50"],
            stdin=subprocess.DEVNULL, stdout=open(self.folder + ".log", "wb"), stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent)
        shell = [self.program, "shell", "-master=127.0.0.1:%d.%d" % (master, self.grpc["master"]),
                 "-filer=127.0.0.1:%d.%d" % (filer, self.grpc["filer"])]
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            # A try that fails half-way may keep its name.
            self.bucket = "lake%d" % (time.monotonic_ns() // 1000000)
            got = subprocess.run(shell, input="s3tables.bucket -create -name %s -account admin\n" % self.bucket, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
            if "ARN:" in got.stdout:
                try:
                    urllib.request.urlopen("%s/v1/config?warehouse=s3://%s" % (self.uri, self.bucket), timeout=5).close()
                    return
                except OSError:
                    pass
            time.sleep(0.5)
        self.why = "it does not start"
        self.close()

    @property
    def uri(self):
        return "http://127.0.0.1:%d" % self.port

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
