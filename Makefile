# frazil: build, test and install. Everything lands in build/<compiler>[-<sanitizer>][-fault]/.
# SAN=address (with undefined), thread or undefined; CC=gcc or clang; FAULT=1 compiles the named
# crash points in; V=1 shows the commands. All paths are relative: a clone may lie anywhere.
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
ifeq ($(origin CC),default)
CC = gcc
endif
SAN ?=
FAULT ?=
V ?= 0
PREFIX ?= /usr/local
Q = $(if $(filter 1,$(V)),,@)

CCNAME := $(notdir $(lastword $(CC)))
B := build/$(CCNAME)$(if $(SAN),-$(SAN))$(if $(FAULT),-fault)

WARN = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror
SANFLAGS = $(if $(filter address,$(SAN)),-fsanitize=address$(,)undefined -fno-sanitize-recover=all)$(if $(filter thread,$(SAN)),-fsanitize=thread)$(if $(filter undefined,$(SAN)),-fsanitize=undefined -fno-sanitize-recover=all)
, := ,
OPT ?= $(if $(SAN),-O1,-O2)
CFLAGS_ALL = -std=gnu17 $(OPT) -g -fno-omit-frame-pointer $(WARN) $(SANFLAGS) -D_GNU_SOURCE $(if $(FAULT),-DFRAZIL_FAULT) $(CFLAGS)
INCLUDE = -I. -I$(B)/gen
LIBS_proto = -lroaring -ljansson -lz -lcrypto -lzstd -lsnappy
LIBS = -lmicrohttpd -luv -lpq -lcurl $(LIBS_proto) -lpthread -lm
INCLUDE += -I/usr/include/postgresql

SRC := $(sort $(wildcard proto/*/*.c conf/*.c store/*.c store/*/*.c daemon/*.c daemon/*/*.c daemon/*/*/*.c))
MAIN := daemon/main.c
OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out $(MAIN),$(SRC)))
UNITS := $(patsubst tests/unit/check_%.c,$(B)/unit/check_%,$(sort $(wildcard tests/unit/check_*.c)))

all: $(if $(wildcard $(MAIN)),$(B)/frazild) $(B)/libfrazild.a

-include Makefile.d/*.mk

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(INCLUDE) -MMD -MP -c -o $@ $<

$(B)/libfrazild.a: $(OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(B)/frazild: $(B)/daemon/main.o $(B)/libfrazild.a
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

$(B)/unit/%: $(B)/tests/unit/%.o $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ -lcheck -lsubunit -lrt -lavro $(LIBS)

units: $(UNITS)

# Runs every unit program, as many at once as there are cores; each prints in one piece, and one
# failure fails the target after all have run. check's own four seconds a test would judge the machine.
unit: export CK_DEFAULT_TIMEOUT = 60
unit: units
	@printf '%s\n' $(UNITS) | xargs -P "$$(nproc)" -I{} sh -c \
		'./{} >{}.log 2>&1; code=$$?; cat {}.log; [ $$code = 0 ] || echo "FAILED {}"; exit $$code'

lint:
	@python3 tests/lint/test_lint.py
	@python3 tests/lint/lint.py

# Set up what the machine lacks, build, and demonstrate; keeps serving until Ctrl-C (ONCE=1 ends).
run:
	@scripts/run.sh

# Everything that needs no Java: lint, both compilers, sanitizers, processes, simulation.
test:
	@scripts/test.sh

# Foreign engines read and write the same tables.
interop:
	@tests/interop/run.sh

# Kills the daemon at each named point, restarts it and checks the rows.
crash:
	@scripts/crash.sh

bench:
	@scripts/bench.sh

clean:
	rm -rf build

.PHONY: all units unit lint run test interop crash bench clean
-include $(OBJ:.o=.d) $(B)/daemon/main.d $(wildcard $(B)/tests/unit/*.d)
