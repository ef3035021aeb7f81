# Shared by the tests of this folder: messages, a rig for as long as a test takes, and jobs between its hosts. Sourced, not
# run. Each test is called with the build folder: tests/net/job_test.sh build/release
# shellcheck shell=bash
set -euo pipefail
build=${1:?"call it with the build folder, e.g. $0 build/release"}
build=$(readlink -f "$build")
net=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
rig=$net/../../scripts/rig
# shellcheck disable=SC2034  # used by the tests
railmux=$build/src/tools/railmux
# Limits tell what works from what hangs or waits for a timeout that should not count, on a machine that does other things as
# well; how long it takes on one that does not is for benchmarks/ to say. Builds with sanitizers take several times as long.
slower=1
if grep -qs '^RAILMUX_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt"; then slower=3; fi
# Before connect.patience and its like, of 10 s, are over. On a machine of its own: 2.5 s, as long as somebody waits gladly.
soon_ms=9000
soon=$((soon_ms / 1000))
# shellcheck disable=SC2034  # used by the tests
guard=$((180 * slower))  # seconds after which what hangs is ended
work=$(mktemp -d)
export XDG_CACHE_HOME=$work/cache  # no test finds what another measured
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    tail -n 40 "$work"/* 2>/dev/null | cut -c 1-300 || true
    exit 1
}

# enter_rig RATE...: the script goes on from here as the command of a private rig, which ends with it
enter_rig() {
    [ -z "${in_test_rig:-}" ] || return 0
    # shellcheck source=scripts/lib.sh
    . "$net/../../scripts/lib.sh"
    can_make_private_networks || { echo "SKIPPED (the rest): $(why_no_networks)"; exit 77; }
    rm -rf "$work"
    in_test_rig=yes exec "$rig" --name "$(basename "$0" .sh)-$$" run "$@" -- "$0" "$build"
}

on() { ip netns exec "$RIG_NAME-$1" "${@:2}"; }

# until_true WHAT COMMAND...: runs the command until it succeeds; WHAT is missing after 30 s
until_true() {
    local end=$((SECONDS + 30))
    until "${@:2}" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$1: not within 30 s"
        sleep 0.01
    done
}

# run_on SLOTS COMMAND...: a job over the hosts, two processes or as many as SLOTS says ("4 A:2,B:2"); its output is in
# $work/out, its errors in $work/err, what it took in $took_ms
run_on() {
    local slots=$1 start status=0
    shift
    local hosts=${slots#* }
    start=$(date +%s%N)
    timeout -k 9 $guard "$railmux" run -n "${slots% *}" --hosts "${hosts//[AB]/$RIG_NAME-&}" --launch 'ip netns exec {host}' \
        --no-prefix "$@" >"$work/out" 2>"$work/err" || status=$?
    took_ms=$((($(date +%s%N) - start) / 1000000))
    [ $status != 124 ] || echo "ended, since it was not over within $guard s" >>"$work/err"
    return $status
}

# listen COMMAND [OPTION...]: starts a listener on a free port; sets $listener and $port
listen() {
    : >"$work/listener"
    timeout -k 9 $guard "$railmux" "$@" --listen 0 >"$work/listener.out" 2>"$work/listener" &
    # shellcheck disable=SC2034  # used by the tests
    listener=$!
    until_true "$1 listens" grep "listening on port" "$work/listener"
    # shellcheck disable=SC2034
    port=$(sed -n 's/.*listening on port //p' "$work/listener")
}

# end_listener: by a signal, which must end it as it would a program without railmux
end_listener() {
    local status=0
    kill "$listener"
    wait "$listener" || status=$?
    [ $status = 143 ] || fail "the listener ended with $status, not by SIGTERM (137: it hung)"
}

# refuses STATUS TEXT COMMAND...: the command ends with that status, soon, and the text and a cure stand in its errors
refuses() {
    local status=$1 text=$2 got=0
    shift 2
    timeout -k 9 "$soon" "$@" >"$work/out" 2>"$work/err" || got=$?
    [ "$got" != 124 ] || fail "$*: no answer within $soon s"
    [ "$got" = "$status" ] || fail "$* ended with $got, not $status"
    grep -qF -- "$text" "$work/err" || fail "$*: no '$text'"
    grep -q '^cure: ' "$work/err" || fail "$*: no cure"
    [ ! -s "$work/out" ] || fail "$*: something on standard output"
}

# between OPTION...: a bandwidth run from A to B; its bytes by rail are in $work/out
between() { run_on "2 A,B" env "$@" "$railmux" bandwidth --sizes 64K --iterations 100 --json; }

# carried RAIL: the bytes that a rail carried in the last run
carried() { sed -n "s/.*\"tcp:$1\":\([0-9]*\).*/\1/p" "$work/out"; }

# reported RAIL: the bytes that rank 0 sent to rank 1 over a rail, by the last run's report
reported() { awk -v rail="tcp:$1" '$1 == rail && $3 == 1 { print $5 }' "$work/err"; }

# in_time: the last run was over within what is promised to users of troubled networks
in_time() { [ "$took_ms" -lt "$soon_ms" ] || fail "it took $took_ms ms"; }

# mentions TEXT: the last run's errors have it somewhere
mentions() { grep -qF -- "$1" "$work/err" || fail "'$1' is not said"; }

# says TEXT [COUNT]: the last run's errors have it in that many lines (1)
says() {
    local lines
    lines=$(grep -cF -- "$1" "$work/err" || true)
    [ "$lines" = "${2:-1}" ] || fail "'$1' stands in $lines lines, not ${2:-1}"
}
