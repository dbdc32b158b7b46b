#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the guest with a certain kernel, and prints the guest's folder. The folder contains
# vmlinux, initramfs (busybox, network modules, weir-load, weir-linux, and boards/linux/init),
# packets.so (boards/linux/packets.c), and the file `version` with the kernel's package and version.
#
#   boards/linux/build.sh KERNEL      6.1, 6.1-rt, 6.12 or 6.12-rt
#
# The kernel comes from Debian's package, which is unpacked into build/linux and not installed. apt
# downloads the version that its lists have, once.
# The exit code is 0 if the guest is built, 2 if it cannot be built, and 3 if the kernel cannot be
# downloaded. The message then says what to do.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
    echo "boards/linux/build.sh: $*" >&2
    exit "${code-2}"
}

# The package of a release's standard kernel has no version in its name. The kernel is 6.1 in Debian
# 12, and 6.12 in Debian 13.
case ${1-} in
6.1 | 6.12) metas="linux-image-$1-amd64 linux-image-amd64" ;;
6.1-rt | 6.12-rt) metas="linux-image-${1%-rt}-rt-amd64 linux-image-rt-amd64" ;;
*) fail "'${1-}' is no kernel of the guest; they are 6.1, 6.1-rt, 6.12 and 6.12-rt" ;;
esac
kernel=$1
for tool in gcc busybox xz zstd od dpkg-deb apt-get flock sha256sum qemu-system-x86_64; do
    command -v "$tool" >/dev/null || fail "$tool is missing; scripts/bootstrap.sh linux installs it"
done

# Prints the unpacked kernel. If the guest unpacked the kernel, that would take three seconds at
# each start. The header of the file says where the packed kernel is (setup_sects, payload_offset
# and payload_length in Linux' Documentation/arch/x86/boot.rst). The last four bytes of the packed
# kernel are the length of the unpacked kernel.
unpack_kernel() {
    local setup start length tool
    setup=$(od -An -tu1 -j 497 -N 1 "$1")
    start=$(od -An -tu4 -j 584 -N 4 "$1")
    length=$(od -An -tu4 -j 588 -N 4 "$1")
    start=$(((setup + 1) * 512 + start))
    case $(od -An -tx1 -j $start -N 4 "$1") in
    ' fd 37 7a 58') tool=xz ;;
    ' 28 b5 2f fd') tool=zstd ;;
    *) return 1 ;;
    esac
    head -c $((start + length - 4)) "$1" | tail -c $((length - 4)) | $tool -dc
}

mkdir -p build/linux
exec 9>build/linux/lock
flock 9

# Finds the package of the kernel itself, on which the general package depends. If apt has no lists
# of packages, an earlier download is used.
unpacked=
for meta in $metas; do
    # In a release with another kernel, apt does not know this package.
    package=$({ apt-cache depends --important "$meta" 2>/dev/null || true; } | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    case $package in
    linux-image-"${kernel%-rt}".*)
        unpacked=build/linux/kernels/${package}_$(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p')
        break
        ;;
    esac
done
if [ ! -e "$unpacked/complete" ]; then
    before=
    for folder in build/linux/kernels/linux-image-"${kernel%-rt}".*; do
        case $folder in *-rt-amd64_*) is_rt=-rt ;; *) is_rt= ;; esac
        [ "${kernel%-rt}$is_rt" != "$kernel" ] || [ ! -e "$folder/complete" ] || before=$folder
    done
    if [ -n "$unpacked" ]; then
        echo "boards/linux/build.sh: loading $package, once" >&2
        mkdir -p build/linux/packages
        # apt downloads as root, since its own user has no access to the folder. The progress is
        # shown, since the download takes some time.
        if (cd build/linux/packages && ../../../scripts/network.sh apt-get -qq -o APT::Sandbox::User=root download "$package"); then
            rm -rf "$unpacked"
            mkdir -p "$unpacked"
            echo "boards/linux/build.sh: unpacking it" >&2
            for file in build/linux/packages/"$package"_*.deb; do
                dpkg-deb -x "$file" "$unpacked"
                rm "$file"
            done
            touch "$unpacked/complete"
        elif [ -z "$before" ]; then
            code=3 fail "apt cannot load $package. Try apt-get update; the machine needs the network"
        fi
    fi
    [ -e "${unpacked:-none}/complete" ] || unpacked=$before
    [ -n "$unpacked" ] || code=3 fail "apt knows no package of the kernel $kernel ($metas). Debian 12 has 6.1 and 6.12, Debian 13 has 6.12; try apt-get update, with the release's security archive among the sources"
fi

programs=$(scripts/build-linux.sh)
# The shared libraries of these programs, including the dynamic loader.
# shellcheck disable=SC2086
libraries=$(ldd $programs | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | sort -u)
# shellcheck disable=SC2086
hash=$({ cat boards/linux/build.sh boards/linux/init boards/linux/packets.c $programs $libraries && echo "$unpacked" && gcc --version && qemu-system-x86_64 --version; } | sha256sum | cut -c 1-16)
folder=$PWD/build/linux/$kernel-$hash
if [ ! -e "$folder/version" ]; then
    rm -rf build/linux/"$kernel"-[0-9a-f]*
    mkdir -p "$folder/tree/bin" "$folder/tree/modules"
    # QEMU 9 and later refuse version 1 of the plugin interface, and earlier ones refuse version 2.
    plugin=2
    case $(qemu-system-x86_64 --version) in *' version '[1-8].*) plugin=1 ;; esac
    gcc -std=c11 -D_GNU_SOURCE -DQEMU_PLUGIN_VERSION=$plugin -O2 -Wall -Wextra -Werror -fvisibility=hidden -fPIC -shared boards/linux/packets.c -o "$folder/packets.so" || fail 'gcc does not take packets.c'
    unpack_kernel "$unpacked"/boot/vmlinuz-* >"$folder/vmlinux" || fail "$(basename "$unpacked") has a kernel that neither xz nor zstd unpacks"
    cp "$(command -v busybox)" "$folder/tree/bin/busybox"
    # shellcheck disable=SC2086
    cp $programs "$folder/tree/bin"
    for library in $libraries; do
        mkdir -p "$folder/tree/$(dirname "$library")"
        cp -L "$library" "$folder/tree/$library"
    done
    cp boards/linux/init "$folder/tree/init"
    # `init` loads the modules in this order. A module that is built into the kernel has no file.
    number=10
    for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net e1000; do
        # In Debian 13 the modules are below /usr.
        for file in "$unpacked"/{,usr/}lib/modules/*/kernel/{drivers/virtio,drivers/net,net/core,drivers/net/ethernet/intel/e1000}/"$module".ko*; do
            case $file in
            *'*'*) ;;
            *.xz) xz -dc "$file" >"$folder/tree/modules/$number-$module.ko" ;;
            *) cp "$file" "$folder/tree/modules/$number-$module.ko" ;;
            esac
        done
        number=$((number + 1))
    done
    [ -n "$(find "$folder/tree/modules" -name '*-virtio_net.ko')" ] || fail "the package $(basename "$unpacked") has no module virtio_net where it was looked for"
    find "$folder/tree" -exec touch -d @0 {} +
    (cd "$folder/tree" && find . | LC_ALL=C sort | busybox cpio -o -H newc --ignore-devno --renumber-inodes 2>/dev/null) >"$folder/initramfs"
    rm -r "$folder/tree"
    basename "$unpacked" >"$folder/version"
fi
echo "$folder"
