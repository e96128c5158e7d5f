# make threads: the programs that run job bodies and file I/O on threads, under ThreadSanitizer, and
# the daemon itself under a crowd of workers.
TSAN_UNITS = loop fs jobs call
TSAN_BIN := $(patsubst %,build/$(CCNAME)-thread/unit/check_%,$(TSAN_UNITS))

threads:
	@$(MAKE) --no-print-directory SAN=thread threads-build
	@for u in $(TSAN_BIN); do echo "$$u"; TSAN_OPTIONS=exitcode=66 $$u || exit 1; done
	@FRAZILD=build/$(CCNAME)-thread/frazild PYTHONPATH=clients/python \
		"$$(scripts/venv.sh tests/requirements-it.txt)/bin/python" -m pytest -q \
		-p no:cacheprovider tests/it/test_crowd.py

threads-build: $(TSAN_BIN) build/$(CCNAME)-thread/frazild

.PHONY: threads threads-build
