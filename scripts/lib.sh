# Shared by the scripts: messages, and the one list of Debian packages. Sourced, not run.
# shellcheck shell=bash

# shellcheck disable=SC2034  # used by the scripts that source this
packages_build=(g++ cmake ninja-build pkg-config libboost-dev libfmt-dev libspdlog-dev libssl-dev libcli11-dev
                nlohmann-json3-dev)
# shellcheck disable=SC2034
packages_test=(catch2 libbenchmark-dev iproute2 nftables python3 clang clang-format libclang-rt-14-dev)

say() { printf '%s\n' "$*" >&2; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
    done
}

# Installs what is missing: as root, or through sudo; otherwise says what to ask the administrator for.
need_packages() {
    local missing
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || die "this needs: $missing" "and there is no apt-get here; install them by hand"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v 2>/dev/null; } ||
            die "these packages are missing, and you are neither root nor may use sudo" \
                "ask your administrator for:" "apt-get install $missing"
        as_root=(sudo)
    fi
    say "installing: $missing"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # shellcheck disable=SC2086  # one word a package
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        die "apt-get could not install: $missing"
}

# Whether this user can make network namespaces here.
can_make_networks() {
    [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null && ip netns add railmux-probe 2>/dev/null &&
        ip netns delete railmux-probe 2>/dev/null
}
