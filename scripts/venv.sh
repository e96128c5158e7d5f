#!/usr/bin/env bash
# venv.sh LOCKFILE: prints the folder of a Python environment with exactly the packages of the file,
# making it first when it is not there. Made aside and renamed, so that a broken or concurrent set-up
# leaves nothing half-made; call programs as "FOLDER/bin/python -m NAME" (their scripts know the old path).
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
lock=${1:?lock file}
python=${PYTHON:-python3}
hash=$({
	"$python" -c 'import sys; print(sys.version, sys.base_prefix)'
	cat "$lock"
} | sha256sum | cut -c1-16)
cache=$(cache_root)
env=$cache/venv-$hash
if [ ! -x "$env/bin/python" ] || [ ! -f "$env/complete" ]; then
	mkdir -p "$cache"
	exec 9>"$env.lock"
	flock 9
	if [ ! -f "$env/complete" ]; then
		say "set-up: Python packages of $lock"
		rm -rf "$env.new" "$env"
		"$python" -m venv "$env.new" || die "python3-venv is missing: run scripts/setup.sh"
		"$env.new/bin/python" -m pip install -q --disable-pip-version-check --no-input -r "$lock" >&2 ||
			die "pip could not install $lock"
		touch "$env.new/complete"
		mv "$env.new" "$env"
	fi
fi
printf '%s\n' "$env"
