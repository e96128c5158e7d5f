# make sim: the commit core under a simulated world, SEEDS seeds, each twice with equal hashes.
# make sim-mutants: planted errors, each of which must be found.
SEEDS ?= 500
SIM_SRC := $(sort $(wildcard tests/sim/*.c))
SIM_LIBS = $(LIBS_proto) -lpthread -lm

$(B)/sim: $(patsubst %.c,$(B)/%.o,$(SIM_SRC)) $(B)/libfrazild.a
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(SIM_LIBS)

sim: $(B)/sim
	@scripts/sim.sh $(B)/sim $(SEEDS)

.PHONY: sim
-include $(wildcard $(B)/tests/sim/*.d)
