#!/usr/bin/env bash
# The package as its users meet it: installed and found by CMake and by pkg-config, and as a subdirectory (configured only:
# what it would build is what stands in this build already).
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cp -r "$source/tests/package/consumer" "$work/consumer"

cmake -S "$work/consumer" -B "$work/found" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/found" >/dev/null
"$work/found/consumer"

pc=$(find "$work/prefix" -name pkgconfig -type d)
# shellcheck disable=SC2046  # flags are words
PKG_CONFIG_PATH=$pc g++ -std=c++20 "$work/consumer/main.cpp" -o "$work/by_pkg_config" \
    $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs --static railmux)
"$work/by_pkg_config"

cmake -S "$work/consumer" -B "$work/sub" -DRAILMUX_SOURCE="$source" >/dev/null
if grep -rlE '(boost|spdlog|fmt)/' "$work/prefix/include"; then
    echo "an installed header shows a private dependency" >&2
    exit 1
fi
