#!/usr/bin/env bash
# A million messages that nobody has posted a receive for: all arrive, in order, and neither process grows.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none

# Sanitizers keep books of their own.
limit=64
! nm -a "$build/tests/job_flood" 2>/dev/null | grep '__[at]san_init' >/dev/null || limit=100000

# flood COUNT BYTES OPTION...
flood() {
    local count=$1 bytes=$2
    shift 2
    echo "$count messages of $bytes bytes ${*:-}"
    run_on "2 A,B" env "$@" "$build/tests/job_flood" "$count" "$bytes" $limit || fail "flood"
    cat "$work/out"
    [ "$(wc -l <"$work/out")" = 2 ] || fail "not both processes told their memory"
}

flood 1000000 8
flood 1000000 8 RAILMUX_POLICY=round_robin
flood 20000 4096 RAILMUX_POLICY=round_robin
flood 2000 100000
echo "all good"
