# The migrations become a table in the binary; the PostgreSQL test program of tests/it.
PG_MIGRATIONS := $(sort $(wildcard store/pg/migrations/*.sql))

build/%/gen/gen/pg_migrations.h: $(PG_MIGRATIONS) scripts/embed_sql.py
	@mkdir -p $(@D)
	$(Q)python3 scripts/embed_sql.py $(PG_MIGRATIONS) > $@

$(B)/store/pg/pgmig.o: $(B)/gen/gen/pg_migrations.h
$(FZ)/store/pg/pgmig.o: $(FZ)/gen/gen/pg_migrations.h

PGTEST_OBJ := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/it/pgtest*.c)))
$(B)/it/pgtest: $(PGTEST_OBJ) $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

# The simulator's model against a server: the whole simulator but its main.
PGREPLAY_OBJ := $(B)/tests/it/pgreplay.o $(B)/tests/it/pgtest_loop.o \
	$(patsubst %.c,$(B)/%.o,$(filter-out tests/sim/sim.c,$(sort $(wildcard tests/sim/*.c))))
$(B)/it/pgreplay: $(PGREPLAY_OBJ) $(B)/libfrazild.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

-include $(B)/tests/it/pgreplay.d
-include $(PGTEST_OBJ:.o=.d)
