#!/usr/bin/env bash
# railmux soak: everything at once over three rails that are cut, reset, silenced and slowed down; and what it says when it
# finds something.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=scripts/lib.sh
. "$net/../../scripts/lib.sh"

echo "a soak on this host: the object that scripts rely on"
timeout -k 9 $guard "$railmux" run --no-prefix -n 3 "$railmux" soak --minutes 0.01 --seed 7 --max-bytes 50K --json \
    >"$work/out" 2>"$work/err" || fail "a soak without trouble"
python3 - "$work/out" <<'PYTHON' || fail "the result"
import json, sys
result = json.loads(open(sys.argv[1]).read())
assert list(result) == ["tool", "seed", "processes", "seconds", "faults", "problem", "results", "rails"], result
assert (result["tool"], result["seed"], result["processes"], result["faults"]) == ("soak", 7, 3, 0), result
assert [r["operation"] for r in result["results"]] == ["message", "put", "get", "notified put", "atomic"], result
assert all(r["checked"] > 0 for r in result["results"]), result
PYTHON
mentions "soaking 3 processes for 1 s, seed 7"

echo "between two processes that met"
"$railmux" soak --listen 0 >"$work/listener.out" 2>"$work/listener" &
listener=$!
until_true "soak listens" grep "listening on port" "$work/listener"
port=$(sed -n 's/.*listening on port //p' "$work/listener")
timeout -k 9 $guard "$railmux" soak --connect "127.0.0.1:$port" --minutes 0.01 --operations messages \
    >"$work/out" 2>"$work/err" || fail "between two"
wait "$listener" || fail "the listener of a good soak failed"
grep -q '^all right$' "$work/out" || fail "it does not say that all is right"

echo "a process that stands still is a hang, and what was under way is said"
status=0
# shellcheck disable=SC2016 # for the shell of the job
timeout -k 9 $guard "$railmux" run --no-prefix -n 2 sh -c '"$0" soak --minutes 1 --watchdog 2 &
    said() { until grep -q "$1" "$2"; do sleep 0.05; done; }
    [ "$RAILMUX_JOB_RANK" = 0 ] || { said "have met" "$1"; kill -STOP $!; said WRONG "$1"; kill -KILL $!; exit 1; }
    wait $!' "$railmux" "$work/err" >"$work/out" 2>"$work/err" || status=$?
[ $status != 0 ] || fail "a hang is no failure"
mentions "WRONG: nothing has ended for 2000 ms; under way were"
mentions " has not come"

refuses 2 'there is no "gets"' "$railmux" soak --listen 0 --operations gets
refuses 2 "neither --listen nor --connect" "$railmux" soak

can_make_private_networks || { echo "SKIPPED (the rest): $(why_no_networks)"; exit 77; }
seed=${SOAK_SEED:-$RANDOM}
echo "three rails in trouble, seed $seed"
timeout -k 9 $guard "$net/../../scripts/soak" --build "$build" --minutes 0.25 --seed "$seed" >"$work/out" 2>"$work/err" ||
    fail "in trouble, seed $seed"
troubles=$(grep -c "^soak: rail" "$work/err" || true)
echo "$troubles troubles"
[ "$troubles" -gt 2 ] || fail "hardly any trouble, seed $seed"
cat "$work/out"
echo "all good"
