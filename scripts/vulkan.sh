#!/bin/sh
# Makes sure of what SAPIEN needs from the system: a Vulkan driver (NVIDIA's where there is a GPU, else Mesa's lavapipe
# 23.2 or newer), the shared libraries its wheels don't carry, and a compiler for toppra.
# Debian and Ubuntu, as root: installs what is missing. Otherwise: prints what to install and exits 1.
#
#   PYTHON            an interpreter that can import evalkit (default: .venv/bin/python)
#   EVALKIT_APT_ROOT  folder that stands for / when apt's settings are read and written (for tests)
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
apt=${EVALKIT_APT_ROOT:-}/etc/apt
added=$apt/sources.list.d/evalkit-backports.sources

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

has_library() { "$python" -I -c "import ctypes; ctypes.CDLL('$1')" >/dev/null 2>&1; }

has_compiler() { command -v "${CXX:-c++}" >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1; }

has_headers() {
    "$python" -I -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
}

# Vulkan isn't in this list: its version matters, so `install_vulkan` sees to it.
missing_packages() {
    has_library libX11.so.6 || echo libx11-6
    has_library libGL.so.1 || echo libgl1
    has_library libgthread-2.0.so.0 || echo libglib2.0-0
    has_compiler || echo g++
    has_headers || "$python" -I -c 'import sys; print("python%d.%d-dev" % sys.version_info[:2])'
}

# "<mirror address> <keyring or ->" of the first Debian source with a main component, from deb822 or one-line files.
debian_source() {
    for file in "$apt"/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        awk -v suite="$codename" '
            function flush() {
                if (uri != "" && suites ~ "(^| )" suite "( |$)" && enabled != "no") { print uri, key; done = 1; exit }
                uri = suites = ""; key = "-"; enabled = "yes"
            }
            BEGIN { key = "-"; enabled = "yes" }
            /^#/ { next }
            /^[ \t]*$/ { flush(); next }
            tolower($1) == "uris:" { uri = $2 }
            tolower($1) == "suites:" { suites = ""; for (i = 2; i <= NF; i++) suites = suites " " $i }
            tolower($1) == "signed-by:" { key = $2 == "" ? "-" : $2 }
            tolower($1) == "enabled:" { enabled = tolower($2) }
            END { if (!done) flush() }
        ' "$file"
    done
    for file in "$apt"/sources.list "$apt"/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        awk -v suite="$codename" '
            $1 == "deb" {
                line = $0; key = "-"
                if (match(line, /signed-by=[^] ]+/)) key = substr(line, RSTART + 10, RLENGTH - 10)
                sub(/^deb[ \t]+(\[[^]]*\][ \t]*)?/, "", line)
                split(line, part, /[ \t]+/)
                if (part[2] == suite) print part[1], key
            }
        ' "$file"
    done
}

write_backports() {
    found=$(debian_source | head -n 1)
    [ -n "$found" ] || fail "no Debian source for $codename in $apt: add $codename-backports there, then run this again"
    mirror=${found% *}
    key=${found##* }
    mkdir -p "$apt/sources.list.d"
    {
        printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$mirror" "$codename"
        [ "$key" = - ] || printf 'Signed-By: %s\n' "$key"
    } >"$added"
}

has_backports() { grep -rqs "^[^#]*$codename-backports" "$apt/sources.list" "$apt/sources.list.d"; }

# What a person without root types; no address in it: it is read from the machine's own sources when run.
print_commands() {
    say "this needs root. Type:"
    echo "    sudo $(pwd)/scripts/vulkan.sh"
    [ -z "$1" ] || echo "or, by hand:"
    [ -z "$1" ] || printf '%s\n' "$1"
}

quietly() {
    output=$("$@" 2>&1) || { printf '%s\n' "$output" | grep '^[EW]:' | sed 's#[a-z]*://[^ ]*#(address)#g' >&2; return 1; }
}

apt_update() {
    quietly apt-get -q update || fail "apt-get update failed: no package source can be reached; mend the network or" \
        "the sources in /etc/apt, or install $1 by hand"
}

apt_install() {
    # Its own variable, not exported: the caller's later programs shouldn't see it.
    quietly env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@" ||
        fail "apt-get install $* failed"
}

mesa_candidate() { apt-cache policy mesa-vulkan-drivers 2>/dev/null | sed -n 's/^ *Candidate: //p'; }

is_new_enough() { [ -n "$1" ] && dpkg --compare-versions "$1" ge 23.2; }

install_vulkan() {
    apt_update mesa-vulkan-drivers
    suite=
    if ! is_new_enough "$(mesa_candidate)"; then
        [ "$distribution" = debian ] && [ "$codename" = bookworm ] ||
            fail "this system's Mesa is older than 23.2 ($(mesa_candidate)): take a newer system, or Mesa from elsewhere"
        if ! has_backports; then
            write_backports
            say "added $codename-backports to apt's sources ($added)"
            apt_update mesa-vulkan-drivers
        fi
        suite="-t $codename-backports"
    fi
    # shellcheck disable=SC2086 # two words or none
    apt_install $suite mesa-vulkan-drivers libvulkan1
}

manual_commands() {
    [ -z "$packages" ] || echo "    apt-get install $packages"
    [ "$need_vulkan" = yes ] || return 0
    if [ "$distribution" = debian ] && [ "$codename" = bookworm ]; then
        has_backports || echo "    (add the suite $codename-backports to /etc/apt/sources.list.d, then apt-get update)"
        echo "    apt-get install -t $codename-backports mesa-vulkan-drivers libvulkan1"
    else
        echo "    apt-get install mesa-vulkan-drivers libvulkan1    # must be Mesa 23.2 or newer"
    fi
}

main() {
    need_vulkan=no
    state=$("$python" -m evalkit.sim.robotwin.vulkan) || need_vulkan=yes
    packages=$(missing_packages | tr '\n' ' ')
    packages=${packages% }
    if [ "$need_vulkan" = no ] && [ -z "$packages" ]; then
        say "Vulkan: $state"
        return
    fi

    # shellcheck disable=SC1090,SC1091
    distribution=$(. "${EVALKIT_APT_ROOT:-}/etc/os-release" && echo "${ID:-unknown}")
    codename=$(. "${EVALKIT_APT_ROOT:-}/etc/os-release" && echo "${VERSION_CODENAME:-unknown}")
    [ "$need_vulkan" = no ] || say "no usable Vulkan driver: $state"
    if ! command -v apt-get >/dev/null 2>&1; then
        [ "$need_vulkan" = no ] || fail "install Mesa's lavapipe, 23.2 or newer, from your distribution" \
            "(Fedora: mesa-vulkan-drivers, Arch: vulkan-swrast), or the GPU's driver with its Vulkan part"
        fail "install what these Debian packages hold: $packages"
    fi
    if [ "$(id -u)" != 0 ]; then
        print_commands "$(manual_commands)"
        fail "set-up can't go on without them"
    fi
    [ -z "$packages" ] || { say "installing $packages"; apt_update "$packages"; apt_install $packages; }
    if [ "$need_vulkan" = yes ]; then
        say "installing Mesa's Vulkan drivers"
        install_vulkan
        state=$("$python" -m evalkit.sim.robotwin.vulkan) || fail "still no usable Vulkan driver: $state"
    fi
    say "Vulkan: $state"
}

main
