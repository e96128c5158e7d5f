# Tools of the tests: build/.../tools/NAME from tests/tools/NAME.c, and small measurements likewise.
$(B)/tools/%: $(B)/tests/tools/%.o $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

$(B)/bench/%: $(B)/tests/bench/%.o $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

-include $(wildcard $(B)/tests/tools/*.d $(B)/tests/bench/*.d)
