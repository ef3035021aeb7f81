# Shared by the scripts: messages, and what this machine allows. Sourced, not run.
# shellcheck shell=bash

PATH=$PATH:/usr/sbin:/sbin  # ip, tc and nft stand there, and ordinary users do not look there

say() { printf '%s\n' "$*" >&2; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

# The namespaces that a private rig needs. An ordinary user may make the others only as root of a user namespace.
private_spaces() {
    if [ "$(id -u)" -eq 0 ]; then echo --mount; else echo --user --map-root-user --mount --net; fi
}

# Whether a shaped rail can be made here by this user. Tried in a private rig: there is nothing to clean up or to meet.
can_make_networks() { [ -z "$(why_no_networks)" ]; }

# Why not, in one line; nothing when it can be done.
why_no_networks() {
    local spaces error
    read -ra spaces < <(private_spaces)
    if ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
        echo "the commands ip and tc are missing: scripts/deps rig"
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
