"""Small programs of ours on the Java library (java/*.java): compiled once for their text."""

import glob
import hashlib
import os
import shutil
import subprocess

from support.postgres import ROOT

HERE = os.path.dirname(os.path.abspath(__file__))
POM = os.path.join(ROOT, "tests/bench/java/pom.xml")


def jdk():
    """17 or 21: the library's Hadoop classes fail on 24 and later."""
    for pattern in ("/usr/lib/jvm/*17*", "/usr/lib/jvm/*21*"):
        for at in sorted(glob.glob(pattern)):
            if os.access(os.path.join(at, "bin/javac"), os.X_OK):
                return os.path.join(at, "bin")
    raise RuntimeError("no JDK 17 or 21 below /usr/lib/jvm: run scripts/setup.sh interop")


def class_path():
    jars = subprocess.run([os.path.join(ROOT, "scripts/jars.sh"), POM], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.strip()
    sources = sorted(glob.glob(os.path.join(HERE, "java/*.java")))
    text = b"".join(open(s, "rb").read() for s in sources)
    classes = os.path.join(ROOT, "build/interop/java-" + hashlib.sha256(text).hexdigest()[:16])
    if not os.path.isdir(classes):
        shutil.rmtree(classes + ".new", ignore_errors=True)
        subprocess.run([os.path.join(jdk(), "javac"), "-nowarn", "-d", classes + ".new", "-cp", jars + "/*", *sources], check=True)
        os.rename(classes + ".new", classes)
    return classes + ":" + jars + "/*"
