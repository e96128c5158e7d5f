# make install: PREFIX=/usr/local, SYSCONFDIR=/etc, DESTDIR for packages. Parts hook themselves in as
# prerequisites of install, with recipes that use these variables.
SYSCONFDIR ?= /etc
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d

SYSTEMD_UNITS := $(sort $(wildcard systemd/*.service systemd/*.socket))

# The file in the tree holds defaults alone; an installed daemon has a warehouse and a local socket.
INSTALLED_INI = sed -e '/^\[warehouse\]/,/^\[/s|^\#location =$$|location = file:///var/lib/frazil/warehouse|' \
	-e '/^\[rpc\]/,/^\[/s|^\#socket =$$|socket = /run/frazil/rpc.sock|' conf/frazild.ini

install: install-daemon

# An edited configuration is kept; the new one then stands beside it.
install-daemon: $(B)/frazild
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SYSCONFDIR)/frazil $(DESTDIR)$(MANDIR)/man8 \
		$(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR)
	install -m 755 $(B)/frazild $(DESTDIR)$(BINDIR)/frazild
	install -m 644 docs/frazild.8 $(DESTDIR)$(MANDIR)/man8/frazild.8
	@set -e; ini=$(DESTDIR)$(SYSCONFDIR)/frazil/frazild.ini; \
	$(INSTALLED_INI) >$(B)/frazild.ini; \
	if [ -e "$$ini" ] && ! cmp -s $(B)/frazild.ini "$$ini"; then \
		echo "$$ini is kept, the new one is $$ini.new"; ini=$$ini.new; fi; \
	install -m 644 $(B)/frazild.ini "$$ini"
	@set -e; for unit in $(SYSTEMD_UNITS); do \
		sed -e 's|/usr/bin/frazild|$(BINDIR)/frazild|; s|/etc/frazil|$(SYSCONFDIR)/frazil|' "$$unit" \
			>$(B)/unit.tmp; \
		install -m 644 $(B)/unit.tmp "$(DESTDIR)$(UNITDIR)/$${unit##*/}"; done
	install -m 644 systemd/frazil.sysusers $(DESTDIR)$(SYSUSERSDIR)/frazil.conf
	install -m 644 systemd/frazil.tmpfiles $(DESTDIR)$(TMPFILESDIR)/frazil.conf

# The configuration and data stay.
uninstall: uninstall-daemon
uninstall-daemon:
	rm -f $(DESTDIR)$(BINDIR)/frazild $(DESTDIR)$(MANDIR)/man8/frazild.8 \
		$(patsubst systemd/%,$(DESTDIR)$(UNITDIR)/%,$(SYSTEMD_UNITS)) \
		$(DESTDIR)$(SYSUSERSDIR)/frazil.conf $(DESTDIR)$(TMPFILESDIR)/frazil.conf

.PHONY: install install-daemon uninstall uninstall-daemon
