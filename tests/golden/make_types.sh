#!/usr/bin/env bash
# Edge values of every type through every transform of Iceberg's Java implementation, and its cut bounds,
# promotions and defaults: types_java.json. Committed, so this runs only after a change of MakeTypes.java.
# Needs a JDK (17 or newer) and Maven.
# usage: tests/golden/make_types.sh [VERSION]
set -euo pipefail
version=${1:-1.11.0}
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>frazil</groupId><artifactId>types</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId>
<version>$version</version></dependency></dependencies></project>
POM
lib=$("$here/../../scripts/jars.sh" "$tmp/pom.xml")
java -cp "$lib/*" "$here/MakeTypes.java" "$version" 2>"$tmp/log" >"$tmp/types.json" || { tail -20 "$tmp/log"; exit 1; }
mv "$tmp/types.json" "$here/types_java.json"
