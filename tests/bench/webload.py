"""loadTable under wrk beside nginx serving the same bytes, in turns so that both see the same machine."""

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


def wrk(url, seconds):
    """Requests a second of 50 connections; any answer but 2xx is a failure."""
    got = subprocess.run(["wrk", "-t1", "-c50", "-d%ds" % seconds, "--latency", url], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    assert not re.search(r"Non-2xx or 3xx responses|Socket errors", got), got
    return float(re.search(r"Requests/sec:\s*([0-9.]+)", got).group(1))


def beside_nginx(url, body, seconds, turns=2):
    """(ours, nginx's) requests a second, means of the turns."""
    folder = tempfile.mkdtemp(prefix="frazil-bench-", dir="/var/tmp")
    server = None
    try:
        os.chmod(folder, 0o755)
        os.mkdir(folder + "/www")
        with open(folder + "/www/table", "wb") as f:
            f.write(body)
        port = free_ports(1)[0]
        with open(folder + "/nginx.conf", "w") as f:
            f.write(NGINX % {"folder": folder, "port": port})
        server = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", folder + "/nginx.conf",
                                   "-e", folder + "/error.log"], preexec_fn=die_with_parent)
        time.sleep(0.5)
        theirs = "http://127.0.0.1:%d/table" % port
        wrk(theirs, 1)
        wrk(url, 1)
        got = [(wrk(url, seconds), wrk(theirs, seconds)) for _ in range(turns)]
        return [sum(x) / turns for x in zip(*got)]
    finally:
        if server:
            server.terminate()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)
