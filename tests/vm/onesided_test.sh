#!/usr/bin/env bash
# Tests of tests/engine over soft-RoCE: messages, one-sided operations and what is refused of them; and one-sided operations of
# three contexts, against what they must have done, over verbs rails, and over verbs and tcp rails together, each of which
# carries bytes. Emulated machines are slow, so of the last there are fewer than in tests/engine:
#
#   [RAILMUX_TEST_OPERATIONS=3000] tests/vm/onesided_test.sh build/release
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

operations=${RAILMUX_TEST_OPERATIONS:-3000}
[ -x "$build/tests/engine" ] || fail "$build has no tests/engine"

cat >"$work/inside" <<'INSIDE'
set -euo pipefail
build=$1
export XDG_CACHE_HOME=/tmp/no-models RAILMUX_LOG=warning RAILMUX_TEST_OPERATIONS=$2
cd /tmp
# over RAILS RAIL...: each of RAIL... (a beginning of a name) carried bytes
over() {
    echo "over $1"
    RAILMUX_TEST_RAILS=$1 "$build/tests/engine" "one-sided: three contexts*" | tee out
    local rail
    for rail in "${@:2}"; do grep -q "^one-sided over $rail.*: [1-9]" out || exit 10; done
}
# Those that do not care which rails there are, but have these
tests=$(printf '%s*,' 'messages of' 'tags' 'a message longer' gather probe callbacks wait_any 'one-sided: puts' \
    'one-sided: gather' 'one-sided: atomics' 'one-sided: a peer that leaves' 'one-sided: a key' 'one-sided: a region' \
    'one-sided: a flush' 'one-sided: the' 'one-sided: what' 'one-sided: hostile' 'one-sided: errors' 'one-sided: memory')
RAILMUX_TEST_RAILS='verbs:*' "$build/tests/engine" "${tests%,}" || exit 11
RAILMUX_TEST_RAILS='verbs:rxe0a:1,verbs:rxe1a:1' "$build/tests/engine" 'messages match*' || exit 12  # counts on two
over 'self,verbs:*' verbs:rxe0 verbs:rxe1
over 'verbs:rxe0*,tcp:*' verbs:rxe0 tcp:
INSIDE
"$vm" run --timeout $((900 + operations / 100)) -- bash "$work/inside" "$build" "$operations" >"$work/out" 2>"$work/err" ||
    fail "status $?"
grep '^one-sided over' "$work/out"
echo "ok"
