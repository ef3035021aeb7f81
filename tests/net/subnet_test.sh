#!/usr/bin/env bash
# Two rails in one subnet: unless a host is told otherwise, the bytes of both leave by one interface. They are merged, the
# cure is printed as commands to copy, and with it both are used.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none

for host in A B; do
    last=1
    [ $host = A ] || last=2
    on $host ip addr flush dev rail1
    on $host ip addr add "10.77.0.1$last/24" dev rail1
done

# left_by SIDE RAIL: the bytes that an interface has sent
left_by() { on "$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }

# cure_of RANK: what the last run told it to do
cure_of() { sed -n "s/^railmux\[$1\]: warning: rail tcp:rail1.*to use both: //p" "$work/err" | sort -u; }

# info_cure SIDE: what the inventory of that side says of rail1; for the other rail there is nothing to cure
info_cure() {
    on "$1" "$railmux" info >"$work/info"
    ! grep '^cure for tcp:rail0' "$work/info" || fail "a cure for what is not ill"
    grep -q '^tcp:rail1 *usable' "$work/info" || fail "rail1 is not usable: $(cat "$work/info")"
    sed -n 's/^cure for tcp:rail1: //p' "$work/info"
}

echo "as it is: all arrives, over one interface, and both hosts are told the cure"
before=$(left_by A rail1)
run_on "2 A,B" env RAILMUX_POLICY=round_robin "$railmux" bandwidth --sizes 64K --iterations 200 --bidirectional --json ||
    fail "two rails in one subnet"
in_time
[ $(($(left_by A rail1) - before)) -lt 100000 ] || fail "rail1 of A carried data"
[ -z "$(carried rail1)" ] || [ "$(carried rail1)" = 0 ] || fail "bytes are said to have gone by rail1"
for rank in 0 1; do
    [ "$(cure_of $rank | wc -l)" = 1 ] || fail "rank $rank is not told the cure, or several"
    [[ $(cure_of $rank) == "ip rule add from 10.77.0.1$((rank + 1)) table "* ]] || fail "that is no cure: $(cure_of $rank)"
done
sides=(A B)
for rank in 0 1; do
    side=${sides[rank]}
    [ "$(info_cure "$side")" = "$(cure_of $rank)" ] || fail "railmux info on $side knows another cure: $(cat "$work/info")"
    grep -q "^tcp:rail1 .*to be merged with another: packets from 10.77.0.1$((rank + 1)) to 10.77.0.0/24 leave by rail0" \
        "$work/info" || fail "railmux info on $side does not say why: $(cat "$work/info")"
done
says "railmux[0]: warning: rail tcp:rail1 is merged with another: packets from 10.77.0.11 to 10.77.0."

echo "with the cure, as it was printed: both interfaces carry"
on A sh -ec "$(cure_of 0)" >/dev/null
on B sh -ec "$(cure_of 1)" >/dev/null
before=$(left_by A rail1)
between RAILMUX_POLICY=round_robin || fail "with the cure"
in_time
[ "$(carried rail0)" = 3276800 ] && [ "$(carried rail1)" = 3276800 ] || fail "not both rails carried half of it"
[ $(($(left_by A rail1) - before)) -gt 3276800 ] || fail "the bytes of rail1 left by another interface"
! grep -q 'to use both' "$work/err" || fail "the cure is still printed"
for side in A B; do
    [ -z "$(info_cure $side)" ] || fail "railmux info on $side still knows a cure: $(cat "$work/info")"
done
echo "all good"
