#!/usr/bin/env bash
# Processes of one host share memory, those of two do not; nothing stays behind when they are killed.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig 1gbit

# by_rail RAIL: the bytes that a rail carried in the last run
by_rail() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$work/out"; }
pings() { run_on "$1" env "${@:2}" "$railmux" pingpong --sizes 8 --iterations 500 --json || fail "pingpong on $1"; }

echo "two processes of one host have a link by memory, and talk by it alone where they may; those of two hosts cannot"
pings "2 A,A"
[ -n "$(by_rail shm:node)" ] || fail "no link by memory"
pings "2 A,A" RAILMUX_RAILS=shm:node
[ "$(by_rail shm:node)" = 8000 ] || fail "not by memory"
pings "2 A,B"
[ -z "$(by_rail shm:node)" ] || fail "memory between two hosts"
pings "2 A,A" RAILMUX_RAILS=^shm:node
[ -z "$(by_rail shm:node)" ] && [ "$(by_rail tcp:lo)" -gt 0 ] || fail "deselected, and used all the same"

echo "large messages, fetched and copied"
for bulk in fetch copy; do
    run_on "2 A,A" env RAILMUX_RAILS=shm:node RAILMUX_SHM_BULK=$bulk "$railmux" bandwidth --sizes 48K,4M --iterations 10 \
        >"$work/log" || fail "bandwidth, $bulk"
done

echo "killed under load: the other learns at once, and nothing stays behind"
export RAILMUX_RAILS=shm:node RAILMUX_CONNECT_PATIENCE=2s RAILMUX_RECOVER_PATIENCE=2s
# On host A, whose sockets are its own: other tests may talk by memory at the same time.
printf '#!/bin/sh\nexec ip netns exec %s %s "$@"\n' "$RIG_NAME-A" "$railmux" >"$work/railmux"
chmod +x "$work/railmux"
railmux=$work/railmux
listen pingpong
timeout -k 9 $guard "$railmux" pingpong --sizes 8 --iterations 100000000 --connect "127.0.0.1:$port" >"$work/other" 2>&1 &
other=$!
sockets() { on A grep -c '@railmux-shm-' /proc/net/unix || true; }
both_there() { [ "$(sockets)" -ge 3 ]; }  # both listen, and one has accepted
until_true "they talk by memory" both_there
kill -KILL "$(pgrep -P "$listener")"  # the program, not what limits its time
status=0
wait $other || status=$?
[ $status != 0 ] && [ $status != 124 ] || fail "the survivor ended with $status"
[ "$(sockets)" = 0 ] || fail "a socket stays behind"
echo "all good"
