# Shared by the scripts: messages, the one list of Debian packages, and what this machine allows. Sourced, not run.
# shellcheck shell=bash

# shellcheck disable=SC2034  # used by the scripts that source this
packages_build=(g++ cmake ninja-build pkg-config help2man libboost-dev libfmt-dev libspdlog-dev libssl-dev libcli11-dev
                nlohmann-json3-dev libibverbs-dev librdmacm-dev libfabric-dev)
# shellcheck disable=SC2034
packages_vm=(qemu-system-x86 busybox-static cpio kmod binutils xz-utils python3 iproute2 rdma-core ibverbs-providers)
# shellcheck disable=SC2034
packages_test=(catch2 libbenchmark-dev iproute2 nftables procps python3 git clang clang-format libclang-rt-14-dev)
# shellcheck disable=SC2034
packages_tidy=(clang clang-tidy)

PATH=$PATH:/usr/sbin:/sbin  # ip, tc and nft stand there, and ordinary users do not look there

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
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep 'ok installed' >/dev/null || echo "$package"
    done
}

# as_root COMMAND...: asks for a password only where somebody can type one
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
}
may_install() {
    [ "$(id -u)" -eq 0 ] && return
    command -v sudo >/dev/null || return
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }
}

# Installs what is missing: as root, or through sudo; otherwise says what to ask the administrator for.
need_packages() {
    local lacking
    command -v dpkg-query >/dev/null ||
        die "this is not a Debian system; these packages, or what they are called here, are needed:" "$*"
    mapfile -t lacking < <(missing_packages "$@")
    [ ${#lacking[@]} -gt 0 ] || return 0
    may_install || die "packages are missing, and you are neither root nor may use sudo; ask your administrator for:" \
        "apt-get install --no-install-recommends ${lacking[*]}"
    say "installing: ${lacking[*]}"
    as_root apt-get -qq update || die "apt-get could not read its package lists" "it says why above"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${lacking[@]}" >/dev/null ||
        die "apt-get could not install: ${lacking[*]}" "it says why above"
}

# The namespaces that a private rig needs. An ordinary user may make the others only as root of a user namespace.
private_spaces() {
    if [ "$(id -u)" -eq 0 ]; then echo --mount; else echo --user --map-root-user --mount --net; fi
}

# Whether this user can make a rig that all see (`scripts/rig up`), or at least a private one (`run`, `shell`). Tried in a
# private rig: there is nothing to clean up or to meet.
can_make_networks() { [ "$(id -u)" -eq 0 ] && can_make_private_networks; }
can_make_private_networks() { [ -z "$(why_no_networks)" ]; }

# Why not, in one line; nothing when it can be done.
why_no_networks() {
    local spaces error
    read -ra spaces < <(private_spaces)
    if ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
        echo "the commands ip and tc are missing: scripts/deps"
        return
    fi
    unshare "${spaces[@]}" -- true 2>/dev/null || {
        if [ "$(id -u)" -eq 0 ]; then
            echo "root may not make namespaces here: a container needs the capability CAP_SYS_ADMIN"
        else
            echo "this kernel gives ordinary users no namespaces: be root, or sysctl kernel.unprivileged_userns_clone=1"
        fi
        return
    }
    error=$(unshare "${spaces[@]}" -- sh -ec 'mount -t tmpfs tmpfs /run
        ip netns add probe
        ip -n probe link add probe0 type veth peer name probe1
        tc -n probe qdisc add dev probe0 root tbf rate 1mbit burst 16kb latency 50ms' 2>&1) ||
        echo "this kernel makes no shaped rails (veth, sch_tbf): ${error%%$'\n'*}"
}
