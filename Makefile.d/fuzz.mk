# make fuzz: every tests/fuzz/fz_*.c under libFuzzer with ASan and UBSan, FUZZ_SECONDS each, two at
# a time. FUZZ=name runs one. Seeds: tests/fuzz/seeds/<name>/; what a run finds stays in build/.
FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang
FZ := build/clang-fuzz
FZ_SAN = -fsanitize=address,undefined -fno-sanitize-recover=all
FZ_CFLAGS = -std=gnu17 -O1 -g -fno-omit-frame-pointer $(WARN) $(FZ_SAN) -D_GNU_SOURCE
FZ_LIB := $(patsubst %.c,$(FZ)/%.o,$(filter-out $(MAIN),$(SRC)))
FZ_BIN := $(patsubst tests/fuzz/%.c,$(FZ)/%,$(sort $(wildcard tests/fuzz/fz_*.c)))

# The archive is linked member by member: a decoder's target does not wait for the whole daemon.
$(FZ)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FZ_CFLAGS) -fsanitize=fuzzer-no-link -I. -I$(FZ)/gen -I/usr/include/postgresql \
		-MMD -MP -c -o $@ $<

$(FZ)/libfrazild.a: $(FZ_LIB)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(FZ)/fz_%: $(FZ)/tests/fuzz/fz_%.o $(FZ)/libfrazild.a
	$(Q)$(FUZZ_CC) $(FZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

fuzz-build: $(FZ_BIN)

fuzz: fuzz-build
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FZ) $(FUZZ)

.PHONY: fuzz fuzz-build
-include $(FZ_LIB:.o=.d) $(wildcard $(FZ)/tests/fuzz/*.d)
