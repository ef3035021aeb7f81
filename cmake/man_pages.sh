#!/usr/bin/env bash
# man_pages.sh COMMAND VERSION HELP2MAN FOLDER: railmux.1 and railmux-SUBCOMMAND.1, of what they say for --help. railmux.1 is
# written last: it stands for all of them. Examples that follow each other have a line each.
set -euo pipefail
command=$1 version=$2 help2man=$3 folder=$4
mkdir -p "$folder"
rm -f "$folder"/*.1
cd "$(dirname "$command")"  # help2man hands the command to a shell
command=./$(basename "$command")
help=$("$command" --help)
subcommands=$(sed -n '/^Subcommands:/I,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$help")
[ -n "$subcommands" ] || { echo "$1 --help names no subcommands" >&2; exit 1; }

# page NAME DESCRIPTION SEE_ALSO [SUBCOMMAND]
page() {
    printf '[SEE ALSO]\n%s\n' "$3" >"$folder/see_also"
    "$help2man" --no-info --version-string "$version" --name "$2" --source railmux --manual railmux \
        --include "$folder/see_also" "$command${4:+ $4}" |
        sed -e "s/^\.TH RAILMUX /.TH $(echo "$1" | tr '[:lower:]' '[:upper:]') /" \
            -e "s/^railmux${4:+ $4} \\\\-/$1 \\\\-/" |
        awk '{ example = /^(railmux [a-z]|host\\-[a-z]\$)/; if (example && before) print ".br"; before = example; print }' \
            >"$folder/new"
    rm "$folder/see_also"
    mv "$folder/new" "$folder/$1.1"
}

all=
for subcommand in $subcommands; do
    what=$(sed -n "/^Subcommands:/I,/^\$/s/^  $subcommand  *//p" <<<"$help")
    page "railmux-$subcommand" "$what" ".BR railmux (1)" "$subcommand"
    all="$all${all:+,
}.BR railmux-$subcommand (1)"
done
page railmux "messages over every network between two processes at once" "$all"
