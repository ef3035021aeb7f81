#!/usr/bin/env bash
# Every header compiles alone. That of a source file which includes it first is shown to by builds that compile file by file
# (debug, coverage; scripts/tidy, which nothing runs by itself): release compiles each layer as one, and to compile all headers
# here takes four minutes.
set -euo pipefail
compiler=$1 source=$2 build=$3
cd "$source"

shown_by_build() {
    local unit=${1%.hpp}.cpp
    [ -f "$unit" ] && [ "$(grep -m 1 '^#include' "$unit")" = "#include \"${1#src/}\"" ]
}

find include src -name '*.hpp' | sort | while read -r header; do
    shown_by_build "$header" || echo "$header"
done | xargs -P "$(nproc)" -I{} \
    "$compiler" -std=c++20 -fsyntax-only -x c++ -include {} -Iinclude -Isrc -I"$build/include" /dev/null
