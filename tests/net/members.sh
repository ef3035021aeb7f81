# What the tests of changing jobs share: processes of job_members (tests/jobs/members.cpp) and what they have written into
# $folder. Sourced, not run.
# shellcheck shell=bash
folder=
declare -A newest=()  # process of each rank, as of the last call of all_know

# process_of RANK: the newest process of a rank; empty if there is none
process_of() { find "$folder" -name "$1.*" -printf '%T@ %f\n' | sort -n | tail -1 | sed 's/.*\.//'; }

# replaced RANK OLD: whether there is a newer process of the rank than OLD
replaced() { [ "$(process_of "$1")" != "$2" ]; }

# all_know RANK...: whether the newest process of each of these ranks has exchanged messages with that of each other one
all_know() {
    local one other name heard
    newest=()
    while read -r _ name; do newest[${name%.*}]=${name#*.}; done < <(find "$folder" -name '*.*' -printf '%T@ %f\n' | sort -n)
    for one in "$@"; do
        heard=$(cat "$folder/$one.${newest[$one]:-none}")
        for other in "$@"; do
            [ "$one" = "$other" ] || [[ $'\n'$heard$'\n' == *$'\n'"$other ${newest[$other]:-none}"$'\n'* ]] || return 1
        done
    done
}
