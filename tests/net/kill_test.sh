#!/usr/bin/env bash
# Processes of one host that talk by shared memory under load, any of which is killed at any moment, and started anew: the
# others are told at once, go on, and let go of the memory. Every third time one is killed while links are set up: whoever had
# not heard of it is told nothing then. At the end the same with all rails, where there may be a /dev/shm of its own, in which
# nothing is left. KILL_RUNS=200 kills so often, KILL_SEED chooses whom and when.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=tests/net/members.sh
. "$net/members.sh"
export XDG_RUNTIME_DIR=$work/run
[ -n "${in_own_shm:-}" ] || export RAILMUX_RAILS=shm:node
runs=${KILL_RUNS:-12}
RANDOM=${KILL_SEED:-$RANDOM}
ranks=(0 1 2 3)
folder=$(mktemp -d -p "$work")
deaths=(0 0 0 0)

# told_of RANK PROCESS: all the others know that it is gone
told_of() {
    local one
    for one in "${ranks[@]}"; do
        [ "$one" = "$1" ] || grep -qx "lost $1 $2" "$folder/$one.${newest[$one]}" || return 1
    done
}
# memory_of PROCESS: how many memory objects of links it has
memory_of() { grep -c '/memfd:railmux' "/proc/$1/maps" || true; }
# only_live RANK...: these have memory for links with each other, and none with those that were killed
only_live() {
    local one
    for one in "$@"; do [ "$(memory_of "${newest[$one]}")" -le $(($# - 1)) ] || return 1; done
}

timeout -k 9 $((guard + 5 * runs)) "$railmux" run --no-prefix -n 4 --restart $((4 * runs)) \
    "$build/tests/job_members" "$folder" 2>"$work/job" &
job=$!
longest=0
for run in $(seq "$runs"); do
    if [ $((run % 3)) = 0 ]; then  # whoever was killed last has just begun to connect
        [ $((RANDOM % 2)) = 0 ] || victim=${ranks[RANDOM % 4]}
        newest[$victim]=$(process_of "$victim")
        sleep "0.00$((RANDOM % 10))"
        kill -9 "${newest[$victim]}"
    else
        until_true "all know each other ($run)" all_know "${ranks[@]}"
        victim=${ranks[RANDOM % 4]}
        sleep "0.0$((RANDOM % 60 + 10))"  # any moment will do
        begun=$(date +%s%N)
        kill -9 "${newest[$victim]}"
        until_true "the others are told of rank $victim ($run)" told_of "$victim" "${newest[$victim]}"
        took=$((($(date +%s%N) - begun) / 1000000))
        [ $took -le $longest ] || longest=$took
    fi
    deaths[victim]=$((deaths[victim] + 1))
    until_true "rank $victim is started anew ($run)" replaced "$victim" "${newest[$victim]}"
done
until_true "all know each other at the end" all_know "${ranks[@]}"
until_true "the memory of links with those that were killed is gone" only_live "${ranks[@]}"
touch "$folder/leave"
wait $job || fail "the job ended with $?"
[ "$(grep -c 'died of signal 9 (Killed); starting it anew' "$work/job")" = "$runs" ] || fail "not $runs deaths"
[ "$(find "$folder" -type f ! -name leave | wc -l)" = $((4 + runs)) ] || fail "others were started anew, too"
for log in "$folder"/*.*; do
    twice=$(awk '/^lost/ && $3 && seen[$0]++' "$log")
    [ -z "$twice" ] || fail "$(basename "$log") was told more than once: $twice"
    for rank in "${ranks[@]}"; do
        told=$(grep -c "^lost $rank " "$log" || true)
        [ "$told" -le "${deaths[rank]}" ] || fail "$(basename "$log") was told $told times of ${deaths[rank]} deaths"
    done
done
[ $longest -lt $soon_ms ] || fail "somebody was told after $longest ms only"
echo "$runs were killed; the others were told within $longest ms"
if [ -n "${in_own_shm:-}" ]; then
    [ -z "$(ls -A /dev/shm)" ] || fail "left behind in /dev/shm: $(ls -A /dev/shm)"
    exit 0
fi
own_shm=(unshare --user --map-root-user --mount sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"' -)
if "${own_shm[@]}" true 2>/dev/null; then
    echo "with all rails, in a /dev/shm of their own"
    in_own_shm=yes KILL_RUNS=4 "${own_shm[@]}" "$0" "$build"
else
    echo "SKIPPED (what is left in /dev/shm): no mount namespace can be made here"
fi
echo "all good"
