#!/usr/bin/env bash
# Content files and partition tuples as Java writes them, from values.json: messages_java.json. Committed, so this runs
# only after a change of MakeMessages.java or values.json. Needs a JDK (17 or newer) and Maven.
# usage: tests/golden/make_messages.sh [VERSION]
set -euo pipefail
version=${1:-1.11.0}
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>frazil</groupId><artifactId>messages</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId>
<version>$version</version></dependency></dependencies></project>
POM
lib=$("$here/../../scripts/jars.sh" "$tmp/pom.xml")
java -cp "$lib/*" "$here/MakeMessages.java" "$here/values.json" "$version" 2>"$tmp/log" >"$tmp/messages.json" || { tail -20 "$tmp/log"; exit 1; }
mv "$tmp/messages.json" "$here/messages_java.json"
