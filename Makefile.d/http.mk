LIBS += -lsystemd

# Files made from .tbl files and kept in the tree: `make gen` writes them, `make gen-check` fails
# when one is stale.
GEN_INI_OBJ = $(patsubst %.c,$(B)/%.o,conf/gen/ini.c $(wildcard conf/*.c proto/base/*.c))

$(B)/gen_ini: $(GEN_INI_OBJ)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS_proto)

gen: $(B)/gen_ini
	@$(B)/gen_ini > conf/frazild.ini.new && mv conf/frazild.ini.new conf/frazild.ini

# lint fails on a stale file too.
lint: gen-check

gen-check: $(B)/gen_ini
	@$(B)/gen_ini | cmp -s - conf/frazild.ini || \
		{ echo "conf/frazild.ini is stale: run 'make gen'"; exit 1; }

.PHONY: gen gen-check
-include $(wildcard $(B)/conf/gen/*.d)
