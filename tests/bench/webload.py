"""Requests a second under wrk, and an nginx that serves given bytes: the yardstick of what this machine can send."""

import os
import re
import shutil
import subprocess
import tempfile
import time

from support.daemon import die_with_parent, free_ports

NGINX = """
worker_processes 1; daemon off; pid %(folder)s/pid; error_log %(folder)s/error.log;
events { worker_connections 256; }
http { access_log off; default_type application/json; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
 client_body_temp_path %(folder)s; proxy_temp_path %(folder)s; fastcgi_temp_path %(folder)s;
 uwsgi_temp_path %(folder)s; scgi_temp_path %(folder)s;
 server { listen 127.0.0.1:%(port)d; root %(folder)s/www; } }
"""
# Requests with a body; each has a number of its own, which goes into path and body.
POST = """
local n = %(first)d
request = function()
  n = n + 1
  return wrk.format("POST", string.format(%(path)r, n %% %(paths)d), {["Content-Type"] = "application/json"},
                    string.format(%(body)r, n))
end
"""


class Rate:
    def __init__(self, text):
        self.requests = int(re.search(r"(\d+) requests in", text).group(1))
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        self.refused = int(refused.group(1)) if refused else 0
        self.per_second = float(re.search(r"Requests/sec:\s*([0-9.]+)", text).group(1))
        self.good = self.per_second * (1 - self.refused / max(1, self.requests))


def wrk(url, seconds, connections=50, headers=(), script=None, may_refuse=False):
    command = ["wrk", "-t1", "-c%d" % connections, "-d%ds" % seconds, "--timeout", "30s"]
    for h in headers:
        command += ["-H", h]
    if script:
        command += ["-s", script]
    got = subprocess.run([*command, url], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True).stdout
    rate = Rate(got)
    assert "Socket errors" not in got and (may_refuse or not rate.refused), got
    return rate


def post(folder, base, path, body, seconds, connections, paths=1, may_refuse=False):
    """Posts, each with the next number: "%d" of the path (modulo paths) and of the body."""
    script = os.path.join(folder, "post.lua")
    with open(script, "w") as f:
        f.write(POST % {"first": time.monotonic_ns() % 10**9 * 1000, "path": path, "paths": paths, "body": body})
    return wrk(base, seconds, connections, script=script, may_refuse=may_refuse)


class Nginx:
    """Serves files of given bytes until it is closed."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="frazil-bench-", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        os.mkdir(self.folder + "/www")
        self.port = free_ports(1)[0]
        with open(self.folder + "/nginx.conf", "w") as f:
            f.write(NGINX % {"folder": self.folder, "port": self.port})
        self.server = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", self.folder + "/nginx.conf",
                                        "-e", self.folder + "/error.log"], preexec_fn=die_with_parent)
        time.sleep(0.5)

    def url(self, name, body):
        with open("%s/www/%s" % (self.folder, name), "wb") as f:
            f.write(body)
        return "http://127.0.0.1:%d/%s" % (self.port, name)

    def close(self):
        self.server.terminate()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
