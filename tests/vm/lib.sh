# Shared by the tests of this folder, which run in machines of scripts/vm. Sourced, not run. Each is called with the build
# folder: tests/vm/verbs_test.sh build/release
# shellcheck shell=bash
set -euo pipefail
build=${1:?"call it with the build folder, e.g. $0 build/release"}
# shellcheck disable=SC2034  # used by the tests
build=$(readlink -f "$build")
# shellcheck disable=SC2034
vm=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../scripts/vm
vm=$(readlink -f "$vm")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    tail -n 60 "$work"/* 2>/dev/null || true
    exit 1
}

if [ "$(uname -m)" != x86_64 ] || ! command -v qemu-system-x86_64 >/dev/null; then
    echo "SKIPPED: no qemu for x86_64 machines here; scripts/deps installs it"
    exit 77
fi
