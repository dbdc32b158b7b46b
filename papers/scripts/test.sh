#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the claims of the papers' experiments, each in its short form if it has one; and, if none is
# named, the program that runs them.
#
#   papers/scripts/test.sh [PAPER/NAME...]     all if none is named
#
# Experiments with a line "# In make bench only." are left out unless they are named. An experiment
# on Linux is skipped if its kernel cannot be downloaded. The board's costs must be those in the
# repository. The claims of the ATmega128 hold for the compilers that boards/atmega128/costs.toml
# names; with another compiler the experiments must run, but their claims are only shown.
# Exit: 0 every claim is met; 1 not.
set -euo pipefail
[[ ${1-} != @(-h|--help) ]] || exec sed -n '4,/^set /s/^# \{0,1\}//p' "$0"
cd "$(dirname "$0")/../.."
. papers/scripts/forms.sh
. papers/scripts/verdict.sh

for name; do
    [ -e "papers/experiments/$name.toml" ] || {
        echo "papers/scripts/test.sh: there is no experiment '$name'; weir reproduce --list has all" >&2
        exit 2
    }
done
papers/scripts/build.sh
if [ $# = 0 ]; then
    papers/scripts/check.sh
fi
weir=$(papers/scripts/build.sh --path)/weir

compiler=$(avr-gcc -dumpversion)
is_stated=
if grep -q "^compilers = .*\"avr-gcc $compiler\"" boards/atmega128/costs.toml; then
    is_stated=1
else
    echo "skipped: claims and costs of the atmega128; this is avr-gcc $compiler, and boards/atmega128/costs.toml has no column for it"
fi

# table2 writes the costs of the atmega128: it runs in a copy.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r core ports boards "$copy"
mkdir "$copy/papers"
cp -r papers/experiments "$copy/papers"

names=("$@")
if [ $# = 0 ]; then
    for file in papers/experiments/*/*.toml; do
        ! grep -qx '# In make bench only\.' "$file" || continue
        name=${file#papers/experiments/}
        names+=("${name%.toml}")
    done
fi
skipped=0
for name in "${names[@]}"; do
    file=papers/experiments/$name.toml
    kind=$(sed -n 's/^kind = "\(.*\)"$/\1/p' "$file")
    if [ "$kind" = linux ]; then
        code=0
        papers/scripts/kernels.sh "$name" || code=$?
        if [ $code = 3 ]; then
            echo "skipped: $name; its kernel cannot be downloaded"
            skipped=$((skipped + 1))
            continue
        fi
    fi
    quick=()
    ! has_short_form "$file" || quick=(--quick)
    code=0
    case $name in
    regehr2005/table2) (cd "$copy" && "$weir" reproduce "$name" "${quick[@]}") || code=$? ;;
    *) "$weir" reproduce "$name" "${quick[@]}" --out "$copy/results" || code=$? ;;
    esac
    case $kind in firmware | constants | bounds) [ -n "$is_stated" ] || [ $code != 1 ] || code=0 ;; esac
    verdict $code "$name"
    if [ "$name" = regehr2005/table2 ] && [ -n "$is_stated" ]; then
        code=0
        diff -u boards/atmega128/costs.toml "$copy/boards/atmega128/costs.toml" || code=1
        verdict $code "boards/atmega128/costs.toml is not what is measured: weir reproduce regehr2005/table2 writes it anew"
    fi
done
verdicts papers ", $skipped skipped"
