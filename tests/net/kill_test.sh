#!/usr/bin/env bash
# Processes of one host that talk by shared memory under load, any of which is killed at any moment, and started anew: the
# others are told at once, go on, and nothing of the memory stays behind. KILL_RUNS=200 kills so often, KILL_SEED chooses whom
# and when.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
export XDG_RUNTIME_DIR=$work/run RAILMUX_RAILS=shm:node
runs=${KILL_RUNS:-12}
RANDOM=${KILL_SEED:-$RANDOM}
ranks=(0 1 2 3)
folder=$(mktemp -d -p "$work")

# process_of RANK: the newest process of a rank; empty if there is none
process_of() { find "$folder" -name "$1.*" -printf '%T@ %f\n' | sort -n | tail -1 | sed 's/.*\.//'; }

# Every pair has exchanged messages.
all_know() {
    local one other
    newest=()
    for one in "${ranks[@]}"; do newest+=("$(process_of "$one")"); done
    for one in "${ranks[@]}"; do
        for other in "${ranks[@]}"; do
            [ "$one" = "$other" ] || grep -qx "$other ${newest[other]}" "$folder/$one.${newest[one]}" || return 1
        done
    done
}
replaced() { [ "$(process_of "$1")" != "$2" ]; }  # RANK OLD
# told_of RANK PROCESS: all the others know that it is gone
told_of() {
    local one
    for one in "${ranks[@]}"; do
        [ "$one" = "$1" ] || grep -qx "lost $1 $2" "$folder/$one.${newest[one]}" || return 1
    done
}
# What links by memory are made with; each process has one that listens, and one for each link that it accepted.
sockets() { grep -c '@railmux-shm-' /proc/net/unix || true; }
no_sockets() { [ "$(sockets)" = 0 ]; }

timeout $((60 + 5 * runs)) "$railmux" run --no-prefix -n 4 --restart $((4 * runs)) "$build/tests/job_members" "$folder" \
    2>"$work/job" &
job=$!
longest=0
for run in $(seq "$runs"); do
    until_true "all know each other ($run)" all_know
    victim=${ranks[RANDOM % 4]}
    sleep "0.0$((RANDOM % 60 + 10))"  # any moment will do
    begun=$(date +%s%N)
    kill -9 "${newest[victim]}"
    until_true "the others are told of rank $victim ($run)" told_of "$victim" "${newest[victim]}"
    took=$((($(date +%s%N) - begun) / 1000000))
    [ $took -le $longest ] || longest=$took
    until_true "rank $victim is started anew ($run)" replaced "$victim" "${newest[victim]}"
done
until_true "all know each other at the end" all_know
touch "$folder/leave"
wait $job || fail "the job ended with $?"
[ "$(grep -c 'died of signal 9 (Killed); starting it anew' "$work/job")" = "$runs" ] || fail "not $runs deaths"
[ "$(find "$folder" -type f ! -name leave | wc -l)" = $((4 + runs)) ] || fail "others were started anew, too"
until_true "no socket stays behind" no_sockets
for log in "$folder"/*.*; do
    twice=$(awk '/^lost/ && seen[$0]++' "$log")
    [ -z "$twice" ] || fail "$(basename "$log") was told more than once: $twice"
done
echo "$runs were killed; the others were told within $longest ms"
echo "all good"
