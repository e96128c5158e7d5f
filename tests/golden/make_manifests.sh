#!/usr/bin/env bash
# make_manifests.sh: writes tests/golden/manifests again with the Java library; needs a JDK (17 or
# newer) and Maven. Sync markers are random: the files differ from run to run, their content does not.
# make_manifests.sh FOLDER: reads v1-list.avro to v3-list.avro of FOLDER (absolute, as avro_tool wrote
# them) with the Java library and leaves what it read in FOLDER/v1.json to v3.json.
set -eu
cd "$(dirname "$0")/manifests"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>frazil</groupId><artifactId>golden-manifests</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-core</artifactId><version>1.11.0</version></dependency>
<dependency><groupId>org.apache.iceberg</groupId><artifactId>iceberg-bundled-guava</artifactId><version>1.11.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
</dependencies></project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$work/lib"
mkdir "$work/classes"
javac -cp "$work/lib/*" -d "$work/classes" MakeManifests.java
java -cp "$work/classes:$work/lib/*" org.apache.iceberg.MakeManifests "${1:-.}" ${1:+read}
