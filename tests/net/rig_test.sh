#!/usr/bin/env bash
# The rig itself: what its commands promise is what a TCP connection between its hosts meets.
set -euo pipefail
rig=$(dirname "$(readlink -f "$0")")/../../scripts/rig

# Inside: this script again, as the command of a private rig.
if [ "${1:-}" != inside ]; then
    # shellcheck source=scripts/lib.sh
    . "$(dirname "$rig")/lib.sh"
    can_make_private_networks || { echo "skipped: $(why_no_networks)"; exit 77; }
    status=0
    timeout -k 9 180 "$rig" --name rigtest run 1gbit 40mbit none --burst 32kb -- "$0" inside || status=$?
    [ $status -eq 42 ] || { echo "run gave exit status $status instead of its command's 42"; exit 1; }
    [[ $(ip netns list) != *rigtest* ]] || { echo "run left its hosts behind"; exit 1; }
    exit 0
fi

fail() { echo "FAILED: $*"; "$rig" status; exit 1; }

# reaches ADDRESS: whether a connection from A to B at this address is answered within half a second
reaches() {
    "$rig" exec A python3 - "$1" <<'PYTHON'
import socket, sys
try:
    socket.create_connection((sys.argv[1], 5000), timeout=0.5).close()
except OSError:
    sys.exit(1)
PYTHON
}

# Sends 1 MB to B over rail1 and prints the milliseconds until B has said that it is there.
transfer_ms() {
    "$rig" exec A python3 - <<'PYTHON'
import socket, time
with socket.create_connection(("10.77.1.2", 5000), timeout=10) as connection:
    start = time.monotonic()
    connection.sendall(bytes(1000000))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
    print(round((time.monotonic() - start) * 1000))
PYTHON
}

"$rig" exec B python3 - <<'PYTHON' &
import socket, threading

def swallow(connection):
    with connection:
        while connection.recv(65536):
            pass
        connection.send(b".")

listener = socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    threading.Thread(target=swallow, args=(listener.accept()[0],), daemon=True).start()
PYTHON
for _ in {1..50}; do
    if reaches 10.77.0.2; then break; fi
    sleep 0.1
done

for address in 10.77.0.2 10.77.1.2 10.77.2.2 fd77:0::2 fd77:1::2; do
    reaches $address || fail "$address is not reached on a fresh rig"
done

took=$(transfer_ms)  # 1 MB at 40 Mbit/s is 200 ms, less what the burst lets through
[ "$took" -ge 100 ] || fail "1 MB over 40 Mbit/s took only $took ms"
"$rig" set rail1 none
for attempt in {1..5}; do  # others use this machine, too
    took=$(transfer_ms)
    [ "$took" -ge 100 ] || break
    [ "$attempt" -lt 5 ] || fail "1 MB over an unshaped rail took $took ms"
done

"$rig" cut rail1
! reaches 10.77.1.2 || fail "a cut rail still carries"
reaches 10.77.0.2 || fail "cutting rail1 hurt rail0"
"$rig" silence rail0
! reaches 10.77.0.2 || fail "a silent rail still carries"
[ "$("$rig" exec A cat /sys/class/net/rail0/carrier)" = 1 ] || fail "a silent rail lost its carrier"
table=$("$rig" status)
grep -q '^rail0 *silent ' <<<"$table" || fail "status does not say that rail0 is silent"
grep -q '^rail1 *cut at A ' <<<"$table" || fail "status does not say that rail1 is cut"
"$rig" exec A ip neigh flush dev rail0
! reaches 10.77.0.2 || fail "a silent rail still carries"
[[ $("$rig" exec A ip neigh show dev rail0) != *lladdr* ]] || fail "a silent rail still answers where B is"
"$rig" restore rail0
"$rig" restore rail1
"$rig" exec A ip neigh flush dev rail0  # else it asks again in up to a second
for address in 10.77.0.2 10.77.1.2 fd77:1::2; do
    reaches $address || fail "$address is not reached after restore"
done

control() { "$rig" --name rigtest2 exec B cat /proc/sys/net/ipv4/tcp_congestion_control; }
# Under the lock of those who change it for a moment: other tests bring rigs up, too.
allowed() {
    local file=/proc/sys/net/ipv4/tcp_allowed_congestion_control
    flock "$file" cat "$file" 2>/dev/null || true
}
were=$(allowed)
"$rig" --name rigtest2 --congestion reno up none  # no kernel is without it
[ "$(control)" = reno ] || fail "--congestion reno gave $(control)"
warning=$("$rig" --name rigtest2 up none 2>&1)
[ "$(control)" = cubic ] || [[ $warning == *"instead of cubic"* ]] || fail "neither cubic nor a warning, but $(control)"
! RIG_CONGESTION=nosuch "$rig" --name rigtest2 up none 2>/dev/null || fail "an unknown congestion control is accepted"
[ "$(allowed)" = "$were" ] || fail "the machine allows other congestion controls than before: $(allowed), not $were"

"$rig" --name rigtest2 up none none --uplink 40mbit
[[ $(ip netns list) == *rigtest2-between* ]] || fail "no switches between A and B"
"$rig" --name rigtest2 exec B python3 -c 'import socket, time
for rail in "01":
    socket.create_server((f"10.77.{rail}.2", 5000))
    print(rail, flush=True)
' >/dev/null || fail "the addresses behind the switches are not there"
"$rig" --name rigtest2 down
[[ $(ip netns list) != *rigtest2* ]] || fail "down left switches behind"

[ "$("$rig" exec A sh -c 'exit 7'; echo $?)" = 7 ] || fail "exec does not hand the exit status back"
! "$rig" set rail9 1gbit 2>/dev/null || fail "an unknown rail is accepted"
! "$rig" set rail0 1foo 2>/dev/null || fail "an unknown rate is accepted"
exit 42
