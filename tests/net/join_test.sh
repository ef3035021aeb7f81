#!/usr/bin/env bash
# Jobs that change while they run: processes that join, leave, are killed and started anew. RESTART_RUNS=100 kills one so often.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=tests/net/members.sh
. "$net/members.sh"
export XDG_RUNTIME_DIR=$work/run
runs=${RESTART_RUNS:-10}

# begin_job OPTION...: a job of job_members in the background, in $folder; its launcher is $job, its errors are in $work/job
begin_job() {
    folder=$(mktemp -d -p "$work")
    timeout -k 9 $((guard + 5 * runs)) "$railmux" run --name demo "$@" "$build/tests/job_members" "$folder" 2>"$work/job" &
    job=$!
}

# ends_well PID WHAT
ends_well() {
    local status=0
    wait "$1" || status=$?
    [ $status = 0 ] || fail "$2 ended with $status"
}

echo "a job of 4: two join, one leaves, and all play on"
begin_job -n 4
until_true "the four know each other" all_know 0 1 2 3
timeout -k 9 $guard "$railmux" run --join demo -n 2 "$build/tests/job_members" "$folder" 2>"$work/joined" &
joined=$!
until_true "the six know each other" all_know 0 1 2 3 4 5
touch "$folder/leave.2"
old=$(process_of 2)
until_true "rank 2 has ended" sh -c "! readlink /proc/$old/exe"
rm "$folder/leave.2"
"$railmux" run --join demo -n 1 "$build/tests/job_members" "$folder" 2>"$work/joined_later" &
later=$!
until_true "the newcomer knows all but who has left" all_know 0 1 3 4 5 6
"$railmux" run --join demo --rank 2 "$build/tests/job_members" "$folder" 2>"$work/returned" &
returned=$!
until_true "rank 2 is back as another process" replaced 2 "$old"
until_true "all know it" all_know 0 1 2 3 4 5 6
touch "$folder/leave"
for part in $job $joined $later $returned; do ends_well "$part" "a launcher"; done
# The first launcher, which serves the job, may be the first to end.
for errors in job joined joined_later returned; do
    ! grep -v "the job's server has gone" "$work/$errors" || fail "$errors has something to say"
done

echo "who cannot join is told why"
refuses 1 "there is no job named demo on this host" "$railmux" run --join demo -n 1 true
refuses 1 "'a/../b' is no name for a job" "$railmux" run --name a/../b -n 1 true
begin_job -n 2
until_true "the two know each other" all_know 0 1
refuses 1 "a job named demo is running" "$railmux" run --name demo -n 1 true
refuses 1 "rank 1 is there" "$railmux" run --join demo --rank 1 true
refuses 1 "there is no rank 7 in a job of 2" "$railmux" run --join demo --rank 7 true
[ "$(stat -c %a "$XDG_RUNTIME_DIR/railmux/demo")" = 600 ] || fail "others may read the key"
cp "$XDG_RUNTIME_DIR/railmux/demo" "$work/copy"
echo "job.key = another" >>"$work/copy"
refuses 1 "the job keys differ" "$railmux" run --join "$work/copy" -n 1 true
chmod 644 "$work/copy"
refuses 1 "other users may read it" "$railmux" run --join "$work/copy" -n 1 true
echo "a job that fails ends what has joined it"
timeout -k 9 $guard "$railmux" run --join demo -n 1 "$build/tests/job_members" "$folder" 2>"$work/joined" &
joined=$!
until_true "the three know each other" all_know 0 1 2
kill -9 "$(process_of 1)"
status=0
wait "$job" || status=$?
[ $status = 137 ] || fail "the job ended with $status, not 137"
status=0
wait "$joined" || status=$?
[ $status = 143 ] || fail "what had joined ended with $status, not 143"
grep -q 'its first launcher has ended it' "$work/joined" || fail "it does not say why"
[ ! -e "$XDG_RUNTIME_DIR/railmux/demo" ] || fail "the job's file is still there"

echo "a process that dies for good does not end the others where they keep going; another takes its rank"
begin_job -n 3 --keep-going
until_true "the three know each other" all_know 0 1 2
old=$(process_of 1)
kill -9 "$old"
until_true "that is noticed" grep -q 'rank 1 died of signal 9 (Killed); the others go on' "$work/job"
"$railmux" run --join demo --rank 1 "$build/tests/job_members" "$folder" 2>"$work/returned" &
returned=$!
until_true "rank 1 is back as another process" replaced 1 "$old"
until_true "the three know each other" all_know 0 1 2
touch "$folder/leave"
ends_well "$returned" "the returned"
status=0
wait "$job" || status=$?
[ $status = 137 ] || fail "the job ended with $status, not 137"

echo "a job of 8 in which rank 3 is killed $runs times, and started anew"
begin_job -n 8 --restart "$runs"
for run in $(seq "$runs"); do
    until_true "all know each other ($run)" all_know 0 1 2 3 4 5 6 7
    old=$(process_of 3)
    kill -9 "$old"
    until_true "there is another one ($run)" replaced 3 "$old"
done
until_true "all know each other at the end" all_know 0 1 2 3 4 5 6 7
touch "$folder/leave"
ends_well "$job" "the job"
[ "$(grep -c '^railmux run: rank 3 died of signal 9 (Killed); starting it anew' "$work/job")" = "$runs" ] ||
    fail "not $runs deaths"
! grep '^railmux run: ' "$work/job" | grep -v '^railmux run: rank 3 died of signal 9' || fail "others failed, too"
[ "$(find "$folder" -type f ! -name leave | wc -l)" = $((8 + runs)) ] || fail "others were started anew, too"
echo "all good"
