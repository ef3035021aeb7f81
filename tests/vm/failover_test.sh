#!/usr/bin/env bash
# `ip link set rail1 down` at random moments of eager, read and written rendezvous, put and atomic traffic between two
# machines, over two verbs rails, and over a verbs and a tcp rail: every byte is right, and the rail is used again each time it
# is back. The same where it is its address that goes away, comes back, and becomes another one.
#
#   [RAILMUX_TEST_MOMENTS=50] [RAILMUX_TEST_SEED=N] tests/vm/failover_test.sh build/release
#
# RAILMUX_TEST_MOMENTS: for each of the two pairs of rails; each takes 2 to 4 s in emulated machines. With fewer than 10 all
# kinds of traffic go on at once, so that each moment hits all of them; otherwise one after the other.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

moments=${RAILMUX_TEST_MOMENTS:-50}
seed=${RAILMUX_TEST_SEED:-$RANDOM}
railmux=$build/src/tools/railmux
[ -x "$railmux" ] || fail "$build has no src/tools/railmux"
echo "RAILMUX_TEST_MOMENTS=$moments RAILMUX_TEST_SEED=$seed"

# In both machines. Machine B troubles its own rail1; of that A hears from B only, if at all.
cat >"$work/inside" <<'INSIDE'
set -euo pipefail
machine=$1 railmux=$2 moments=$3 seed=$4
export XDG_CACHE_HOME=/tmp/no-models RAILMUX_LOG=debug RAILMUX_POLICY=round_robin
cd /tmp
RANDOM=$seed
port=5000
soak=
problem() {
    echo "PROBLEM: $*"
    if [ -n "$soak" ] && kill -0 "$soak" 2>/dev/null; then
        # Where its threads are; and the watchdogs of both ends tell what they wait for.
        grep -H . /proc/"$(cat pid)"/task/*/{wchan,stack} 2>/dev/null || true
        timeout 90 tail --pid="$soak" -f /dev/null || true
    fi
    grep -v ' debug: ' err | tail -c 4000
    exit 1
}
pause() { # LEAST MOST: so many milliseconds, as $RANDOM says
    local ms=$(($1 + RANDOM % ($2 - $1 + 1)))
    sleep "$((ms / 1000)).$(printf '%03d' $((ms % 1000)))"
}
# used NAME MOMENTS: after so many moments, each of which has cost its link, bytes come and go by rail1 again: it has a link,
# says the soak, and 20 more packets of verbs go then (some go while it is connected, too), within half a minute
packets() { cat /sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts; }
linked() { # MOMENTS
    awk -v moments="$1" '/rail verbs:rxe1:1: link .* to [^ ]+ lost: / { lost++; up = 0 }
                         /rail verbs:rxe1:1: link .* to [^ ]+ up$/ { up = 1 }
                         END { exit !(up && lost >= moments) }' err
}
used() {
    local i enough=
    for ((i = 0; i < 600; i++)); do
        if ! linked "$2"; then
            enough=
        elif [ -z "$enough" ]; then
            enough=$(($(packets) + 20))
        elif [ "$(packets)" -ge $enough ]; then
            return 0
        fi
        kill -0 "$soak" 2>/dev/null || problem "$1: the soak has ended"
        sleep 0.05
    done
    problem "$1: rail1 is not used"
}

# What is done to rail1, and undone
down() { ip link set rail1 down; }
up() { ip link set rail1 up; }
link() {
    down
    pause 50 800
    up
    # One that comes back is connected and measured anew; and that, too, can be cut short.
    ((RANDOM % 3 == 0)) || return 0
    pause 0 400
    down
    pause 0 400
    up
}
losses() { grep -c 'rail verbs:rxe1:1: link .* lost: ' err || true; }
address() { # to .2 and .102 in turns, or back to the same
    local now next before i
    now=$(ip -4 -o address show dev rail1 | sed 's/.* inet \([0-9.]*\).*/\1/')
    next=10.77.1.2
    if ((RANDOM % 2)) && [ "$now" = 10.77.1.2 ]; then next=10.77.1.102; fi
    before=$(losses)
    ip address del "$now/24" dev rail1
    pause 50 800
    # The kernel tells that addresses have changed, and not which: of one that is back before the process looks nobody hears.
    for ((i = 0; i < 600; i++)); do
        [ "$(losses)" = "$before" ] || break
        sleep 0.05
    done
    ip address add "$next/24" dev rail1
}

