#!/usr/bin/env bash
# One of two rails is taken away under traffic, loudly and silently, and given back: everything arrives once and in order, the
# gap is short, and the rail is used again without a restart. A process that is stopped is not taken for a dead network.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none none none

# It takes 5 ms where the loss is loud, 100 where it is silent, and 300 until a rail is back. Which of the two losses was
# noticed is told by the cause; the limits are for what would wait for some timeout instead.
gap_ms=$((2000 * slower))

# start [VARIABLE=VALUE...] [-- OPTION]: the two processes talk until `finish`
start() {
    local settings=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do settings+=("$1"); shift; done
    rm -f "$work/end" "$work/mark" "$work/out"
    run_on "2 A,B" env RAILMUX_TRANSPORTS=tcp RAILMUX_POLICY=round_robin "${settings[@]}" \
        "$build/tests/job_troubled" "$work" "${@:2}" &
    job=$!
    until_true "all links are up" grep "^links $links\$" "$work/out"
}
finish() {
    touch "$work/end"
    wait $job || fail "the job ended with $?"
}
pid_of() { sed -n "s/^rank $1 pid //p" "$work/out"; }

# count PATTERN: lines of the job's output; told PATTERN NUMBER: that it has as many by now
count() { grep -c -- "$1" "$work/out" || true; }
told() { [ "$(count "$1")" -ge "$2" ]; }

# longest: of the rounds since the last call, in whole ms
longest() {
    local before
    before=$(count '^longest')
    touch "$work/mark"
    until_true "the longest round is told" told '^longest' $((before + 1))
    sed -n 's/^longest \([0-9]*\).*/\1/p' "$work/out" | tail -1
}

# trouble CAUSE COMMAND...: rail1 is lost with that cause, and no round takes long
trouble() {
    local cause=$1 before gap
    shift
    before=$(count '^down tcp:rail1')
    longest >/dev/null
    "$@"
    until_true "the loss of rail1 is told" told '^down tcp:rail1' $((before + 1))
    grep '^down tcp:rail1' "$work/out" | tail -1 | grep -q "$cause" || fail "the cause is not: $cause"
    gap=$(longest)
    echo "  the longest round took $gap ms"
    [ "$gap" -lt "$gap_ms" ] || fail "it took $gap ms"
}

# comes_back COMMAND...: by that rail1 is given back, and used
comes_back() {
    local before begin took
    before=$(count '^up tcp:rail1')
    begin=$(date +%s%N)
    "$@"
    until_true "rail1 is back" told '^up tcp:rail1' $((before + 1))
    took=$((($(date +%s%N) - begin) / 1000000))
    until_true "all links are up" test "$(grep '^links' "$work/out" | tail -1)" = "links $links"
    echo "  back after $took ms"
    [ "$took" -lt "$soon_ms" ] || fail "back after $took ms"
}

links=4
start
for round in 1 2; do
    echo "its interface is taken down at one side, round $round"
    trouble "interface rail1 \|the other side lost it" "$rig" cut rail1
    comes_back "$rig" restore rail1
done
echo "it falls silent"
trouble "nothing acknowledged for \|the other side lost it" "$rig" silence rail1
comes_back "$rig" restore rail1
echo "it loses its address"
trouble "lost its address" ip -n "$RIG_NAME-A" addr flush dev rail1
comes_back ip -n "$RIG_NAME-A" addr add 10.77.1.1/24 dev rail1

echo "it gets another address at one side, and again at the other, which has been told of the first"
trouble "lost its address\|the other side lost it" ip -n "$RIG_NAME-A" addr flush dev rail1
comes_back ip -n "$RIG_NAME-A" addr add 10.77.1.101/24 dev rail1
trouble "lost its address\|the other side lost it" ip -n "$RIG_NAME-B" addr flush dev rail1
comes_back ip -n "$RIG_NAME-B" addr add 10.77.1.102/24 dev rail1
trouble "interface rail1 \|the other side lost it" "$rig" cut rail1
comes_back "$rig" restore rail1

echo "an interface that is new is taken up by both sides"
ip -n "$RIG_NAME-A" link add new4 type veth peer name new4 netns "$RIG_NAME-B"
ip -n "$RIG_NAME-A" addr add 10.77.4.1/24 dev new4
ip -n "$RIG_NAME-B" addr add 10.77.4.2/24 dev new4
ip -n "$RIG_NAME-A" link set new4 up
ip -n "$RIG_NAME-B" link set new4 up
links=5
until_true "it is used" grep "^links $links\$" "$work/out"

echo "a process that is stopped for 3 s raises no alarm"
lost=$(count '^down')
kill -STOP "$(pid_of 1)"
sleep 3
kill -CONT "$(pid_of 1)"
longest >/dev/null
[ "$(count '^down')" = "$lost" ] || fail "it does: $(grep '^down' "$work/out" | tail -1)"
finish

echo "nor does one whose receive buffers are full"
start RAILMUX_TCP_RECEIVE_BUFFER=4K RAILMUX_TCP_SEND_BUFFER=4K
kill -STOP "$(pid_of 1)"
sleep 4
kill -CONT "$(pid_of 1)"
longest >/dev/null
[ "$(count '^down')" = 0 ] || fail "it does: $(grep '^down' "$work/out" | tail -1)"
finish

echo "processes that sleep, with four rails, cost next to nothing"
start RAILMUX_PROGRESS=block -- idle
cpu_us() { awk '{ sum += $1 } END { print int(sum / 1000) }' "/proc/$(pid_of "$1")/task/"*/schedstat; }
begin=$(($(cpu_us 0) + $(cpu_us 1)))
sleep 10
took=$(($(cpu_us 0) + $(cpu_us 1) - begin))
echo "  $took us of CPU in 10 s, both together"
[ $took -le 1000000 ] || fail "$took us"  # 20,000,000 where they spin; 20,000 are usual
kill -TERM "$(pid_of 0)" "$(pid_of 1)"
wait $job || true
echo "all good"
