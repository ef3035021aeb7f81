#!/usr/bin/env bash
# Several processes of one host flood another host over the same two rails: all arrives, whether they see each other's load
# or not, whether they can, and when one of them is killed.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig 1gbit 400mbit

# A table of their own, which others on this machine do not use.
mount -t tmpfs -o mode=1777 tmpfs /dev/shm

# flood PAIRS COUNT BYTES OPTION...
flood() {
    local pairs=$1 count=$2 bytes=$3
    shift 3
    echo "$pairs pairs, $count messages of $bytes bytes ${*:-}"
    run_on "$((2 * pairs)) A:$pairs,B:$pairs" env "$@" "$build/tests/job_pairs" "$count" "$bytes" 16 || fail "flood"
    [ "$(wc -l <"$work/out")" = "$pairs" ] || fail "not every sender came to its end"
}
left_behind() { [ -z "$(ls -A /dev/shm)" ] || fail "left behind: $(ls -A /dev/shm)"; }

flood 2 200 65536
[ ! -s "$work/err" ] || fail "a good run says something"
left_behind
flood 2 2000 100
flood 3 20 1000000 RAILMUX_NODE_SHARE=on
left_behind
flood 2 200 65536 RAILMUX_NODE_SHARE=off
left_behind
flood 2 200 65536 RAILMUX_POLICY=round_robin

echo "they are in one table of their user's, while they are there"
"$railmux" run -n 4 --hosts "$RIG_NAME-A:2,$RIG_NAME-B:2" --launch 'ip netns exec {host}' --no-prefix \
    "$build/tests/job_pairs" 100000 65536 16 >"$work/out" 2>&1 &
job=$!
four_have_tables() { [ "$(having_tables | wc -l)" = 4 ]; }
having_tables() { grep -lsF "$(find /dev/shm -name 'railmux-1-*')" /proc/[0-9]*/maps | cut -d / -f 3; }
until_true "four processes have a table" four_have_tables
[ "$(find /dev/shm -name 'railmux-1-*' | wc -l)" = 2 ] || fail "not two tables, one for each host's network"
[ -z "$(find /dev/shm -name 'railmux-1-*' ! -perm 600)" ] || fail "others may read it"
# All at once: one that sees the others go ends in good order, and takes its table with it.
mapfile -t processes < <(having_tables)
kill -STOP "${processes[@]}"
kill -KILL "${processes[@]}"
wait $job || true
[ "$(find /dev/shm -name 'railmux-1-*' | wc -l)" = 2 ] || fail "somebody took away a table although all were killed"
# By a descriptor: given a name, flock would make a file that others may read where the table has just been taken away.
in_use() { { ! flock --nonblock 9; } 2>/dev/null 9<"$1"; }
for table in /dev/shm/*; do
    until_true "nobody has it any more" flock --nonblock "$table" true
done

echo "killed in the middle: the others go on, and who comes last takes away what was left behind"
mapfile -t left < <(find /dev/shm -type f)
they_use_what_was_left() {
    local table
    for table in "${left[@]}"; do in_use "$table" || return 1; done
}
used_or_over() { they_use_what_was_left || ! kill -0 $beside; }
# How long a flood takes is the machine's affair: until one lasts longer than it takes to kill the others.
outlives_the_others() {
    "$railmux" run -n 2 --hosts "$RIG_NAME-A,$RIG_NAME-B" --launch 'ip netns exec {host}' --no-prefix \
        "$build/tests/job_pairs" "$1" 65536 16 >"$work/beside.out" 2>"$work/beside.err" &
    local beside=$! outlived=true
    until_true "they use what was left behind" used_or_over
    run_on "4 A:2,B:2" "$build/tests/job_pairs" 400 65536 16 die && fail "nobody was killed"
    kill -0 $beside 2>/dev/null || outlived=false
    wait $beside || fail "flood beside those that were killed"
    [ "$(wc -l <"$work/beside.out")" = 1 ] && [ ! -s "$work/beside.err" ] || fail "flood beside those that were killed"
    $outlived
}
outlives_the_others 6000 || outlives_the_others 30000 || outlives_the_others 150000 || fail "it always ended before the others"
flood 2 200 65536
until_true "nothing is left behind" sh -c '[ -z "$(ls -A /dev/shm)" ]'

echo "content that makes no sense: said by each where it is no table, and harmless where it seems one"
on A "$railmux" info >/dev/null
network=$(on A stat -L -c %i /proc/self/ns/net)
processes=$(stat -L -c %i /proc/self/ns/pid)
table=/dev/shm/railmux-1-$(id -u)-$network-$processes
(umask 077 && head -c 65536 /dev/urandom >"$table")
flood 2 200 65536
says "$table is damaged" 2
rm "$table"
(umask 077 && { printf railmux1 && head -c 65528 /dev/urandom; } >"$table")
flood 2 200 65536
[ ! -s "$work/err" ] || fail "it says something"
left_behind

echo "no place for a table: said once by each, and all else works"
mount -o remount,size=4k /dev/shm
flood 2 200 65536
says "the load of other processes of this host is not seen: " 4
mentions "No space left on device"
left_behind
mount -o remount,ro /dev/shm
flood 2 200 65536
says "the load of other processes of this host is not seen: " 4
mentions "Read-only file system"
flood 2 200 65536 RAILMUX_NODE_SHARE=off
[ ! -s "$work/err" ] || fail "it says something although it was switched off"
umount /dev/shm
echo "all good"
