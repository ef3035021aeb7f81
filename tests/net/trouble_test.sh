#!/usr/bin/env bash
# Networks made to trouble it: whatever stands beside two good rails, what is left works soon, and one line for each
# pair says what failed.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none

# steady OPTIONS: a job from A to B, in the background, until $work/end is there; its status and time are in $work/ended
steady() {
    rm -f "$work/end"
    : >"$work/err"  # what an earlier job said is not what is waited for
    # shellcheck disable=SC2086 # the options are words
    {
        status=0
        run_on "2 A,B" env RAILMUX_REPORT=1 $1 "$build/tests/job_steady" "$work/end" || status=$?
        echo "$status $took_ms" >"$work/ended"
    } &
    job=$!
}
ends() {
    touch "$work/end"
    wait $job
    read -r status took_ms <"$work/ended"
    in_time
}
carries_on() { [ "$status" = 0 ] && [ "$(reported rail0)" -gt 0 ] || fail "not over the rail that is left"; }

# without RAIL OPTIONS PAIR: what is left carries on when a link between this pair of addresses cannot be made
without() {
    steady "$2 RAILMUX_CONNECT_TIMEOUT=1s"
    until_true "that $1 does not connect is said" grep -F "($3:" "$work/err"
    ends
    carries_on
    [ "$(reported "$1")" -gt 0 ] 2>/dev/null && fail "$1 carried"
    says "rail tcp:$1 to "
    says "($3:"
}

echo "two good rails, nothing else"
between RAILMUX_POLICY=round_robin || fail "two hosts, two rails"
[ "$(carried rail0)" = 3276800 ] && [ "$(carried rail1)" = 3276800 ] || fail "not both rails carried half of it"
in_time

echo "a host that does not answer, and one that no route leads to"
"$rig" silence rail1
refuses 1 "10.77.1.2:5000 cannot be reached: Connection timed out" ip netns exec "$RIG_NAME-A" "$railmux" pingpong \
    --connect 10.77.1.2:5000 --set connect.patience=1s
says "10.77.1.2:5000: no answer yet; waiting up to 1 s for somebody to listen there"
"$rig" restore rail1
refuses 1 "203.0.113.1:5000 cannot be reached: Network is unreachable" ip netns exec "$RIG_NAME-A" "$railmux" pingpong \
    --connect 203.0.113.1:5000

echo "a firewall that drops"
on B nft add table inet railmux_test
on B nft 'add chain inet railmux_test input { type filter hook input priority 0; }'
on B nft add rule inet railmux_test input iifname rail1 drop
without rail1 "" "10.77.1.1 - 10.77.1.2"
on B nft delete table inet railmux_test

echo "the same docker0 on both hosts is left alone"
for host in A B; do
    on $host ip link add docker0 type bridge
    on $host ip addr add 172.17.0.1/16 dev docker0
    on $host ip link set docker0 up
done
between || fail "with a docker0"
on A "$railmux" info >"$work/info"
grep docker0 "$work/info" | grep 'bridge' >/dev/null || fail "docker0 is not named as a bridge"

# tun_on SIDE ADDRESS: a VPN's interface that swallows what it is given
tun_on() {
    ip netns exec "$RIG_NAME-$1" python3 - "$2" >"$work/tun$1" <<'PYTHON' &
import fcntl, os, struct, subprocess, sys
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))  # TUNSETIFF: IFF_TUN, IFF_NO_PI
subprocess.check_call(["ip", "addr", "add", sys.argv[1], "dev", "tun0"])
subprocess.check_call(["ip", "link", "set", "tun0", "up"])
print("up", flush=True)
while os.read(tun, 65536):
    pass
PYTHON
    until_true "a tun on $1" grep up "$work/tun$1"
}

# connecting_from SIDE ADDRESS: whether a connection from this address is being set up
connecting_from() {
    local address
    # shellcheck disable=SC2046,SC2183 # four words
    address=$(printf '%02X%02X%02X%02X' $(tr . '\n' <<<"$2" | tac))
    on "$1" cat /proc/net/tcp | grep "$address:[0-9A-F]* [0-9A-F:]* 02 " >/dev/null
}

