#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the module of boards/linux/card for a guest's kernel and prints its path.
#
#   boards/linux/card/build.sh GUEST
#
# GUEST is a folder that boards/linux/build.sh has printed. The kernel's headers come from Debian's
# packages, which apt downloads once. They are unpacked into build/linux and not installed.
# The exit code is 0 if the module is built. Otherwise it is 2, and the message says why.
set -euo pipefail
cd "$(dirname "$0")/../../.."

fail() {
    echo "boards/linux/card/build.sh: $*" >&2
    exit 2
}

guest=${1-}
[ -e "$guest/version" ] || fail "'$guest' is no folder that boards/linux/build.sh has printed"
version=$(cat "$guest/version")
release=${version#linux-image-}
release=${release%%_*}
for tool in gcc make dpkg-deb apt-get flock; do
    command -v "$tool" >/dev/null || fail "$tool is missing; scripts/bootstrap.sh linux installs it"
done

exec 9>build/linux/lock
flock 9
module=$guest/weir_card.ko
if [ ! -e "$module" ] || [ boards/linux/card/weir_card.c -nt "$module" ]; then
    headers=$PWD/build/linux/headers/$version
    if [ ! -e "$headers/complete" ]; then
        echo "boards/linux/card/build.sh: loading the headers of $release, once" >&2
        mapfile -t packages < <(apt-cache depends --important "linux-headers-$release" | sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p')
        [ ${#packages[@]} -gt 0 ] || fail "apt knows no headers of $release; try apt-get update, or remove build/linux, so that the kernel is loaded anew"
        rm -rf "$headers"
        mkdir -p "$headers"
        # apt downloads as root, since its own user has no access to the folder.
        (cd "$headers" && apt-get -o APT::Sandbox::User=root download "linux-headers-$release" "${packages[@]}" >&2) || fail "apt cannot load the headers of $release"
        for file in "$headers"/*.deb; do
            dpkg-deb -x "$file" "$headers"
            rm "$file"
        done
        sed -i "s# /usr/src/# $headers/usr/src/#" "$headers/usr/src/linux-headers-$release/Makefile"
        touch "$headers/complete"
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp boards/linux/card/weir_card.c "$work"
    echo 'obj-m := weir_card.o' >"$work/Kbuild"
    # The module is built without BTF, which would need further tools.
    env -u MAKEFLAGS -u MFLAGS make -C "$headers/usr/src/linux-headers-$release" M="$work" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        fail "the module cannot be built"
    }
    strip --strip-debug "$work/weir_card.ko"
    cp "$work/weir_card.ko" "$module"
fi
echo "$module"
