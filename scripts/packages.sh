#!/usr/bin/env bash
# packages.sh: builds the Debian package and the container image and runs both: the package in a fresh
# Debian that boots systemd, the image as its user. Needs root for the file systems (or a sudo that
# asks nothing) and the network for Debian's packages.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
began=$(date +%s)
as_root=
if [ "$(id -u)" != 0 ]; then
	sudo -n true 2>/dev/null || die "make packages makes root file systems: run it as root"
	as_root="sudo -n"
fi
scripts/setup.sh test packages
env=$(scripts/venv.sh tests/requirements-it.txt)

# A minimal Debian, kept for a week. The machine's own package sources, so that none is named here.
cache=$(cache_root)
debian=$cache/debian-bookworm.tar
mkdir -p "$cache"
if [ ! -f "$debian" ] || [ -z "$(find "$debian" -mtime -7 2>/dev/null)" ]; then
	say "set-up: a minimal Debian"
	# shellcheck disable=SC2046
	# Named, for it is guessed from how the name ends. A folder of that name is a wrong guess of before.
	$as_root rm -rf --one-file-system "$debian" "$debian.new"
	$as_root mmdebstrap --quiet --format=tar --variant=minbase bookworm "$debian.new" \
		$(ls /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
	$as_root mv "$debian.new" "$debian"
fi

rm -f build/deb/*.deb
make --no-print-directory -j"$(nproc)" deb >&2
$as_root env FRAZIL_DEBIAN="$debian" PYTHONPATH=clients/python "$env/bin/python" -m pytest -q \
	-p no:cacheprovider "$@" tests/packages
say "--- packages: ok, $(($(date +%s) - began)) s"
