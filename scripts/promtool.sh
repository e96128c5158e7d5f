#!/usr/bin/env bash
# promtool.sh: prints the path of a promtool: the machine's own, or one that is unpacked from Debian's
# package prometheus into the cache. Nothing is installed: the package would start a server.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
if command -v promtool >/dev/null 2>&1; then
	command -v promtool
	exit 0
fi
cache=$(cache_root)
tool=$cache/promtool
if [ ! -x "$tool" ]; then
	mkdir -p "$cache"
	exec 9>"$tool.lock"
	flock 9
	if [ ! -x "$tool" ]; then
		command -v apt-get >/dev/null 2>&1 || die "promtool is missing: install Prometheus"
		say "set-up: promtool of Debian's package prometheus"
		work=$(mktemp -d "$cache/promtool.XXXXXX")
		trap 'rm -rf "$work"' EXIT
		(
			cd "$work"
			if ! apt-get download -qq prometheus >&2 2>/dev/null; then
				as_root=
				[ "$(id -u)" = 0 ] || as_root="sudo -n"
				$as_root apt-get update -qq >&2
				apt-get download -qq prometheus >&2
			fi
			dpkg-deb -x prometheus_*.deb tree
		) || die "the package prometheus cannot be had: install promtool"
		mv "$work/tree/usr/bin/promtool" "$tool"
	fi
fi
printf '%s\n' "$tool"
