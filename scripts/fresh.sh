#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tries commands on a fresh machine: makes a minimal Debian 13 below build/ with git, make, cargo
# and rustc, clones the current commit into it, runs the commands there, and removes it.
#
#   scripts/fresh.sh [OPTION...]                       the commands of the README's section "See it"
#   scripts/fresh.sh [OPTION...] COMMAND [ARGUMENT...] this command
#
#   --keep        keeps the Debian for inspection, and prints its path
#   --cached      takes packages of earlier runs with --cached from build/fresh-cache, and leaves
#                 them there
#   --minutes N   stops after N minutes, with the time for making the Debian, and names the
#                 commands that were not finished
#   --then LINE   runs this line of the shell afterwards, where {minutes} stands for what is left of
#                 the N minutes, but for two
#   --json        prints the result as JSON to standard output, and everything else to standard
#                 error
#
# The script needs root, debootstrap (scripts/bootstrap.sh fresh installs it), 8 GB below build/,
# and the network. The mirror is that of this machine's apt, or WEIR_DEBIAN_MIRROR; the certificates
# and proxies are this machine's, too. Afterwards, also after Ctrl-C, no process, mount or file of
# the Debian is left. /dev and /sys in the Debian are this machine's.
# Exit: 0 every command ended with 0; 1 one did not; 2 the script cannot run here; 3 the network
# failed; 4 the run was stopped after N minutes; 130 it was interrupted.
set -euo pipefail
shopt -s nullglob

release=trixie
gigabytes=8

# ----------------------------------------------------------------- the part that runs in the Debian

# This part runs in a mount namespace of its own, whose mounts end with its last process.
if [ "${1-}" = --inside ]; then
    root=$2
    shift 2
    # The root is a mount of its own: a program in the Debian may ask for another mount namespace,
    # whose root must be a mount.
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    [ ! -d "$root/dev/shm" ] || mount -t tmpfs tmpfs "$root/dev/shm"
    # The Debian's run-time state must not reach this machine.
    mount -t tmpfs tmpfs "$root/run"
    for cache in archives cargo pip; do
        [ ! -d "$root/mnt/$cache" ] || mount --bind "$WEIR_FRESH_CACHE/$cache" "$root/mnt/$cache"
    done
    passed=()
    for name in http_proxy https_proxy ftp_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL CI; do
        [ -z "${!name-}" ] || passed+=("$name=${!name}")
    done
    [ ! -d "$root/mnt/cargo" ] || passed+=(CARGO_HOME=/mnt/cargo PIP_CACHE_DIR=/mnt/pip)
    home=~root
    # Nothing is edited there, so cargo need not keep the data for faster rebuilds of a crate.
    passed+=(CARGO_INCREMENTAL=0)
    # shellcheck disable=SC2016 # the inner shell expands it
    exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" \
        LANG=C.UTF-8 TERM="${TERM-dumb}" WEIR_NETWORK_FAILURES=/network-failures "${passed[@]}" \
        /bin/bash -c 'cd "$0" && exec "$@"' "$@"
fi

# --------------------------------------------------------------------------------- the command line

cd "$(dirname "$0")/.."
me=$PWD/scripts/fresh.sh

say() { echo "fresh: $*" >&2; }

cannot() {
    say "$@"
    exit 2
}

keep=
cached=
json=
minutes=
then=
while [ $# -gt 0 ]; do
    case $1 in
    --keep) keep=1 ;;
    --cached) cached=1 ;;
    --json) json=1 ;;
    --minutes)
        [ $# -gt 1 ] || cannot "--minutes needs a number, as in --minutes 75"
        minutes=$2
        [[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || cannot "--minutes: '$minutes' is no number of minutes from 1 to 9999"
        shift
        ;;
    --then)
        [ $# -gt 1 ] || cannot "--then needs a line, as in --then 'make due MINUTES={minutes}'"
        then=$2
        shift
        ;;
    -h | --help)
        sed -n '4,/^$/s/^# \{0,1\}//p' "$me"
        exit 0
        ;;
    -*) cannot "there is no option '$1'; scripts/fresh.sh --help lists them" ;;
    *) break ;;
    esac
    shift
done