# soak OPTION...: in the background, as $soak; the ends change places each time
soak() {
    local where=(--listen "$port")
    if [ $((port % 2)) = "$([ "$machine" = A ] && echo 0 || echo 1)" ]; then
        where=(--connect "10.77.0.$([ "$machine" = A ] && echo 2 || echo 1):$port")
    fi
    (
        while true; do
            "$railmux" soak "${where[@]}" --seed $((seed + port)) --minutes 10 --watchdog 60 --json "$@" >out 2>err &
            echo $! >pid
            status=0
            wait $! || status=$?
            # The other side does not listen yet: again.
            if [ $status = 0 ] || [ "${where[0]}" = --listen ] || grep -q 'soaking\|WRONG' err; then exit $status; fi
            sleep 0.2
        done
    ) &
    soak=$!
}

# trouble NAME HOW COUNT OPTION...: a soak with these options, during which HOW is done to rail1 so many times
trouble() {
    local name=$1 how=$2 count=$3 i status=0 begin=$SECONDS
    shift 3
    soak "$@"
    if [ "$machine" = B ]; then
        for ((i = 0; i < count; i++)); do
            used "$name, moment $i" $i
            pause 0 600
            $how
        done
        used "$name, the end" "$count"
        kill -INT "$(cat pid)"
    fi
    wait $soak || status=$?
    [ $status = 0 ] || problem "$name: the soak ended with $status"
    if [ -s out ]; then echo "SOAKED $count $((SECONDS - begin)) $name: $(tail -n 1 out)"; fi
    port=$((port + 1))
}

both='verbs:*' mixed='verbs:rxe1*,tcp:rail0'
if ((moments < 10)); then
    trouble "$both, all, read" link "$moments" --rails "$both" --set bulk.scheme=read
    trouble "$mixed, all, written" link "$moments" --rails "$mixed" --set bulk.scheme=write
else
    # share I: how many of the moments are for kind I of the five
    share() { echo $(((moments + 4 - $1) / 5)); }
    for rails in "$both" "$mixed"; do
        trouble "$rails, eager" link "$(share 0)" --rails "$rails" --operations messages --max-bytes 8K
        trouble "$rails, read" link "$(share 1)" --rails "$rails" --operations messages --set bulk.scheme=read
        trouble "$rails, written" link "$(share 2)" --rails "$rails" --operations messages --set bulk.scheme=write
        trouble "$rails, put" link "$(share 3)" --rails "$rails" --operations puts,notified --max-bytes 256K
        trouble "$rails, atomic" link "$(share 4)" --rails "$rails" --operations atomics
    done
fi
trouble "$both, its address" address $((2 + moments / 10)) --rails "$both" --max-bytes 64K
INSIDE
limit=$((900 + 25 * moments))
"$vm" pair --timeout $limit --console "$work/kernel" "bash $work/inside A $railmux $moments $seed" \
    "bash $work/inside B $railmux $moments $seed" >"$work/out" 2>"$work/err" || fail "status $?"
# What the soaks report is looked at here: starting python takes an emulated machine seconds.
python3 - "$work/out" <<'CHECK' || fail "see above"
import json, re, sys
said = open(sys.argv[1]).read()
soaks = re.findall(r"^[AB]: SOAKED (\d+) (\d+) (.*?): ({.*})$", said, re.MULTILINE)
if not soaks or len(soaks) != said.count(": SOAKED "):
    sys.exit("a soak has not reported")
for count, took, name, report in soaks:
    found = json.loads(report)
    lost = {rail["rail"]: rail["links_lost"] for rail in found["rails"]}
    bytes = {rail["rail"]: rail["sent_bytes"] for rail in found["rails"]}
    checked = sum(one["checked"] for one in found["results"])
    print(f"{name}: {checked} operations were right; lost links {lost}, bytes {bytes}; {took} s")
    if found["faults"] or not checked:
        sys.exit(found["problem"] or "nothing was done")
    for rail, links in lost.items():
        # A machine that stands still for a second, because others need its processor, may cost a link of the other rail, too.
        if "rxe1" in rail and links < int(count):
            sys.exit(f"{rail} lost {links} links")
    if len(lost) != 2 or not all(bytes.values()):
        sys.exit("one rail was not used")
CHECK
echo "ok"
