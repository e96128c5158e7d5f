# make sim: the commit core under a simulated world, SEEDS seeds, each twice with equal hashes.
# make sim-mutants: planted errors, each of which must be found within MUTANT_SEEDS seeds.
SEEDS ?= 500
MUTANT_SEEDS ?= 400
SIM_SRC := $(sort $(wildcard tests/sim/*.c))
SIM_CORE := $(filter proto/% daemon/commit/%,$(SRC))

$(B)/libsim.a: $(patsubst %.c,$(B)/%.o,$(SIM_CORE))
	@rm -f $@
	$(Q)ar rcs $@ $^

$(B)/sim: $(patsubst %.c,$(B)/%.o,$(SIM_SRC)) $(B)/libsim.a
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS_proto) -lpthread -lm

sim: $(B)/sim
	@scripts/sim.sh $(B)/sim $(SEEDS)

sim-mutants:
	@$(MAKE) --no-print-directory B=build/$(CCNAME)-mutant CFLAGS="$(CFLAGS) -DFRAZIL_MUTANT" \
		build/$(CCNAME)-mutant/sim
	@scripts/sim_mutants.sh build/$(CCNAME)-mutant/sim $(MUTANT_SEEDS)

.PHONY: sim sim-mutants
-include $(wildcard $(B)/tests/sim/*.d)
