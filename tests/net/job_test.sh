#!/usr/bin/env bash
# Jobs on this host: eight processes, death of one, output, exit status.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

echo "eight processes, any source"
timeout -k 9 $guard "$railmux" run -n 8 "$build/examples/example_master_worker" >"$work/out" 2>"$work/err" ||
    fail "eight processes"
grep -q '^\[0\] ' "$work/out" || fail "no rank in front of the output"

echo "a process that dies ends the job and is named"
status=0
timeout -k 9 $guard "$railmux" run -n 3 sh -c '[ "$RAILMUX_JOB_RANK" != 1 ] || kill -SEGV $$; sleep 1000' \
    >"$work/out" 2>"$work/err" || status=$?
[ $status = 139 ] || fail "exit status $status, not 139"
grep -q 'rank 1 died of signal 11' "$work/err" || fail "the dead rank is not named"

echo "a program of railmux dies of its signal, too"
ulimit -c 0  # no core is left lying about
for signal in ABRT TERM; do
    : >"$work/err"
    timeout -k 9 $guard "$railmux" run -n 2 --no-prefix sh -c 'echo $$ >"$0.$RAILMUX_JOB_RANK"; exec "$@"' "$work/pid" \
        "$railmux" pingpong --sizes 8 --iterations 100000000 --set log=debug >"$work/out" 2>"$work/err" &
    job=$!
    until_true "a link" grep -q 'link .* up$' "$work/err"
    kill -$signal "$(cat "$work/pid.1")"
    status=0
    wait $job || status=$?
    number=$(kill -l $signal)
    [ $status = $((128 + number)) ] || fail "exit status $status, not $((128 + number))"
    grep -q "rank 1 died of signal $number" "$work/err" || fail "the dead rank is not named"
done

echo "an exit status is handed on"
status=0
timeout -k 9 $guard "$railmux" run -n 2 sh -c 'exit $((RAILMUX_JOB_RANK * 7))' >"$work/out" 2>"$work/err" || status=$?
[ $status = 7 ] || fail "exit status $status, not 7"
echo "a launcher without standard input or output starts its processes all the same"
timeout -k 9 $guard "$railmux" run -n 2 "$railmux" pingpong --sizes 8 --iterations 10 <&- >"$work/out" 2>"$work/err" ||
    fail "without input: $(cat "$work/err")"
timeout -k 9 $guard "$railmux" run -n 2 "$railmux" pingpong --sizes 8 --iterations 10 <&- >&- 2>"$work/err" ||
    fail "without both: $(cat "$work/err")"
echo "the program follows a list"
timeout -k 9 $guard "$railmux" run -n 2 --launch env --hosts a,b echo --twice >"$work/out" 2>"$work/err" || fail "after --hosts"
[ "$(sort "$work/out")" = $'[0] --twice\n[1] --twice' ] || fail "--hosts takes the program, or one of its words"
timeout -k 9 $guard "$railmux" run -n 1 --env HOME,USER echo --once >"$work/out" 2>"$work/err" || fail "after --env"
[ "$(cat "$work/out")" = '[0] --once' ] || fail "--env takes the program, or one of its words"

echo "other hosts are listened for on a port of RAILMUX_TCP_PORTS"
listen pingpong  # has the first
# shellcheck disable=SC2016 # for the shell of the job
on_other_host=("$railmux" run -n 1 --no-prefix --launch env --hosts a sh -c 'echo "$RAILMUX_JOB_SERVER"')
RAILMUX_TCP_PORTS=$port-$((port + 100)) timeout -k 9 $guard "${on_other_host[@]}" >"$work/out" || fail "with a range of ports"
own=$(sed 's/.*://' "$work/out")
[ "$own" -gt "$port" ] && [ "$own" -le $((port + 100)) ] || fail "port $own is not one of them"
RAILMUX_TCP_PORTS=$port refuses 1 "every port of $port-$port is in use" "${on_other_host[@]}"
RAILMUX_TCP_PORTS=5000- refuses 1 'RAILMUX_TCP_PORTS: "5000-" is not a port' "${on_other_host[@]}"
end_listener

echo "all good"
