#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Checks every tracked file: its licence line, no path of a particular machine, C as clang-format
# writes it and without cppcheck's findings, shell scripts without shellcheck's, no package that
# needs a newer Rust than we promise. The tools are those of requirements.lock. Reports all
# findings, then fails.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$(scripts/python-env.sh format)/bin:$PATH

passed=0
failed=0
# judge MESSAGE COMMAND...: shows the message if the command fails.
judge() {
    local message=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "$message" >&2
        failed=$((failed + 1))
    fi
}

# Whether the file cannot contain a comment, or is the licence.
has_no_comment() {
    case $1 in
    LICENSE-* | */LICENSE | Cargo.lock | */Cargo.lock | *.json | *.svg | *.wav | *.csv | */proptest-regressions/*.txt | .gitignore) true ;;
    *) false ;;
    esac
}

has_line() { head -n 5 "$1" | grep -qE "SPDX-License-Identifier: $2( |\$)"; }

while IFS= read -r -d '' file; do
    [ -f "$file" ] || continue # deleted, not yet committed
    has_no_comment "$file" && continue
    case $file in
    crates/emulate/plugin/*) licence='MIT OR Apache-2.0' ;;
    crates/emulate/* | papers/lab/*) licence='GPL-3.0-or-later' ;;
    *) licence='MIT OR Apache-2.0' ;;
    esac
    judge "$file: none of the first five lines says 'SPDX-License-Identifier: $licence'" has_line "$file" "$licence"
done < <(git ls-files -z)

# The brackets keep this line from matching itself.
names_no_machine() { ! git grep -nIE '(^|[^[:alnum:]_.~/-])/([w]ork|[r]oot|[t]mp|[h]ome/[a-z])(/|[^[:alnum:]_]|$)' -- ':!Cargo.lock' >&2; }
judge 'the lines above name a path of one machine; say it relative to the repository, or ask mktemp' names_no_machine

judge 'the comments and lines of prose above are longer than 100 columns' scripts/check-columns.pl

judge 'the type names above have two meanings, or are no nouns: see the glossary in docs/architecture.md' scripts/check-words.pl

judge 'the comments and lines of prose above name what the tree does not have' scripts/check-references.pl

# Cargo.toml states the oldest supported Rust, and bootstrap reads it from there.
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
judge "scripts/bootstrap.sh asks for another Rust than Cargo.toml's rust-version, $oldest" grep -qx "RUST_NEEDED=$oldest" scripts/bootstrap.sh
needs_no_newer_rust() {
    cargo metadata --locked --format-version 1 | python3 -c '
import json, sys
oldest = [int(part) for part in sys.argv[1].split(".")]
newer = [(p["name"], p["version"], p["rust_version"]) for p in json.load(sys.stdin)["packages"]
         if p["rust_version"] and [int(part) for part in p["rust_version"].split(".")][:2] > oldest]
for name, version, rust in newer:
    print(f"{name} {version} needs Rust {rust}", file=sys.stderr)
sys.exit(bool(newer))' "$oldest"
}
judge "the packages above need a newer Rust than $oldest: cargo update --package NAME --precise an older VERSION" needs_no_newer_rust

# The parts of `make test` and the demonstration ask for the same features of each package, named in
# crates/report/Cargo.toml, so that it is built once. Crossterm is left out: the union of its
# features would bring the demonstration six packages that it does not need.
sharing_nothing() {
    local folder selection
    folder=$(mktemp -d)
    set -o pipefail
    while read -r selection; do
        # shellcheck disable=SC2086
        cargo tree --locked --edges normal,dev --prefix none --no-dedupe --format '{p} | {f}' $selection | grep -v '(/' |
            sort -u >"$folder/$(tr -cd 'a-z-' <<<"$selection")" || echo "cargo tree $selection failed"
    done < <(echo '-p weir-emulate' && sed -nE 's/^(HOST|AVR|ARM|LINUX) := //p' Makefile)
    python3 - "$folder"/* <<'END'
import sys
sets = {}
for part in sys.argv[1:]:
    for line in open(part):
        package, _, features = line.strip().partition(" |")
        sets.setdefault(package, {}).setdefault(part, set()).add(features.strip())
for package, by_part in sets.items():
    if not set.intersection(*by_part.values()) and not package.startswith("crossterm "):
        print(package, *sorted({f for part in by_part.values() for f in part}), sep="\n    ")
END
    rm -r "$folder"
}
have_common_features() { ! sharing_nothing | grep . >&2; }
judge 'the packages above are built once for each of these sets of features: name the union in crates/report/Cargo.toml' have_common_features

# Newer compilers accept `if let … && …` in this edition. Only the oldest supported compiler would
# reject it.
has_no_let_chain() { ! git grep -lzE 'let' -- '*.rs' | xargs -0 grep -PzHo '(?s)\b(if|while) let [^{;]*?\n\s*&& ' | tr '\0' '\n' | grep . >&2; }
judge 'the conditions above chain let, which needs Rust 1.88: write a match, or filter the option' has_no_let_chain

# A minimal Debian has no procps, and there `kill` exists only in the shell.
needs_no_procps() { ! git grep -nE 'Command::new\("(free|kill|pgrep|pidof|pkill|ps|sysctl|top|uptime|watch)"' -- '*.rs' >&2; }
judge 'the programs above are in no Debian that has nothing: ask the kernel, as the crate nix does' needs_no_procps

mapfile -d '' -t sources < <(git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' ':!rtl/limit/registers/generated')
judge 'clang-format would change the files above: make format' clang-format --dry-run -Werror "${sources[@]}"

# Runs once per width of the ticks: the preprocessor makes three programs of core/. A port has the
# width of its chip.
check_c() {
    local bits=$1
    shift
    judge "cppcheck found the above ($bits-bit ticks)" \
        cppcheck --quiet --error-exitcode=1 --suppress=normalCheckLevelMaxBranches --std=c11 --enable=warning,performance,portability \
        --inline-suppr -DWEIR_TICK_BITS="$bits" -I core/include "$@"
}
mapfile -d '' -t units < <(git ls-files -z 'core/src/*.c' 'core/tests/*.c' 'crates/core-sys/shims/*.c')
for bits in 16 32 64; do
    check_c $bits "${units[@]}"
done
mapfile -d '' -t units < <(git ls-files -z 'ports/avr/*.c')
[ ${#units[@]} = 0 ] || check_c 16 --library=avr -I ports/avr/include "${units[@]}"
mapfile -d '' -t units < <(git ls-files -z 'ports/cortex-m/*.c')
[ ${#units[@]} = 0 ] || check_c 32 -I ports/cortex-m/include "${units[@]}"
mapfile -d '' -t units < <(git ls-files -z 'ports/riscv/*.c' 'papers/experiments/*/firmware-soc/*.c')
[ ${#units[@]} = 0 ] || check_c 32 -I ports/riscv/include -I rtl/limit/registers/generated "${units[@]}"

mapfile -t scripts < <(git grep -lIE '^#!/bin/(ba)?sh')
judge 'shellcheck found the above' shellcheck --severity=warning "${scripts[@]}"

echo "tree: $passed passed, $failed failed"
[ $failed = 0 ]
