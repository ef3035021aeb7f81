#!/usr/bin/env bash
# railmux probe between two hosts over two rails: the table, the object, the points and the picture agree.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none

echo "measures each rail, writes what it saw"
run_on "2 A,B" "$railmux" probe --sizes 4 --rounds 2 --max-bytes 8192 --json --csv "$work/points" --svg "$work/picture" ||
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
    assert link["messages"] > 0 and link["bytes"] > 0 and link["took_ns"] > 0, link
    assert link["model"]["ranges"], link
    mine = [p for p in points if p["rail"] == link["rail"]]
    assert {int(p["bytes"]) for p in mine} >= {1, 8192}, mine
    assert all(int(p["prtt_ns"]) > 0 for p in mine if p["interrupted"] == "0"), mine
xml.etree.ElementTree.parse(sys.argv[3])
PYTHON

echo "a table for people, of the selected rail"
run_on "2 A,B" "$railmux" probe --sizes 2 --rounds 1 --max-bytes 1024 --rails tcp:rail1 || fail "probe --rails"
grep -q '^tcp:rail1 ' "$work/out" || fail "no row for rail1"
! grep -q '^tcp:rail0 ' "$work/out" || fail "a row for rail0"
! grep -q ' adds ' "$work/out" || fail "a pair of one rail"

echo "what cannot be written is said"
! run_on "2 A,B" "$railmux" probe --sizes 2 --rounds 1 --max-bytes 64 --csv /nonexistent/points || fail "wrote it"
grep -q '/nonexistent/points cannot be written' "$work/err" || fail "does not say so"
