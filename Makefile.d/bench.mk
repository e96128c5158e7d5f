# The programs that make bench runs: load generator and measurements of single parts.
BENCH_BIN = $(patsubst tests/bench/%.c,$(B)/bench/%,$(sort $(wildcard tests/bench/*.c)))

bench-build: $(BENCH_BIN)

.PHONY: bench-build