# Each command is a line of words that are quoted for a shell.
commands=()
if [ $# -gt 0 ]; then
    commands=("$(printf '%q ' "$@" | sed 's/ $//')")
else
    # The commands are the first block of the section, without comments after a #.
    mapfile -t commands < <(awk '/^## / { on = $0 == "## See it" } on && /^```/ { if (seen++) exit; next } on && seen { sub(/ *#.*/, ""); print }' README.md)
    [ ${#commands[@]} -gt 0 ] || cannot "README.md has no section 'See it' with a block of commands; name a command"
fi

[ -z "$then" ] || commands+=("$then")
[[ $then != *'{minutes}'* ]] || [ -n "$minutes" ] || cannot '{minutes} in --then needs --minutes'

[ "$(id -u)" = 0 ] || cannot "making a Debian needs root (debootstrap, mounts): run it as root or with sudo"
for tool in debootstrap git unshare chroot mount; do
    command -v $tool >/dev/null || cannot "$tool is missing; scripts/bootstrap.sh fresh installs what this needs"
done
git_here=(git -c "safe.directory=$PWD")
commit=$("${git_here[@]}" rev-parse --verify --quiet HEAD) || cannot "there is no commit to clone; this needs a git checkout of Weir"
if [ -n "$("${git_here[@]}" status --porcelain --untracked-files=no)" ]; then
    say "uncommitted changes are left out; this run tries commit ${commit:0:12}"
fi

# debootstrap accepts no path with a blank.
[[ $PWD != *[[:space:]]* ]] || cannot "the path of this checkout has a blank, which debootstrap does not accept: $PWD"
mkdir -p build

# The address of the Debian archive with the label $1, such as Debian-Security, in apt's
# configuration.
mirror_of() { apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | sed -n "s/^Debian|$1|//p" | head -n 1; }
mirror=${WEIR_DEBIAN_MIRROR-}
if [ -z "$mirror" ]; then
    mirror=$(mirror_of Debian)
    if [ -z "$mirror" ]; then
        # Without its lists apt does not know which archives its sources have.
        code=0
        scripts/network.sh apt-get -qq update || code=$?
        [ $code != 3 ] || exit 3
        mirror=$(mirror_of Debian)
    fi
    [ -n "$mirror" ] || cannot "apt has no mirror of Debian here; set WEIR_DEBIAN_MIRROR to the address of one"
fi

# -------------------------------------------------------------------------- the folder, and its end

# Ends all processes whose root folder is $1 or a folder in it.
end_processes() {
    local signal process found
    for signal in TERM TERM KILL KILL KILL; do
        found=
        for process in /proc/[0-9]*; do
            case $(readlink "$process/root")/ in "$1"/*) ;; *) continue ;; esac
            found=1
            kill -$signal "${process#/proc/}" 2>/dev/null || true
        done
        [ -n "$found" ] || return 0
        sleep 0.5
    done
}

# Removes the Debian in $1. Its mounts ended with its processes, unless an older version of this
# script was killed.
remove() {
    end_processes "$1/root"
    awk -v at="$1/" 'index($2, at) == 1 { print $2 }' /proc/self/mounts | sort -r | xargs -r umount --lazy
    rm -rf --one-file-system "$1"
}

# Removes the folders of earlier runs that were killed: each run holds a lock on its folder.
for folder in build/fresh.??????; do
    [ ! -e "$folder/keep" ] || continue
    exec 8<"$folder"
    if flock --nonblock 8; then
        say "removing $folder, the folder of a run that was killed"
        remove "$PWD/$folder" || say "$folder cannot be removed; the message is above, and this run goes on"
    fi
    exec 8<&-
done

free=$(df --output=avail -B 1000000000 build | tail -n 1 | tr -d ' ')
[ "$free" -ge $gigabytes ] || cannot "only $free GB are free below build/, and a run needs $gigabytes; make room and try again"

folder=$(mktemp -d "$PWD/build/fresh.XXXXXX")
root=$folder/root
exec 9<"$folder"
flock 9
job_running=
watchdog=
# Ends the running job, with all processes that it started: kills those that still run after two
# seconds.
end_job() {
    kill -TERM -- "-$job_running" 2>/dev/null || return 0
    for _ in 1 2 3 4; do
        kill -0 -- "-$job_running" 2>/dev/null || return 0
        sleep 0.5
    done
    kill -KILL -- "-$job_running" 2>/dev/null || true
}
leave() {
    trap '' INT TERM HUP USR1
    [ -z "$watchdog" ] || { disown "$watchdog" && kill -KILL -- "-$watchdog"; } 2>/dev/null || true
    [ -z "$job_running" ] || end_job
    if [ -n "$keep" ] && [ -d "$root/weir" ]; then
        touch "$folder/keep"
        end_processes "$root"
        say "the Debian is kept below ${folder#"$PWD/"}; to inspect it: ${cached:+WEIR_FRESH_CACHE=build/fresh-cache }unshare --mount scripts/fresh.sh --inside ${root#"$PWD/"} /weir bash"
    else
        remove "$folder"
    fi
}
trap leave EXIT
trap 'exit 130' INT TERM HUP
# A job has a process group of its own, with the usual signal handling: Ctrl-C reaches only this
# script, which ends the job.
set -m

# Ends the running job when the time of --minutes is over; no other job starts after that.
is_late=
late() {
    is_late=1
    [ -z "$job_running" ] || end_job
    end_processes "$root"
}
if [ -n "$minutes" ]; then
    trap late USR1
    (sleep $((minutes * 60)) && kill -USR1 $$) </dev/null >/dev/null 2>&1 9<&- &
    watchdog=$!
fi

# Runs a job that can be interrupted, with its output where it belongs. A job that may outlive this
# script keeps the lock on the folder if it has to be waited for ($job_lock).
job_lock=
job() {
    local code=0
    [ -z "$is_late" ] || return 1
    if [ -n "$job_lock" ]; then
        "$@" </dev/null 3>&- 8<&- &
    else
        "$@" </dev/null 3>&- 8<&- 9<&- &
    fi
    job_running=$!
    # The signal of --minutes ends only the waiting, not the job.
    while :; do
        code=0
        wait $! || code=$?
        [ $code = 138 ] || break
    done
    job_running=
    return $code
}

# Runs a command in the folder $1 of the Debian.
within=(unshare --mount "$me" --inside "$root")
inside() { job "${within[@]}" "$@"; }

# Everything but the JSON goes to standard error.
exec 3>&1
[ -z "$json" ] || exec 1>&2

# --------------------------------------------------------------------------------------- the Debian

# Runs a step of making the Debian, silently. If it fails, shows its output and ends the script; the
# exit code tells whether the network failed.
must() {
    local what=$1 code=0
    shift
    job "$@" >"$folder/step" 2>&1 || code=$?
    if [ -n "$is_late" ]; then
        say "stopped after $minutes minutes; not finished: $what"
        exit 4
    fi
    [ $code != 0 ] || return 0
    cat "$folder/step" >&2
    # 124 is the exit code of timeout: the server accepted the connection and was silent.
    [ $code != 3 ] && [ $code != 124 ] || { say "the network failed: $what" && exit 3; }
    cannot "$what: failed with exit code $code; its message is above"
}

begun=$SECONDS
say "making a Debian ($release) from $mirror"
# debootstrap has the archive's own keys; git and the certificates are needed for cloning.
options=(--variant=minbase "--include=ca-certificates,git,make")
if [ -n "$cached" ]; then
    mkdir -p build/fresh-cache/{archives/partial,cargo,pip}
    options+=(--cache-dir="$PWD/build/fresh-cache/archives")
fi
# debootstrap runs in a mount namespace of its own, too. It downloads 70 MB, and would wait for a
# silent server for hours.
debootstrap=(timeout 900 scripts/network.sh unshare --mount debootstrap)
job_lock=1
must 'downloading the packages of a minimal Debian' "${debootstrap[@]}" --download-only "${options[@]}" $release "$root" "$mirror"
rm -rf "${root:?}/debootstrap"
must 'making a minimal Debian' "${debootstrap[@]}" "${options[@]}" $release "$root" "$mirror"
job_lock=

# The sources of a freshly installed Debian, with its updates.
{
    echo "deb $mirror $release main"
    echo "deb $mirror $release-updates main"
    security=$(mirror_of Debian-Security)
    [ -z "$security" ] || echo "deb $security $release-security main"
} >"$root/etc/apt/sources.list"
# No service starts in a chroot.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
for certificate in /usr/local/share/ca-certificates/*.crt; do
    cp "$certificate" "$root/usr/local/share/ca-certificates/"
done
apt-config dump | grep -E '^Acquire::(http|https)::[Pp]roxy ' >"$root/etc/apt/apt.conf.d/90host" || true
[ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/pip.conf"
if [ -n "$cached" ]; then
    export WEIR_FRESH_CACHE=$PWD/build/fresh-cache
    mkdir "$root"/mnt/{archives,cargo,pip}
    printf 'Dir::Cache::archives "/mnt/archives";\nAPT::Keep-Downloaded-Packages "true";\n' >"$root/etc/apt/apt.conf.d/91cache"
fi
if [ -e "${CARGO_HOME:-$HOME/.cargo}/config.toml" ]; then
    home=$root$(echo ~root)/.cargo
    [ -z "$cached" ] || home=$WEIR_FRESH_CACHE/cargo
    mkdir -p "$home"
    cp "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$home/config.toml"
fi
must 'setting up certificates' "${within[@]}" / update-ca-certificates
cp scripts/network.sh "$root/usr/local/bin/network"
must 'downloading lists of packages' "${within[@]}" / network apt-get -q update
export DEBIAN_FRONTEND=noninteractive
must 'downloading Rust' "${within[@]}" / network apt-get -q -y --no-install-recommends --download-only install cargo rustc
must 'installing Rust' "${within[@]}" / apt-get -qq -y --no-install-recommends install cargo rustc
rm "$root/usr/local/bin/network"
# The server's side of a clone trusts another user's folder only if a configuration file says so.
git config --file "$folder/gitconfig" safe.directory "$PWD"
must 'cloning the commit' env GIT_CONFIG_GLOBAL="$folder/gitconfig" git clone --quiet --no-checkout "file://$PWD" "$root/weir"
must 'checking out the commit' git -C "$root/weir" -c "safe.directory=*" checkout --quiet --detach "$commit"
say "the Debian is ready after $((SECONDS - begun)) s: Debian $(cat "$root/etc/debian_version"), $(inside / rustc --version)"

# ------------------------------------------------------------------------------------- the commands

packages() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package} ${Version}\n' | sort; }
# The installed packages that were requested by name.
manual() { inside / apt-mark showmanual | sort; }

quoted() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

failed=0
rows=()
objects=()
unfinished=
for command in "${commands[@]}"; do
    [ -z "$is_late" ] || break
    # Two minutes are reserved for what the command does outside its time limit.
    left=$((${minutes:-0} - (SECONDS + 59) / 60 - 2))
    command=${command//\{minutes\}/$((left > 1 ? left : 1))}
    say "running: $command"
    before=$(packages)
    asked_before=$(manual || true)
    since=$SECONDS
    code=0
    inside /weir bash -c "$command" > >(exec tee "$folder/log" 3>&- 9<&-) 2>&1 || code=$?
    [ -z "$is_late" ] || [ $code = 0 ] || unfinished=$command
    seconds=$((SECONDS - since))
    mapfile -t new < <(comm -13 <(echo "$before") <(packages) | cut -d' ' -f1)
    mapfile -t asked < <(comm -13 <(echo "$asked_before") <(manual))
    rows+=("$(printf '%-24s %4s %6d s  %3d packages%s' "$command" "$code" $seconds ${#new[@]} "${asked:+, for: ${asked[*]}}")")
    names=
    [ ${#new[@]} = 0 ] || names=$(printf '"%s", ' "${new[@]}" | sed 's/, $//')
    objects+=("{\"command\": $(quoted "$command"), \"exit\": $code, \"seconds\": $seconds, \"packages\": [$names]}")
    [ "$code" = 0 ] || failed=1
    [ -z "$is_late" ] || break
done

echo
echo "Debian $(cat "$root/etc/debian_version"), commit ${commit:0:12}${cached:+, packages cached}"
printf '%-24s %4s %8s  %s\n' command exit time 'packages installed'
for row in "${rows[@]}"; do echo "$row"; done
for command in "${commands[@]:${#rows[@]}}"; do printf '%-24s not run\n' "$command"; done
# The time limit was reached before some commands began.
if [ -n "$is_late" ] && [ -z "$unfinished" ] && [ ${#rows[@]} -lt ${#commands[@]} ]; then
    unfinished=${commands[${#rows[@]}]}
fi
if [ -n "$unfinished" ]; then
    part=$(grep -a '^=== ' "$folder/log" | tail -n 1 || true)
    say "stopped after $minutes minutes; not finished: $unfinished${part:+, in the part that began with '$part'}"
fi
if [ -n "$json" ]; then
    is_cached=false
    [ -z "$cached" ] || is_cached=true
    left_over=null
    [ -z "$unfinished" ] || left_over=$(quoted "$unfinished")
    IFS=,
    printf '{"debian": "%s", "commit": "%s", "cached": %s, "unfinished": %s, "commands": [%s]}\n' "$(cat "$root/etc/debian_version")" \
        "$commit" "$is_cached" "$left_over" "${objects[*]}" >&3
fi
[ -z "$unfinished" ] || exit 4
if [ $failed != 0 ] && [ -s "$root/network-failures" ]; then
    say "the network failed: $(tail -n 1 "$root/network-failures")"
    exit 3
fi
exit $failed
