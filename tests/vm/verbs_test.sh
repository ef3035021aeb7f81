#!/usr/bin/env bash
# The verbs transport over soft-RoCE: the contract suite, messages between two processes over all ports, and messages over
# verbs and tcp together; and messages between two machines.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

for program in src/tools/railmux tests/contract tests/job_remapped; do
    [ -x "$build/$program" ] || fail "$build has no $program"
done

# In the machine. Its figures mean nothing, but what they count does.
cat >"$work/inside" <<'INSIDE'
set -euo pipefail
build=$1
railmux=$build/src/tools/railmux
export XDG_CACHE_HOME=/tmp/no-models RAILMUX_LOG=warning
cd /tmp
"$railmux" info >info
for end in rxe0a rxe0b rxe1a rxe1b; do
    grep -q "^verbs:$end:1  *usable .*GID 1: RoCE v2 over IPv4" info || { cat info; exit 10; }
done
"$build/tests/contract" -c verbs || exit 11
# between RAILS RAIL...: messages between two processes; each of RAIL... (a beginning of a name) carried bytes
between() {
    timeout -k 9 200 "$railmux" run -n 2 --no-prefix "$railmux" pingpong --rails "$1" --policy round_robin \
        --sizes 8,4096,1M --iterations 6 --json >run || return 1
    cat run
    local rail  # no python: starting it takes an emulated machine seconds
    for rail in "${@:2}"; do
        grep -q '"rails":{[^}]*"'"$rail"'[^"]*":[1-9]' run || { echo "nothing went over $rail"; return 1; }
    done
}
between 'verbs:*' verbs:rxe0 verbs:rxe1 || exit 12
between 'verbs:rxe0*,tcp:lo' verbs:rxe0 tcp:lo || exit 13
# copies HOW [SCHEME [INLINED]]: whether large messages are copied at either side when verbs.bulk is HOW
copies() {
    RAILMUX_REPORT=1 timeout -k 9 200 "$railmux" run -n 2 --no-prefix "$railmux" pingpong --rails 'verbs:*' \
        --set "verbs.bulk=$1" --set "bulk.scheme=${2:-auto}" --set "bulk.inlined=${3:-auto}" \
        --sizes 1M --iterations 2 --warm-up 1 >run 2>report || return 2
    grep -q '^total  *[1-9]' report || { cat report; return 2; }
    grep -q 'copied into registered memory' report
}
copies copy || exit 14
copies copy read || exit 14
for scheme in write read; do
    status=0
    copies register $scheme || status=$?
    [ $status = 1 ] || { cat report; exit 15; }
    copies register $scheme always || exit 16  # what goes ahead is
done
# remapped HOW SCHEME: memory that is unmapped and mapped anew, registered and taken back, shared with a child: never a
# registration of old pages
remapped() {
    RAILMUX_REPORT=1 RAILMUX_RAILS='verbs:*' RAILMUX_VERBS_BULK=$1 RAILMUX_BULK_SCHEME=$2 \
        timeout -k 9 200 "$railmux" run -n 2 --no-prefix "$build/tests/job_remapped" 2>report || { cat report; return 1; }
}
remapped register write || exit 17
grep -q 'and rank 1.* [1-9][0-9]* times one was there already' report || exit 18
remapped register read || exit 19
grep -q 'and rank 0.* [1-9][0-9]* times one was there already' report || exit 20
remapped copy read || exit 21
INSIDE
"$vm" run --timeout 900 -- bash "$work/inside" "$build" >"$work/out" 2>"$work/err" || fail "status $?"

# Two machines, as two hosts; the one that connects tries until the other listens.
pingpong="timeout -k 9 150 $build/src/tools/railmux pingpong --rails 'verbs:*' --policy round_robin"
models='export XDG_CACHE_HOME=/tmp/no-models; cd /tmp'
"$vm" pair --timeout 900 "$models; $pingpong --listen 5000" \
    "$models; until $pingpong --connect 10.77.0.1:5000 --sizes 8,256K --iterations 20; do sleep 0.2; done" \
    >"$work/out" 2>"$work/err" || fail "two machines: status $?"
grep -q 'verbs:rxe0:1 [1-9].*verbs:rxe1:1 [1-9]' "$work/out" || fail "two machines: not over both rails"
echo "ok"
