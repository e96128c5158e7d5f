#!/usr/bin/env bash
# Reference results of metadata updates: runs every case of metadata/cases.json through Iceberg's
# Java implementation and writes metadata/results.json. Both are committed, so this runs only after
# a change of the cases. Needs a JDK (17 or newer) and Maven.
# usage: tests/golden/make_metadata.sh [VERSION]
set -euo pipefail
version=${1:-1.11.0}
here=$(cd "$(dirname "$0")" && pwd)
lib=${TMPDIR:-/tmp}/frazil-metadata-cases-$version
if [ ! -e "$lib/done" ]; then
	mkdir -p "$lib"
	cat >"$lib/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>frazil</groupId><artifactId>cases</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId>
<version>$version</version></dependency></dependencies></project>
POM
	mvn -q -B -f "$lib/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$lib/jars"
	touch "$lib/done"
fi
java -cp "$lib/jars/*" "$here/metadata/MetadataCases.java" "$here/metadata/cases.json" \
	2>"$lib/log" >"$lib/results.json" || { tail -20 "$lib/log"; exit 1; }
mv "$lib/results.json" "$here/metadata/results.json"
