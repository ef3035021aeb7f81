#!/usr/bin/env bash
# Decisions explained, recorded, shown and replayed between two hosts over two uneven rails.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

echo "what cannot be read or obeyed says what and what to do"
echo "no trace at all" >"$work/text"
refuses 1 "byte 0: not a railmux trace" "$railmux" trace "$work/text"
refuses 1 "$work/none cannot be read" "$railmux" trace "$work/none"
refuses 2 "files is required" "$railmux" trace
refuses 1 "not a railmux trace" "$railmux" replay "$work/text"
RAILMUX_TRACE=/nonexistent/trace refuses 1 "/nonexistent/trace cannot be written" "$railmux" pingpong --listen 0
RAILMUX_TRACE=/tmp/%q refuses 1 'trace: "/tmp/%q" has a % that means nothing' "$railmux" pingpong --listen 0
rm "$work/text"

enter_rig 1gbit 100mbit
traces=$work/traces  # a failure shows the files of $work, for people
mkdir "$traces"

echo "a job records what it does, explains its first decisions, and reports predictions"
run_on "2 A,B" env RAILMUX_TRACE="$traces/trace" RAILMUX_EXPLAIN=5 RAILMUX_REPORT=1 \
    "$railmux" bandwidth --sizes 8,64K,1M --iterations 100 --json || fail "bandwidth"
says "railmux[0]: decision " 5
says "railmux[0]: decision 5: "
says "railmux[0]: these were the 5 decisions to explain"
grep -q '^delivery *tcp:rail0 ' "$work/err" || fail "no predictions in the report"
mv "$work/out" "$work/bandwidth"

echo "trace: the table, the object and the timeline tell of the same frames"
"$railmux" trace "$traces/trace.0" "$traces/trace.1" >"$work/table" || fail "trace"
"$railmux" trace "$traces/trace.0" "$traces/trace.1" --json --chrome "$traces/timeline" >"$work/object" || fail "trace --json"
python3 - "$work" <<'PYTHON' || fail "the trace"
import json, sys
read = lambda name: open(f"{sys.argv[1]}/{name}").read()
result = json.loads(read("object"))
assert [t["policy"] for t in result["traces"]] == ["vft", "vft"], result
assert not any(t["cut"] for t in result["traces"]), result
rails = {r["rail"]: r for r in result["results"]}
assert list(rails)[-1] == "all" and set(rails) == {"tcp:rail0", "tcp:rail1", "all"}, rails
assert abs(rails["tcp:rail0"]["share"] + rails["tcp:rail1"]["share"] - 1) < 1e-6, rails
for rail in rails.values():
    assert 0 < rail["timed"] <= rail["frames"] and rail["regretted"] <= rail["compared"] <= rail["timed"], rail
    assert 0 <= rail["error_median"] <= rail["error_p90"], rail
# What the benchmark says it sent by each rail is among it.
sent = {}
for size in json.loads(read("bandwidth"))["results"]:
    for rail, carried in size["rails"].items():
        sent[rail] = sent.get(rail, 0) + carried
for rail, carried in sent.items():
    assert rails[rail]["bytes"] > carried, (rail, rails[rail], carried)
for line in read("table").splitlines()[3:]:
    cells = line.split()
    assert int(cells[1]) == rails[cells[0]]["frames"] and int(cells[2]) == rails[cells[0]]["bytes"], line
events = json.loads(read("traces/timeline"))["traceEvents"]
rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert {name for (pid, tid), name in rows.items() if pid == 0} >= {"tcp:rail0", "tcp:rail1"}, rows
frames = [e for e in events if e["ph"] in "Xi"]
assert len(frames) == rails["all"]["frames"], (len(frames), rails["all"])
assert all(e["args"]["sent_us"] <= e["ts"] + 0.01 and e.get("dur", 0) >= 0 for e in frames)
PYTHON

echo "replay: all policies on the same messages"
"$railmux" replay "$traces/trace.0" --json >"$work/object" || fail "replay"
"$railmux" replay "$traces/trace.0" --policies vft:same_size,vft --stages >"$work/table" || fail "replay --stages"
python3 - "$work" <<'PYTHON' || fail "the replay"
import json, sys
results = json.loads(open(f"{sys.argv[1]}/object").read())["results"]
assert [r["policy"] for r in results] == ["vft", "wfq", "weighted_round_robin", "round_robin", "fixed"], results
assert len({(r["messages"], r["bytes"]) for r in results}) == 1 and results[0]["messages"] > 300, results
assert results[0]["mean_ns"] <= 1.05 * min(r["mean_ns"] for r in results), results
assert len(open(f"{sys.argv[1]}/table").read().splitlines()) == 2 + 2 + 5
PYTHON
refuses 2 '--policies: ' "$railmux" replay "$traces/trace.0" --policies robin
for none in "" ,; do
    refuses 2 "--policies: unknown policy ''" "$railmux" replay "$traces/trace.0" --policies "$none"
done
refuses 2 'vft has no stage "x"' "$railmux" replay "$traces/trace.0" --policies vft:x

echo "a trace that was cut off is shown as far as it goes"
head -c $(($(stat -c %s "$traces/trace.0") - 5)) "$traces/trace.0" >"$traces/cut"
"$railmux" trace "$traces/cut" >"$work/table" 2>"$work/err" || fail "trace of a cut file"
says "ends within a record"

echo "explain: in a job, of any peer"
run_on "4 A:2,B:2" "$railmux" explain --peer 3 --sizes 8,4M --json || fail "explain"
python3 - "$work/out" <<'PYTHON' || fail "the explanation"
import json, sys
result = json.loads(open(sys.argv[1]).read())
assert result["peer"].startswith("rank 3") and result["policy"] == "vft", result
small, large = result["results"]
assert not small["rendezvous"] and large["rendezvous"], result
for told in small, large:
    assert {link["rail"] for link in told["links"]} == {"tcp:rail0", "tcp:rail1"}, told
    assert sum(link["share_bytes"] for link in told["links"]) == told["wire_bytes"], told
    assert told["choice"] in {link["rail"] for link in told["links"] if link["share_bytes"]} and told["reason"], told
PYTHON
run_on "2 A,B" "$railmux" explain --sizes 64K || fail "explain as a table"
grep -q '^\* tcp:rail' "$work/out" || fail "no choice is marked"
! run_on "2 A,B" "$railmux" explain --peer 2 || fail "explained a rank that there is not"
