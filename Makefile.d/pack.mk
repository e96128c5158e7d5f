# make deb: a Debian package in build/deb, with the tools of dpkg-dev alone.
deb:
	+@DEST=build/deb debian/rules binary

.PHONY: deb
