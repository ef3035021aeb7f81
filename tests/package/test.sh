#!/usr/bin/env bash
# The package as its users meet it: installed and found by CMake and by pkg-config, and as a subdirectory (of which only
# the user's own file is compiled: the library it would link is the one that stands in this build already).
#   test.sh SOURCE BUILD COMPILER
set -euo pipefail
source=$1 build=$2 compiler=$3
export CXX=$compiler CMAKE_GENERATOR=Ninja
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache  # nothing of the user's is touched
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "FAILED: $*" >&2; exit 1; }; }

quietly cmake --install "$build" --prefix "$work/prefix"
cp -r "$source/tests/package/consumer" "$work/consumer"

echo "find_package:"
quietly cmake -S "$work/consumer" -B "$work/found" -DCMAKE_PREFIX_PATH="$work/prefix" -DRAILMUX_SOURCE=
quietly cmake --build "$work/found"
"$work/found/consumer"

if ! grep -q '^RAILMUX_HELP2MAN:.*NOTFOUND' "$build/CMakeCache.txt"; then
    echo "manual pages:"
    commands=$("$work/prefix/bin/railmux" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/-\1/p')
    [ "$(wc -w <<<"$commands")" -gt 10 ]
    for command in '' $commands; do
        page=$(dirname "$(find "$work/prefix" -name railmux.1)")/railmux$command.1
        if ! grep -q "^railmux$command .- ." "$page" || ! grep -q '^.SH OPTIONS' "$page"; then
            echo "FAILED: no good $page" >&2
            exit 1
        fi
    done
fi

echo "pkg-config:"
pc=$(find "$work/prefix" -name pkgconfig -type d)
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs --static railmux)
# shellcheck disable=SC2086  # flags are words
quietly "$compiler" -std=c++20 "$work/consumer/main.cpp" -o "$work/by_pkg_config" $flags
LD_LIBRARY_PATH=$(dirname "$pc") "$work/by_pkg_config"

echo "add_subdirectory:"
quietly cmake -S "$work/consumer" -B "$work/sub" -DRAILMUX_SOURCE="$source"
quietly cmake --build "$work/sub" --target CMakeFiles/consumer.dir/main.cpp.o

if grep -rnE '# *include *[<"](boost|spdlog|fmt|openssl|infiniband|rdma)/' "$work/prefix/include"; then
    echo "FAILED: an installed header shows a private dependency" >&2
    exit 1
fi
