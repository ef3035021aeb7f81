#!/usr/bin/env bash
# Patches that measurements and mutants are made by fit what they change: they are applied far more rarely than that changes.
set -euo pipefail
cd "$1"
good=true
for patch in benchmarks/*.patch tests/fuzz/mutants/*.patch; do
    git apply --check "$patch" || {
        echo "$patch does not apply any more: change it together with what it changes" >&2
        good=false
    }
done
$good
