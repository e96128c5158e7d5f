#!/usr/bin/env bash
# make_snapshots.sh: writes tests/golden/snapshots/snapshots.json again with the Java library: sequences of
# operations, and after each the snapshot with every entry. Needs a JDK (17 or newer) and Maven.
set -eu
cd "$(dirname "$0")/snapshots"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>frazil</groupId><artifactId>golden-snapshots</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId><version>1.11.0</version></dependency>
<dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-bundled-guava</artifactId><version>1.11.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$work/lib"
mkdir "$work/classes"
javac -cp "$work/lib/*" -d "$work/classes" MakeSnapshots.java
java -cp "$work/classes:$work/lib/*" org.apache.iceberg.MakeSnapshots snapshots.json
