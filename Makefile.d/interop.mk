# make interop-full: what make interop does, and readers that take long to set up: Spark 4.0 and 3.5, Trino, Flink,
# iceberg-go, and the Rust library as an oracle. A tool that the machine lacks is named.
interop-full:
	@tests/interop/run.sh --full

.PHONY: interop-full
