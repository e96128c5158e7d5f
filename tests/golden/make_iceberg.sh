#!/usr/bin/env bash
# Takes the reference inputs out of the published test jar of Iceberg's Java implementation:
# deletion vectors, Puffin files, table and view metadata. Their names and bytes stay as they are;
# only the folders are flattened. The files are committed, so this runs only to renew them.
# usage: tests/golden/make_iceberg.sh [VERSION]
set -euo pipefail
version=${1:-1.11.0}
here=$(cd "$(dirname "$0")" && pwd)
out=$here/iceberg
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

mvn -q -B dependency:copy "-Dartifact=org.apache.iceberg:iceberg-core:$version:jar:tests" \
	"-DoutputDirectory=$tmp"
unzip -q "$tmp/iceberg-core-$version-tests.jar" -d "$tmp/jar"

take() { # FOLDER FILE...
	mkdir -p "$out/$1"
	cp "${@:2}" "$out/$1/"
}
rm -rf "$out"
take deletion-vectors "$tmp"/jar/org/apache/iceberg/deletes/*.bin
take puffin "$tmp"/jar/org/apache/iceberg/puffin/v1/*.bin
take table-metadata "$tmp"/jar/TableMetadata*.json
take view-metadata "$tmp"/jar/org/apache/iceberg/view/*.json
find "$out" -type f -exec chmod 0644 {} +
echo "iceberg-core $version tests (Apache License 2.0)" >"$out/SOURCE"
find "$out" -type f | wc -l
