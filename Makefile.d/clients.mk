# Clients in C: libfrazil (shared and static, only fz_* visible), its example, frazilctl; installing.
FZC_MAJOR = 0
FZC_VERSION = $(shell sed -n 's/^.define FZ_VERSION "\(.*\)"/\1/p' clients/c/frazil.h)
FZC_SRC := $(sort $(wildcard clients/c/*.c))
# What the library takes from the base: no more, so that it does not need the daemon's libraries.
FZC_BASE = proto/rpc/frame.c $(addprefix proto/base/,arena.c base.c buf.c digest.c err.c strv.c uuid.c)
FZC_OBJ = $(FZC_SRC:%.c=$(B)/%.o)
FZC_PIC = $(patsubst %.c,$(B)/pic/%.o,$(FZC_SRC) $(FZC_BASE))
FZC_LIBS = -lavro -lcrypto -lz
FZC_SO = libfrazil.so.$(FZC_MAJOR)

.PHONY: clients

build/%/gen/gen/fz_avsc.h: $(sort $(wildcard proto/rpc/*.avsc)) scripts/embed_avsc.py
	@mkdir -p $(@D)
	$(Q)python3 scripts/embed_avsc.py $(filter %.avsc,$^) > $@

$(B)/clients/c/fz_schemas.o $(B)/pic/clients/c/fz_schemas.o: $(B)/gen/gen/fz_avsc.h
# The fuzz build, whose variables are set by a later file.
FZC_FUZZ = build/clang-fuzz
FZC_FUZZ_OBJ = $(FZC_SRC:%.c=$(FZC_FUZZ)/%.o)
$(FZC_FUZZ)/clients/c/fz_schemas.o: $(FZC_FUZZ)/gen/gen/fz_avsc.h
$(FZC_FUZZ)/fz_client_reply: $(FZC_FUZZ)/tests/fuzz/fz_client_reply.o $(FZC_FUZZ_OBJ) $(FZC_FUZZ)/libfrazild.a
	$(Q)$(FUZZ_CC) $(FZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ -lavro $(LIBS)

$(B)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(INCLUDE) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

$(B)/$(FZC_SO): $(FZC_PIC) clients/c/frazil.map
	$(Q)$(CC) $(CFLAGS_ALL) -shared -Wl,-soname,$(FZC_SO) -Wl,--version-script,clients/c/frazil.map \
		$(if $(SAN),,-Wl$(,)-z$(,)defs) -o $@ $(FZC_PIC) $(FZC_LIBS)
	@ln -sf $(FZC_SO) $(B)/libfrazil.so

# One object whose names besides fz_* are local: the base may stand twice in a program.
$(B)/libfrazil.a: $(FZC_PIC)
	@rm -f $@
	$(Q)ld -r -o $(B)/pic/libfrazil.o $^
	$(Q)objcopy --localize-hidden $(B)/pic/libfrazil.o
	$(Q)ar rcs $@ $(B)/pic/libfrazil.o

# Units of the library see its inner names and have the daemon's codec beside them. The objects are
# named as somebody's needs, or make takes the general rule while they do not exist.
client-objects: $(FZC_OBJ)
.PHONY: client-objects
$(B)/unit/check_fz_%: $(B)/tests/unit/check_fz_%.o $(FZC_OBJ) $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ -lcheck -lsubunit -lrt -lavro $(LIBS)

# The example, as a user would build it but against the static library of this tree.
$(B)/clients/worker: $(B)/clients/c/example/worker.o $(B)/libfrazil.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(FZC_LIBS)

$(B)/clients/c/example/worker.o: INCLUDE += -Iclients/c

clients: $(B)/$(FZC_SO) $(B)/libfrazil.a $(B)/clients/worker
# avro-c is needed by the clients only: without it the daemon is built all the same.
FZC_ALL := $(shell pkg-config --exists avro-c 2>/dev/null && echo clients)
all: $(FZC_ALL)

-include $(B)/clients/c/example/worker.d $(FZC_OBJ:.o=.d) $(FZC_PIC:.o=.d)

CTL_SRC := $(sort $(wildcard clients/ctl/*.c))
CTL_OBJ = $(patsubst %.c,$(B)/%.o,$(CTL_SRC) $(addprefix proto/base/,json.c jspan.c jwrite.c) \
	$(filter-out proto/rpc/%,$(FZC_BASE)))

$(B)/frazilctl: $(CTL_OBJ) $(B)/libfrazil.a
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(FZC_LIBS) -ljansson -lcurl

clients: $(B)/frazilctl

# What is between the network and the command line has units and a fuzz target of its own.
CTL_BASE = $(addprefix clients/ctl/,ctl_entry.c ctl_fault.c ctl_record.c ctl_set.c)
ctl-objects: $(CTL_BASE:%.c=$(B)/%.o)
.PHONY: ctl-objects
$(B)/unit/check_ctl_%: $(B)/tests/unit/check_ctl_%.o $(CTL_BASE:%.c=$(B)/%.o) $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ -lcheck -lsubunit -lrt $(LIBS)
$(FZC_FUZZ)/fz_ctl_record: $(FZC_FUZZ)/tests/fuzz/fz_ctl_record.o $(CTL_BASE:%.c=$(FZC_FUZZ)/%.o) $(FZC_FUZZ)/libfrazild.a
	$(Q)$(FUZZ_CC) $(FZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

install: $(if $(FZC_ALL),install-clients)
install-clients: clients
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) \
		$(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/doc/libfrazil/examples
	install -m 755 $(B)/frazilctl $(DESTDIR)$(BINDIR)/frazilctl
	install -m 644 $(B)/$(FZC_SO) $(DESTDIR)$(LIBDIR)/libfrazil.so.$(FZC_VERSION)
	ln -sf libfrazil.so.$(FZC_VERSION) $(DESTDIR)$(LIBDIR)/$(FZC_SO)
	ln -sf $(FZC_SO) $(DESTDIR)$(LIBDIR)/libfrazil.so
	install -m 644 $(B)/libfrazil.a $(DESTDIR)$(LIBDIR)/libfrazil.a
	install -m 644 clients/c/frazil.h $(DESTDIR)$(INCLUDEDIR)/frazil.h
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(FZC_VERSION)|' clients/c/libfrazil.pc.in \
		>$(B)/libfrazil.pc
	install -m 644 $(B)/libfrazil.pc $(DESTDIR)$(LIBDIR)/pkgconfig/libfrazil.pc
	install -m 644 docs/frazilctl.1 $(DESTDIR)$(MANDIR)/man1/frazilctl.1
	install -m 644 docs/frazil.3 $(DESTDIR)$(MANDIR)/man3/frazil.3
	install -m 644 clients/ctl/frazilctl.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/frazilctl
	install -m 644 clients/c/example/worker.c \
		$(DESTDIR)$(PREFIX)/share/doc/libfrazil/examples/worker.c

uninstall: uninstall-clients
uninstall-clients:
	rm -f $(DESTDIR)$(BINDIR)/frazilctl $(DESTDIR)$(LIBDIR)/libfrazil.* \
		$(DESTDIR)$(LIBDIR)/pkgconfig/libfrazil.pc $(DESTDIR)$(INCLUDEDIR)/frazil.h \
		$(DESTDIR)$(MANDIR)/man1/frazilctl.1 $(DESTDIR)$(MANDIR)/man3/frazil.3 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/frazilctl
	rm -rf $(DESTDIR)$(PREFIX)/share/doc/libfrazil

.PHONY: install-clients uninstall-clients
-include $(CTL_SRC:%.c=$(B)/%.d)
