# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
#
# Which experiments have a short form; sourced by the scripts that run them.

# Whether the experiment of this file, or the one that it is based on, has a short form.
has_short_form() {
    local base
    ! grep -q '^quick = ' "$1" || return 0
    base=$(sed -n 's/^base = "\(.*\)"$/\1/p' "$1")
    [ -n "$base" ] && has_short_form "$(dirname "$1")/$base.toml"
}
