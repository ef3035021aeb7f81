#!/usr/bin/env bash
# Jobs on this host and over a rig: eight processes, death of one, output, and what a firewall or a wrong key leaves.
set -euo pipefail
build=$RAILMUX_BUILD
rig="$RAILMUX_SOURCE/scripts/rig --name rmjob$$"
unset RAILMUX_BUILD RAILMUX_SOURCE
railmux=$build/src/tools/railmux
work=$(mktemp -d)
trap '$rig down 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; cat "$work"/* 2>/dev/null; exit 1; }

echo "eight processes, any source"
timeout 60 "$railmux" run -n 8 "$build/examples/example_master_worker" >"$work/out" 2>"$work/err" || fail "eight processes"
grep -q '^\[0\] ' "$work/out" || fail "no rank in front of the output"

echo "a process that dies ends the job and is named"
status=0
timeout 60 "$railmux" run -n 3 sh -c '[ "$RAILMUX_JOB_RANK" != 1 ] || kill -SEGV $$; sleep 60' >"$work/out" 2>"$work/err" || status=$?
[ $status = 139 ] || fail "exit status $status, not 139"
grep -q 'rank 1 died of signal 11' "$work/err" || fail "the dead rank is not named"

echo "an exit status is handed on"
status=0
timeout 60 "$railmux" run -n 2 sh -c 'exit $((RAILMUX_JOB_RANK * 7))' >"$work/out" 2>"$work/err" || status=$?
[ $status = 7 ] || fail "exit status $status, not 7"

if [ "$(id -u)" -ne 0 ] || ! ip netns list >/dev/null 2>&1; then
    echo "SKIPPED the rest: network namespaces need root"
    exit 77
fi

host_a=rmjob$$-A
host_b=rmjob$$-B
# between OPTION...: a bandwidth run of a job with one process on each host; its per-rail bytes are in $work/out
between() {
    timeout 60 env "$@" "$railmux" run -n 2 --hosts "$host_a,$host_b" --launch 'ip netns exec {host}' --no-prefix \
        "$railmux" bandwidth --sizes 64K --iterations 100 --json >"$work/out" 2>"$work/err"
}

echo "two hosts, two rails"
$rig up none none
between RAILMUX_POLICY=round_robin || fail "two hosts, two rails"
grep -q '"tcp:rail0":3' "$work/out" && grep -q '"tcp:rail1":3' "$work/out" || fail "not both rails carried data"

echo "a firewall that drops: what is left works, and one line says what failed"
ip netns exec "$host_b" nft add table inet railmux_test
ip netns exec "$host_b" nft 'add chain inet railmux_test input { type filter hook input priority 0; }'
ip netns exec "$host_b" nft add rule inet railmux_test input iifname rail1 drop
between RAILMUX_POLICY=round_robin RAILMUX_CONNECT_TIMEOUT=500ms || fail "over the rail that is left"
grep -q '"tcp:rail0":65' "$work/out" || fail "rail0 did not carry everything"
ip netns exec "$host_b" nft delete table inet railmux_test

echo "the same docker0 on both hosts is left alone"
for host in "$host_a" "$host_b"; do
    ip -n "$host" link add docker0 type bridge
    ip -n "$host" addr add 172.17.0.1/16 dev docker0
    ip -n "$host" link set docker0 up
done
between || fail "with a docker0"
ip netns exec "$host_a" "$railmux" info | grep docker0 | grep -q 'bridge' || fail "docker0 is not named as a bridge"

echo "IPv6 only"
for host in "$host_a" "$host_b"; do
    for rail in rail0 rail1; do ip -n "$host" -4 addr flush dev "$rail"; done
done
between || fail "IPv6 only"

echo "one rail against four"
$rig up none none none none
for rail in rail1 rail2 rail3; do ip -n "$host_a" link set "$rail" down; done
between || fail "one against four"
echo "all good"
