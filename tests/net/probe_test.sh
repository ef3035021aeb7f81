#!/usr/bin/env bash
# railmux probe between two hosts over two rails: the table, the object, the points and the picture agree.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none

echo "measures each rail, writes what it saw"
run_on "2 A,B" "$railmux" probe --grid 4 --rounds 2 --max-bytes 8K --json --points "$work/points" --svg "$work/picture" ||
    fail "probe"
python3 - "$work/out" "$work/points" "$work/picture" <<'PYTHON' || fail "the result"
import csv, json, sys, xml.etree.ElementTree
result = json.loads(open(sys.argv[1]).read())
assert list(result) == ["groups", "pairs", "results", "tool"] and result["tool"] == "probe", result
rails = [link["rail"] for link in result["results"]]
assert (rails := sorted(rails)) == ["tcp:rail0", "tcp:rail1"], rails
[pair] = result["pairs"]
assert sorted([pair["rail"], pair["added"]]) == rails and pair["rail_bps"] >= pair["added_bps"] > 0, pair
assert len(result["groups"]) == pair["shared"], result["groups"]
points = list(csv.DictReader(open(sys.argv[2])))
for link in result["results"]:
    assert link["messages"] > 0 and link["bytes"] > 0 and 0 < link["cpu_ns"] < link["took_ns"], link
    assert link["model"]["ranges"], link
    assert type(link["missing_bytes"]) is type(link["interrupted_bytes"]) is list, link
    assert link["before"] in ("guess", "probed", "verified", "shared", "told"), link
    mine = [p for p in points if p["rail"] == link["rail"]]
    assert {int(p["bytes"]) for p in mine} >= {1, 8192}, mine
    assert all(int(p["prtt_ns"]) > 0 for p in mine if p["interrupted"] == "0"), mine
xml.etree.ElementTree.parse(sys.argv[3])
PYTHON

echo "a table for people, of the selected rail"
run_on "2 A,B" "$railmux" probe --grid 2 --train 4 --rounds 1 --max-bytes 1K --rails tcp:rail1 --points "$work/points" ||
    fail "probe --rails"
grep -q '^tcp:rail1 ' "$work/out" || fail "no row for rail1"
! grep -q '^tcp:rail0 ' "$work/out" || fail "a row for rail0"
! grep -q ' adds ' "$work/out" || fail "a pair of one rail"
[ "$(tail -n +2 "$work/points" | cut -d , -f 2 | sort -n | tail -n 1)" = 4 ] || fail "not trains of four"

echo "what cannot be written is said"
! run_on "2 A,B" "$railmux" probe --grid 2 --rounds 1 --max-bytes 64 --points /nonexistent/points || fail "wrote it"
grep -q '/nonexistent/points cannot be written' "$work/err" || fail "does not say so"

refuses 2 '--max-bytes: "8KB" is not a size' "$railmux" probe --listen 0 --max-bytes 8KB

echo "what was measured is there for later runs, and goes on demand"
# Where others take the processor all the time, hardly anything can be measured at the first attempt.
both_known() { "$railmux" models | grep -q ' tcp:rail0 to ' && "$railmux" models | grep -q ' tcp:rail1 to '; }
for ((attempt = 0; attempt < 20; ++attempt)); do
    ! both_known || break
    run_on "2 A,B" "$railmux" probe --grid 2 --rounds 10 --max-bytes 1K || fail "probe again"
done
both_known || fail "no models of both rails"
"$railmux" info >"$work/info"
grep -qF "models of earlier runs: $("$railmux" models --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["models"]))') in $work/cache/railmux" "$work/info" ||
    fail "info does not know them"
! on A env XDG_CACHE_HOME="$work/other" "$railmux" models | grep -q ' tcp:rail' || fail "models in an empty folder"
sed -i s/loggp/LOGGP/ "$work"/cache/railmux/*.model
run_on "2 A,B" "$railmux" pingpong --sizes 8 --iterations 10 || fail "with damaged models"
mentions "$work/cache/railmux/"
mentions "it is damaged, or no model at all; it is not used, and the next measurement of this link replaces it"
"$railmux" models --clear 2>"$work/err" || fail "models --clear"
mentions "removed from $work/cache/railmux"
! "$railmux" models | grep -q ' tcp:rail' || fail "models left"
RAILMUX_PROBE_STORE=relative refuses 1 'probe.store: "relative" is not an absolute path' "$railmux" models
