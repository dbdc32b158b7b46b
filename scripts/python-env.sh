#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes the Python environment of one section of requirements.lock below build/python, unless it
# exists already, and prints its folder.
#
#   scripts/python-env.sh NAME        NAME: rtl, simso, pyrta, node, format
#
# Two callers at once wait for each other. The first run needs the Python package index.
# Exit: 0 the environment exists; 2 it cannot be made, and the message says what to do; 3 the
# network failed.
set -eu

cd "$(dirname "$0")/.."
lock=requirements.lock

fail() {
    echo "python-env: $*" >&2
    exit 2
}

[ $# = 1 ] || fail "one argument is needed, the name of an environment: $(sed -n 's/^# \[\([a-z]*\)\].*/\1/p' $lock | tr '\n' ' ')"
name=$1
section=$(sed -n "/^# \[$name\]/,/^# \[/p" $lock | grep -v '^ *#') || fail "'$name' is no section of $lock; the sections are: $(sed -n 's/^# \[\([a-z]*\)\].*/\1/p' $lock | tr '\n' ' ')"

folder=$PWD/build/python/$name
mkdir -p build/python
exec 9>"build/python/$name.lock"
flock 9

# The programs' first lines contain the folder's path, so a copy of the checkout needs a new
# environment.
stamp=$folder/made-from
wanted=$(printf '%s\n%s\n' "$folder" "$section")
if [ ! -e "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
    echo "python-env: installing the Python packages of [$name]; the first time this takes a minute" >&2
    python3 -m venv --clear "$folder" >&2 || fail "python3 cannot make an environment; scripts/bootstrap.sh installs what it needs (Debian: python3-venv)"
    printf '%s\n' "$section" >"$folder/requirements.txt"
    code=0
    scripts/network.sh "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --requirement "$folder/requirements.txt" >&2 || code=$?
    [ $code != 3 ] || exit 3
    [ $code = 0 ] || fail "the packages could not be installed; pip's message is above. The first run needs the Python package index."
    printf '%s\n' "$wanted" >"$stamp"
fi
echo "$folder"
