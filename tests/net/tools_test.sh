#!/usr/bin/env bash
# The railmux command on this host alone: what it prints, what it checks, how it fails.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

echo "ping-pong: the JSON object that scripts rely on"
listen pingpong
timeout -k 9 $guard "$railmux" pingpong --connect "127.0.0.1:$port" --sizes 8,64,4096 --iterations 50 --json >"$work/pingpong"
wait "$listener" || fail "the listener of a good run failed"
[ ! -s "$work/listener.out" ] || fail "the listener wrote to standard output"
python3 - "$work/pingpong" <<'PYTHON'
import json, sys
lines = open(sys.argv[1]).read().splitlines()
assert len(lines) == 1, lines
result = json.loads(lines[0])
assert list(result) == ["tool", "results"] and result["tool"] == "pingpong", result
assert [r["bytes"] for r in result["results"]] == [8, 64, 4096]
for r in result["results"]:
    assert list(r) == ["bytes", "half_round_trip_us", "rails"], r
    t = r["half_round_trip_us"]
    assert 0 < t["min"] <= t["median"] <= t["p99"] and t["min"] <= t["mean"], r
    assert sum(r["rails"].values()) == 2 * 50 * r["bytes"], r  # forth and back
PYTHON

echo "ping-pong in bursts: whole ones"
listen pingpong
timeout -k 9 $guard "$railmux" pingpong --connect "127.0.0.1:$port" --sizes 8,100K --iterations 70 --burst 32 --pause 100 \
    --json >"$work/burst" || fail "pingpong in bursts"
python3 - "$work/burst" <<'PYTHON'
import json, sys
for result in json.load(open(sys.argv[1]))["results"]:  # 70 messages are three bursts of 32, there and back
    assert sum(result["rails"].values()) == 2 * 96 * result["bytes"], result
PYTHON

echo "bandwidth: one way, both ways, shared buffers; odd windows and counts"
listen bandwidth --keep --set connect.patience=2s recover.patience=2s
for options in "--window 64" "--window 1" "--window 3 --bidirectional" "--window 16 --buffers 2"; do
    # shellcheck disable=SC2086 # the options are words
    timeout -k 9 $guard "$railmux" bandwidth --connect "127.0.0.1:$port" --sizes 0,1,17,4K,300K --iterations 101 \
        --json $options >"$work/bandwidth"
    python3 - "$work/bandwidth" "$options" <<'PYTHON'
import json, sys
result = json.loads(open(sys.argv[1]).read())
assert list(result) == ["tool", "results"] and result["tool"] == "bandwidth", result
directions = 2 if "--bidirectional" in sys.argv[2] else 1
for r in result["results"]:
    assert list(r) == ["bytes", "MB_per_s", "messages_per_s", "rails"], r
    assert r["messages_per_s"] > 0, r
    assert abs(r["MB_per_s"] - r["messages_per_s"] * r["bytes"] / 1e6) <= 0.01 * r["MB_per_s"] + 0.002, r
    assert sum(r["rails"].values()) == directions * 101 * r["bytes"], r
PYTHON
done

echo "put, get and atomic: any of them serves the others; what was done is checked on both sides"
for options in "put --window 16 --sizes 0,1,17,4K,300K" "get --window 3 --sizes 0,1,17,4K,300K" "atomic --window 1"; do
    # shellcheck disable=SC2086 # the options are words
    timeout -k 9 $guard "$railmux" $options --connect "127.0.0.1:$port" --iterations 101 --json >"$work/access"
    python3 - "$work/access" "${options%% *}" <<'PYTHON'
import json, sys
result = json.loads(open(sys.argv[1]).read())
assert list(result) == ["tool", "results"] and result["tool"] == sys.argv[2], result
assert [r["bytes"] for r in result["results"]] == ([4, 8] if sys.argv[2] == "atomic" else [0, 1, 17, 4096, 307200])
for r in result["results"]:
    assert list(r) == ["bytes", "min_us", "mean_us", "median_us", "p99_us", "MB_per_s", "operations_per_s", "rails"], r
    assert 0 < r["min_us"] <= r["median_us"] <= r["p99_us"], r
    assert sum(r["rails"].values()) == 101 * r["bytes"], r
PYTHON
done

echo "--keep: the listener stays through a client that dies, and serves the other tool"
timeout -s KILL $((2 * slower)) "$railmux" bandwidth --connect "127.0.0.1:$port" --sizes 64K --iterations 100000000 \
    >/dev/null 2>&1 || true
