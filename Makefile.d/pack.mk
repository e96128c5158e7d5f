# make deb: a Debian package in build/deb, with the tools of dpkg-dev alone. make packages: that
# package in a fresh Debian, and the container image, both built and run.
deb:
	+@DEST=build/deb debian/rules binary

packages:
	@scripts/packages.sh

.PHONY: deb packages