if [ -c /dev/net/tun ] && (exec 3<>/dev/net/tun) 2>/dev/null; then
    echo "a VPN that leads nowhere: off by default, with the reason"
    tun_on A 10.8.0.1/24
    tun_on B 10.8.0.2/24
    between RAILMUX_POLICY=round_robin || fail "beside a tun"
    in_time
    [ -z "$(carried tun0)" ] && [ "$(carried rail0)" -gt 0 ] && [ "$(carried rail1)" -gt 0 ] || fail "not over both rails"
    on A "$railmux" info >"$work/info"
    grep -q '^tcp:tun0 .*off by default: tun' "$work/info" || fail "the tun is not listed with the reason"

    echo "the same VPN, asked for: what is left works"
    between RAILMUX_TCP_INTERFACES=all,tun0 || fail "with a dead tun asked for"
    in_time
    without tun0 RAILMUX_TCP_INTERFACES=all,tun0 "10.8.0.1 - 10.8.0.2"

    echo "nothing but that VPN: the pair that failed is named, also when patience ends before its time"
    ! between RAILMUX_TCP_INTERFACES=tun0 RAILMUX_CONNECT_PATIENCE=1s || fail "a tun that leads nowhere works"
    in_time
    says "warning: rail tcp:tun0 to "
    says "(10.8.0.1 - 10.8.0.2:" 2  # when it happens, and at the end
    says " ms; does a firewall drop its packets?" 2
else
    echo "SKIPPED the VPN: no /dev/net/tun here"
fi

if on A ip link add vx0 type vxlan id 7 dstport 4789 local 10.77.0.1 remote 10.77.0.2 2>/dev/null; then
    echo "a vxlan: off by default, with the reason; it carries where it is asked for"
    on B ip link add vx0 type vxlan id 7 dstport 4789 local 10.77.0.2 remote 10.77.0.1
    on A ip addr add 10.9.0.1/24 dev vx0
    on B ip addr add 10.9.0.2/24 dev vx0
    on A ip link set vx0 up
    on B ip link set vx0 up
    between || fail "beside a vxlan"
    in_time
    [ -z "$(carried vx0)" ] || fail "a vxlan was used without being asked for"
    on A "$railmux" info >"$work/info"
    grep -q '^tcp:vx0 .*off by default: vxlan' "$work/info" || fail "the vxlan is not listed with the reason"
    between RAILMUX_TCP_INTERFACES=vx0 || fail "over a vxlan"
    [ "$(carried vx0)" -gt 0 ] || fail "a vxlan that was asked for was not used"

    echo "a vxlan whose other end is another network"
    on B ip link set vx0 down
    on B ip link del vx0
    on B ip link add vx0 type vxlan id 8 dstport 4789 local 10.77.0.2 remote 10.77.0.1
    on B ip addr add 10.9.0.2/24 dev vx0
    on B ip link set vx0 up
    without vx0 RAILMUX_TCP_INTERFACES=all,vx0 "10.9.0.1 - 10.9.0.2"
    on A ip link del vx0
    on B ip link del vx0
else
    echo "SKIPPED the vxlan: this kernel has none"
fi

# vanishes OPTIONS COMMAND...: the command runs while rail1 of A is connecting, which nothing answers
vanishes() {
    "$rig" silence rail1
    steady "RAILMUX_CONNECT_TIMEOUT=20s $1"
    until_true "rail1 connects" connecting_from A 10.77.1.1
    "${@:2}"
    ends
}

echo "an interface that is taken down while it connects: the other one carries"
vanishes "" ip -n "$RIG_NAME-A" link set rail1 down
carries_on
"$rig" restore rail1

echo "the other side takes it down"
vanishes "" ip -n "$RIG_NAME-B" link set rail1 down
carries_on
"$rig" restore rail1

echo "it is deleted"
vanishes "" ip -n "$RIG_NAME-A" link del rail1
carries_on

echo "it was the only one: at the end it is said what became of it"
"$rig" up none none
vanishes "RAILMUX_TCP_INTERFACES=rail1 RAILMUX_CONNECT_PATIENCE=5s" ip -n "$RIG_NAME-A" link del rail1
[ "$status" != 0 ] || fail "it works without an interface"
says "railmux[0]: warning: rail tcp:rail1 to rank 1"
mentions "rail tcp:rail1 is down: interface rail1 has vanished"
says "rail self" 0

echo "IPv6 only"
"$rig" up none none
for host in A B; do
    for rail in rail0 rail1; do on $host ip -4 addr flush dev $rail; done
done
between RAILMUX_POLICY=round_robin || fail "IPv6 only"
in_time
[ "$(carried rail0)" = 3276800 ] && [ "$(carried rail1)" = 3276800 ] || fail "not both rails carried half of it"

echo "one rail against four"
"$rig" up none none none none
for rail in rail1 rail2 rail3; do on A ip link set $rail down; done
between || fail "one against four"
in_time
echo "all good"