timeout -k 9 $guard "$railmux" pingpong --connect "127.0.0.1:$port" --sizes 8 --iterations 10 --csv >"$work/csv" ||
    fail "the listener is still busy with the dead client"
grep -q '^8,' "$work/csv" || fail "no CSV row"
end_listener

echo "without --keep a client that dies ends the listener with an error"
listen pingpong --set connect.patience=2s recover.patience=2s
timeout -s KILL $((2 * slower)) "$railmux" pingpong --connect "127.0.0.1:$port" --sizes 8 --iterations 100000000 \
    >/dev/null 2>&1 || true
status=0
wait "$listener" || status=$?
[ "$status" = 1 ] || fail "the listener ended with $status"

echo "under run"
timeout -k 9 $guard "$railmux" run --no-prefix -n 3 "$railmux" pingpong --sizes 8 --iterations 10 >"$work/run" ||
    fail "pingpong under run"
grep -q '^# bytes' "$work/run" || fail "no table"

echo "under run, with any rank"
for tool in pingpong put probe; do
    options="--sizes 8 --iterations 10"
    [ "$tool" != probe ] || options="--grid 2 --rounds 1 --max-bytes 1K"
    # shellcheck disable=SC2086 # the options are words
    timeout -k 9 $guard "$railmux" run --no-prefix -n 3 "$railmux" "$tool" --peer 2 $options >"$work/run" || fail "$tool --peer"
    grep -q "^# railmux $tool with rank 2\b" "$work/run" || fail "$tool is not with rank 2"
done
! timeout -k 9 $guard "$railmux" run -n 2 "$railmux" pingpong --peer 2 >"$work/run" 2>"$work/err" ||
    fail "with a rank that there is not"
mentions "--peer 2: the job has ranks 1 to 1 beside rank 0"
refuses 2 "--peer" "$railmux" pingpong --listen 0 --peer 1
refuses 2 "--peer" "$railmux" bandwidth --connect 127.0.0.1:9 --peer 1

echo "what cannot work says what and what to do"
refuses 1 "127.0.0.1:9 cannot be reached" "$railmux" pingpong --connect 127.0.0.1:9 --set connect.patience=100ms
listen pingpong
refuses 1 "port $port is in use" "$railmux" pingpong --listen "$port"
end_listener
refuses 2 'policy: "robin" is not one of vft|' "$railmux" bandwidth --listen 0 --policy robin
refuses 2 '"5-" is not a size' "$railmux" pingpong --listen 0 --sizes 5-
for tool in pingpong bandwidth put get atomic explain; do  # one size is asked for as often as several
    refuses 2 '"5-" is not a size' "$railmux" $tool --listen 0 --size 5-
    "$railmux" $tool --help | grep -q -- '--sizes,--size LIST' || fail "$tool --help names only one of --sizes and --size"
done
refuses 1 "transports names tpc, which there is not (did you mean \"tcp\"?)" "$railmux" info --transport tpc
refuses 1 "self: not selected by transports" "$railmux" pingpong --listen 0 --transports '^s*,^t*,^v*,^o*'
refuses 2 "atomics have 4 or 8 bytes" "$railmux" atomic --listen 0 --sizes 16
refuses 2 "neither --listen nor --connect" "$railmux" pingpong
refuses 2 "--bogus" "$railmux" info --bogus
refuses 2 'there is no command or option "bogus"' "$railmux" bogus
refuses 2 "no program to start" "$railmux" run -n 2
RAILMUX_EAGER_MAX=64Q refuses 1 'RAILMUX_EAGER_MAX: "64Q" is not a size' "$railmux" info
RAILMUX_TCP_INTERFACES=nosuch0 refuses 1 "nosuch0" "$railmux" pingpong --listen 0

echo "info"
# Not through pipes: grep ends as soon as it has found something, and info would end by the broken pipe.
"$railmux" info --transport tcp >"$work/info"
grep -q 'self .*not selected by transports' "$work/info" || fail "--transport selects nothing"
"$railmux" info >"$work/info"
grep -q '^rail ' "$work/info" || fail "no table of rails"
"$railmux" info --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["rails"]'
RAILMUX_POLICY=fixed "$railmux" info --config --json | python3 -c '
import json, sys
rows = {p["name"]: p for p in json.load(sys.stdin)["parameters"]}
assert rows["policy"]["value"] == "fixed" and rows["policy"]["source"] == "environment"
assert rows["eager.max"]["source"] == "default" and rows["eager.max"]["unit"] == "B"'
"$railmux" --version | grep -q '^railmux [0-9]' || fail "no version"
echo "all good"
