# Sourced by the other scripts, from the root of the tree: where data and environments live.

say() { printf '%s\n' "$*" >&2; }
die() {
	say "$*"
	exit 2
}

cache_root() { printf '%s\n' "${FRAZIL_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/frazil}"; }

# A folder can hold the data when the database's user can walk to it, its name needs no quoting and
# the socket's path fits (108 bytes with the NUL; 100 leaves room for the name of a test).
SOCKET_MAX=100
SOCKET_TAIL=/pg/sock/.s.PGSQL.5432

fits() {
	case $1 in *[!A-Za-z0-9/._+@=-]*) return 1 ;; esac
	[ $((${#1} + ${#SOCKET_TAIL})) -le $SOCKET_MAX ] || return 1
	if [ "$(id -u)" = 0 ] && id postgres >/dev/null 2>&1; then
		# The nearest folder that exists decides.
		at=$1
		while [ ! -d "$at" ]; do at=$(dirname "$at"); done
		(cd / && runuser -u postgres -- test -x "$at") || return 1
	fi
}

# Prints the data root and makes it. FRAZIL_VAR decides; otherwise ./var, or, where that does not
# fit, /var/tmp/frazil-UID-HASH with var a link to it.
data_root() {
	if [ -n "${FRAZIL_VAR:-}" ]; then
		case $FRAZIL_VAR in /*) root=$FRAZIL_VAR ;; *) root=$PWD/$FRAZIL_VAR ;; esac
		fits "$root" || die "FRAZIL_VAR=$FRAZIL_VAR: needs a plain path of at most \
$((SOCKET_MAX - ${#SOCKET_TAIL})) bytes that the user postgres can enter"
		mkdir -p "$root"
		printf '%s\n' "$root"
		return
	fi
	here=$PWD/var
	if [ ! -L var ] && fits "$here"; then
		mkdir -p var
		printf '%s\n' "$here"
		return
	fi
	other=/var/tmp/frazil-$(id -u)-$(printf %s "$PWD" | sha256sum | cut -c1-12)
	if [ -L var ]; then
		at=$(readlink var)
		# A link of a copied clone points at the other clone's data: not ours.
		case $at in
		"$other" | /var/tmp/frazil-*) ;;
		*) other=$at ;;
		esac
	elif [ -d var ]; then
		rmdir var 2>/dev/null || die "./var cannot hold a database here (its path or its rights) and is not \
empty; move it away, or set FRAZIL_VAR"
	fi
	if [ ! -d "$other" ]; then
		mkdir "$other" && chmod 711 "$other"
	fi
	# Anyone may make names under /var/tmp: take only a real folder of our own.
	if [ -L "$other" ] || [ ! -O "$other" ]; then
		die "$other is not ours"
	fi
	ln -sfn "$other" var
	printf '%s\n' "$other"
}

# True when the TCP port of the loopback address answers.
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Names the program that listens on a port, as far as this user may see it.
port_owner() {
	if command -v ss >/dev/null 2>&1; then
		ss -ltnpH "sport = :$1" 2>/dev/null | sed -n 's/.*users:((\(.*\)))/\1/p' | head -n 1
	fi
}
