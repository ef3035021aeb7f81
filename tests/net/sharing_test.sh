#!/usr/bin/env bash
# Rails that share an uplink are found and count as one; rails of their own do not. SHARING_RUNS=50 repeats what is measured,
# SHARING_RATE=1000 has the uplink, and each of the rails of their own, pass as many Mbit/s.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
rate=${SHARING_RATE:-200}
enter_rig none none --uplink "${rate}mbit"
runs=${SHARING_RUNS:-1}  # and once in words

# probe [OPTION...]: a brief one between A and B
probe() { run_on "2 A,B" "$railmux" probe --grid 2 --rounds 1 --max-bytes 1K "$@" || fail "probe"; }

# streams [OPTION...]: 64 KiB messages from A to B; prints MB/s; bytes by rail are in $work/out
streams() {
    run_on "2 A,B" "$railmux" bandwidth --sizes 64K --iterations 400 --json "$@" || fail "bandwidth $*"
    python3 -c 'import json; print(json.load(open("'"$work"'/out"))["results"][0]["MB_per_s"])'
}

# at_least A FACTOR B: whether A is FACTOR times B, or more
at_least() { python3 -c "import sys; sys.exit(not $1 >= $2 * $3)"; }

echo "two rails behind one uplink are found to share it, within a tenth of its capacity"
for _ in $(seq "$runs"); do
    probe --json
    python3 - "$work/out" "$rate" <<'PYTHON' || fail "the group"
import json, sys
result = json.loads(open(sys.argv[1]).read())
assert [pair["shared"] for pair in result["pairs"]] == [True], result["pairs"]
[group] = result["groups"]
assert sorted(group["rails"]) == ["tcp:rail0", "tcp:rail1"], group
assert 0.9 <= group["bps"] / (float(sys.argv[2]) * 1e6) <= 1.1, group
PYTHON
done

echo "and that is said in plain words"
probe
grep -qE '^# rail tcp:rail[01] adds [0-9]+ % to rail tcp:rail[01] at 1 MiB: they share a bottleneck of [0-9]+ Mbit/s$' \
    "$work/out" || fail "it is not"

echo "they count as one then: one carries everything, as fast as if it were alone"
for attempt in 1 2 3; do  # others use this machine, too
    alone=$(streams --rails tcp:rail0)
    both=$(streams --find-sharing)
    mentions "they share a bottleneck of"
    for rail in rail0 rail1; do [ -n "$(carried $rail)" ] || fail "nothing is said of $rail"; done
    least=$(printf '%s\n' "$(carried rail0)" "$(carried rail1)" | sort -n | head -1)
    # The spare one carries while the other is taken for lost.
    if ! grep -q "^railmux.* lost: " "$work/err"; then
        at_least $((400 * 65536)) 50 "$least" || fail "the spare one carried $least bytes"
        at_least "$both" 0.95 "$alone" && break
    fi
    [ "$attempt" -lt 3 ] || fail "$both MB/s over both, $alone over one; the spare one carried $least bytes"
done

echo "two rails of their own share nothing"
"$rig" --name "$RIG_NAME-own" up "${rate}mbit" "${rate}mbit"
RIG_NAME=$RIG_NAME-own
for _ in $(seq "$runs"); do
    probe --json
    python3 - "$work/out" <<'PYTHON' || fail "a group"
import json, sys
result = json.loads(open(sys.argv[1]).read())
assert [pair["shared"] for pair in result["pairs"]] == [False], result["pairs"]
assert result["groups"] == [], result["groups"]
PYTHON
done
probe
grep -q '% to rail tcp:rail[01] at 1 MiB: they share nothing that counts$' "$work/out" || fail "it is not said"
streams --find-sharing >/dev/null
for rail in rail0 rail1; do
    at_least "$(carried $rail)" 0.3 $((400 * 65536)) || fail "$rail carried only $(carried $rail) bytes"
done
"$rig" --name "$RIG_NAME" down
