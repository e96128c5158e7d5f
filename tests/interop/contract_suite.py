"""Requests made from Iceberg's REST specification, right ones and broken ones: no answer may be a 5xx, an undocumented
status, or a body that the specification does not know."""

import os
import re
import subprocess

from support.daemon import Daemon
from support.postgres import ROOT

HERE = os.path.join(ROOT, "tests/interop/contract")
HANGS = 1800  # seconds, many times what the slowest machine takes


def run(postgres, folder, report, full=False, examples=60):
    """The same requests each time: a gate judges the change, not its luck."""
    env = subprocess.run([os.path.join(ROOT, "scripts/venv.sh"), os.path.join(ROOT, "tests/interop/requirements-contract.txt")],
                         check=True, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.strip()
    daemon = Daemon(os.path.join(folder, "contract"), postgres.database())
    log = os.path.join(folder, "contract.log")
    try:
        # What the specification's examples name.
        for levels in (["accounting"], ["accounting", "tax"], ["newns"]):
            daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": levels, "properties": {"owner": "Hank"}})
        with open(log, "w") as f:
            status = subprocess.run(
                [os.path.join(env, "bin/python"), "-m", "schemathesis.cli", "run", os.path.join(HERE, "rest.json"), "-u", daemon.uri,
                 "--checks", "not_a_server_error,content_type_conformance,response_schema_conformance,status_code_conformance",
                 "--phases", "examples,fuzzing", "--max-examples", str(examples), "--generation-deterministic",
                 "--request-timeout", "60", "--suppress-health-check", "all", "--continue-on-failure", "--no-color"],
                stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT, cwd=folder, timeout=HANGS).returncode
    finally:
        daemon.close()
    with open(log) as f:
        text = f.read()
    cases = [line.strip() for line in text.splitlines() if " generated, " in line]
    good = status == 0 and cases and int(cases[0].split()[0]) > 500
    print("contract: %s: %s" % (cases[0] if cases else "nothing was tried", "ok" if good else "FAILED"), flush=True)
    if good:
        report.count("contract", "ok")
    else:
        # Its own report, and of that which request broke which rule, and how to repeat it.
        told = [x.strip() for x in text.splitlines() if re.match("_____|- |\\[[0-9]|    curl", x)]
        report.fail("contract", cases[0] if cases else "nothing was tried", text[-6000:].splitlines(), told or text.splitlines()[-3:])
