#!/usr/bin/env bash
# scripts/vm: the command's output and status come back, the time limit holds, mistakes get a text that helps.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# refuses TEXT ARGUMENT...: ends at once with that text
refuses() {
    local text=$1
    shift
    ! "$vm" "$@" >"$work/out" 2>"$work/err" || fail "scripts/vm $* went well"
    grep -qF -- "$text" "$work/err" || fail "scripts/vm $*: no '$text'"
}

"$vm" --help | grep -q '^Usage: scripts/vm run' || fail "no help"
refuses "unknown command 'start'" start
refuses "unknown option '--fast'" run --fast true
refuses "--timeout is a number of seconds, not 'x'" run --timeout x true
refuses "run needs a command" run
refuses "pair needs two commands" pair true

status=0
SAID='by the caller' "$vm" run --timeout 300 -- bash -c '
    echo "$SAID in $PWD"
    echo "to standard error" >&2
    rdma link
    cmp "$0" "$1" || exit 1
    touch /etc/of-the-machine
    exit 3' "$0" "$(readlink -f "$0")" >"$work/out" 2>"$work/err" || status=$?
[ $status = 3 ] || fail "the status is $status, not 3"
grep -qxF "by the caller in $PWD" "$work/out" || fail "environment, folder or output got lost"
grep -qxF "to standard error" "$work/err" || fail "standard error got lost"
[ "$(grep -c 'link rxe[01][ab]/1 state ACTIVE' "$work/out")" = 4 ] || fail "not four ends of rails"
[ ! -e /etc/of-the-machine ] || fail "the machine wrote to this host"

status=0
"$vm" run --timeout 3 sleep 1000 >"$work/out" 2>"$work/err" || status=$?
[ $status = 124 ] || fail "beyond the limit the status is $status, not 124"
grep -qF "not over within 3 s" "$work/err" || fail "the limit is not said"
echo "ok"
