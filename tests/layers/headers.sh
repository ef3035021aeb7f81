#!/usr/bin/env bash
# Every header compiles alone.
set -euo pipefail
compiler=$1 source=$2 build=$3
cd "$source"
find include src -name '*.hpp' | sort | xargs -P "$(nproc)" -I{} \
    "$compiler" -std=c++20 -fsyntax-only -x c++ -include {} -Iinclude -Isrc -I"$build/include" /dev/null
