# The vector and Puffin tool of tests/it, so that foreign readers can be held against the codecs.
all: $(B)/it/dvtool

$(B)/it/dvtool: $(B)/tests/it/dvtool.o $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)
