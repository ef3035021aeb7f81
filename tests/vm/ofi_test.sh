#!/usr/bin/env bash
# The contract suite over libfabric's verbs provider, on soft-RoCE. Not whole jobs: rxm 1.17 crashes in its own code now and
# then when the process at the other end leaves (docs/ofi.md).
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# What libfabric 1.17 needs here (docs/ofi.md): completion queues that soft-RoCE can have, and no segmentation.
export FI_UNIVERSE_SIZE=16 FI_OFI_RXM_BUFFER_SIZE=16384 FI_OFI_RXM_SAR_LIMIT=16384

cat >"$work/inside" <<'INSIDE'
set -euo pipefail
build=$1
cd /tmp
RAILMUX_OFI_PROVIDERS='verbs;ofi_rxm' "$build/src/tools/railmux" info >info
grep -q '^ofi:verbs;ofi_rxm:rxe0a  *usable' info || {
    grep -q '^ofi' info || { echo "SKIPPED: built without libfabric"; exit 77; }
    cat info
    exit 10
}
"$build/tests/contract" -c 'ofi verbs;ofi_rxm:rxe0a' | tee ran || exit 11
grep -qE '^All tests passed \([1-9]' ran || exit 12  # Catch is content with a section that there is not
INSIDE
status=0
"$vm" run --timeout 800 --memory 2048 -- bash "$work/inside" "$build" >"$work/out" 2>"$work/err" || status=$?
[ $status != 77 ] || { tail -n 1 "$work/out"; exit 77; }
[ $status = 0 ] || fail "status $status"
echo "ok"
