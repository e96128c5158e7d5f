# Schemas and reference page of the worker protocol, made from proto/rpc/rpc.tbl. The Python client
# carries a copy of the schemas, so that the package stands alone.
GEN_RPC_OBJ = $(patsubst %.c,$(B)/%.o,conf/gen/rpcdoc.c proto/rpc/rpc.c $(wildcard proto/base/*.c))
RPC_PY = clients/python/frazil/avsc

$(B)/gen_rpc: $(GEN_RPC_OBJ)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS_proto)

$(B)/gen_rpc.d/rpc.md: $(B)/gen_rpc
	@rm -rf $(@D) && mkdir -p $(@D) && $(B)/gen_rpc $(@D)

gen: gen-rpc
gen-rpc: $(B)/gen_rpc.d/rpc.md
	@mkdir -p docs $(RPC_PY) && rm -f proto/rpc/*.avsc $(RPC_PY)/*.avsc
	@cp $(B)/gen_rpc.d/*.avsc proto/rpc/ && cp $(B)/gen_rpc.d/*.avsc $(RPC_PY)/
	@cp $< docs/rpc.md

gen-check: gen-check-rpc
gen-check-rpc: $(B)/gen_rpc.d/rpc.md
	@for f in $(B)/gen_rpc.d/*.avsc; do n=$${f##*/}; \
		cmp -s $$f proto/rpc/$$n && cmp -s $$f $(RPC_PY)/$$n || \
		{ echo "$$n is stale: run 'make gen'"; exit 1; }; done
	@test "$$(ls proto/rpc/*.avsc | wc -l)" = "$$(ls $(B)/gen_rpc.d/*.avsc | wc -l)" || \
		{ echo "proto/rpc holds a schema without a message: run 'make gen'"; exit 1; }
	@cmp -s $< docs/rpc.md || { echo "docs/rpc.md is stale: run 'make gen'"; exit 1; }

.PHONY: gen-rpc gen-check-rpc
-include $(wildcard $(B)/conf/gen/*.d)
