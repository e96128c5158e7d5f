#!/usr/bin/env bash
# setup.sh run|test|interop|bench|packages ...: installs the Debian packages that these targets need and lack.
# As root or with a sudo that asks nothing; otherwise prints the command to run and exits 2 before
# anything is built. Does nothing, and needs no network, where all is there.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

run="gcc libc6-dev make pkg-config libmicrohttpd-dev libjansson-dev libroaring-dev zlib1g-dev libssl-dev
libzstd-dev libsnappy-dev libuv1-dev libpq-dev libcurl4-openssl-dev libsystemd-dev postgresql postgresql-client
python3 python3-venv ca-certificates curl iproute2"
test="$run clang libclang-rt-14-dev check libsubunit-dev libavro-dev git systemd"
interop="$run openjdk-17-jdk-headless maven"
bench="nginx-light wrk openjdk-17-jdk-headless maven"
packages="dpkg-dev mmdebstrap buildah uidmap systemd systemd-container"

wanted=
for part in "${@:-run}"; do
	case $part in
	run) wanted="$wanted $run" ;;
	test) wanted="$wanted $test" ;;
	interop) wanted="$wanted $interop" ;;
	bench) wanted="$wanted $bench" ;;
	packages) wanted="$wanted $packages" ;;
	*) die "usage: setup.sh run|test|interop|bench|packages ..." ;;
	esac
done

command -v dpkg-query >/dev/null 2>&1 || {
	say "set-up: not a Debian machine; these must be there:" $wanted
	exit 0
}

installed() { case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in *' installed') true ;; *) false ;; esac; }

# What counts is the program or the library, whoever installed it.
there() {
	case $1 in
	postgresql) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ;;
	postgresql-client) command -v psql >/dev/null 2>&1 ;;
	openjdk-17-jdk-headless) ls /usr/lib/jvm/*17*/bin/javac >/dev/null 2>&1 ;;
	maven) command -v mvn >/dev/null 2>&1 ;;
	systemd) command -v systemd-analyze >/dev/null 2>&1 ;;
	systemd-container) command -v systemd-nspawn >/dev/null 2>&1 ;;
	mmdebstrap | buildah) command -v "$1" >/dev/null 2>&1 ;;
	iproute2) command -v ss >/dev/null 2>&1 ;;
	wrk) command -v wrk >/dev/null 2>&1 ;;
	nginx-light) command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] ;;
	curl | git | make | gcc | clang | pkg-config) command -v "$1" >/dev/null 2>&1 ;;
	python3) command -v python3 >/dev/null 2>&1 ;;
	python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
	libcurl4-openssl-dev) installed "$1" || installed libcurl4-gnutls-dev ;;
	*) installed "$1" ;;
	esac
}

missing=
for p in $(printf '%s\n' $wanted | sort -u); do there "$p" || missing="$missing $p"; done
[ -n "$missing" ] || exit 0

# Debian would make and start a cluster of its own on port 5432; ours is private.
quiet='mkdir -p /etc/postgresql-common; grep -qs "^create_main_cluster *= *false" /etc/postgresql-common/createcluster.conf || echo "create_main_cluster = false" >>/etc/postgresql-common/createcluster.conf'
get="apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends$missing"
case " $missing " in *" postgresql "*) get="$quiet; $get" ;; esac

say "set-up: installing$missing"
if [ "$(id -u)" = 0 ]; then
	sh -c "$get" >&2 </dev/null || die "apt-get failed; run: $get"
elif sudo -n true 2>/dev/null; then
	sudo -n sh -c "$get" >&2 </dev/null || die "apt-get failed; run: sudo sh -c '$get'"
else
	say "Packages are missing and this user may not install them. Run, then repeat:"
	say "  sudo sh -c '$get'"
	exit 2
fi
