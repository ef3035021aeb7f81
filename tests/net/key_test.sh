#!/usr/bin/env bash
# The job's key stands in no command line, log, report, trace or file, whatever is switched on; and who shows it is told so.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

key=k$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
# (grep reads the key from a file: it must not stand in the command line of this test's own grep.)
(umask 077 && printf '%s\n' "$key" >"$work/.key")
nowhere() { ! grep -qrFf "$work/.key" "$@" 2>/dev/null || fail "the key is in $*"; }
no_command_line() {
    local lines
    lines=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' || true)
    [[ $lines != *"$key"* ]] || fail "the key is in a command line"
}

mkdir "$work/all"
export RAILMUX_JOB_KEY=$key
for encryption in off on; do
    echo "two processes that met, with everything switched on that says something; tcp.encryption $encryption"
    talking=(RAILMUX_LOG=debug RAILMUX_REPORT=1 RAILMUX_EXPLAIN=3 "RAILMUX_TRACE=$work/all/trace-%p"
        RAILMUX_TCP_ENCRYPTION=$encryption)
    [ "$encryption" = off ] || talking+=(RAILMUX_TRANSPORTS=tcp,self)
    env "${talking[@]}" "$railmux" pingpong --listen 0 >"$work/all/server-$encryption.out" 2>"$work/all/server-$encryption" &
    listener=$!
    until_true "the listener is there" grep "listening on port" "$work/all/server-$encryption"
    port=$(sed -n 's/.*listening on port //p' "$work/all/server-$encryption")
    env "${talking[@]}" "$railmux" pingpong --connect "127.0.0.1:$port" --sizes 8 --iterations 2000 \
        >"$work/all/client-$encryption.out" 2>"$work/all/client-$encryption" &
    client=$!
    no_command_line
    wait "$client" || fail "the client"
    wait "$listener" || fail "the listener"
done
"$railmux" info --config >"$work/all/config"
"$railmux" info --config --json >"$work/all/config.json"
grep -q 'job.key *(set)' "$work/all/config" || fail "info does not say that there is a key"

echo "another key: the refusal shows neither"
env RAILMUX_LOG=debug "$railmux" pingpong --listen 0 >"$work/all/other.out" 2>"$work/all/other" &
listener=$!
until_true "the listener is there" grep "listening on port" "$work/all/other"
port=$(sed -n 's/.*listening on port //p' "$work/all/other")
! env RAILMUX_JOB_KEY=other "$railmux" pingpong --connect "127.0.0.1:$port" >"$work/all/stranger.out" 2>"$work/all/stranger" ||
    fail "another key opens the door"
grep -q "the job keys differ" "$work/all/stranger" || fail "it is not said that the keys differ"
end_listener
nowhere "$work/all" "$work/cache"
for file in /dev/shm/railmux-*; do [ ! -e "$file" ] || nowhere "$file"; done
unset RAILMUX_JOB_KEY

echo "a job made by railmux run: its processes show no key either"
# shellcheck disable=SC2016 # for the shell of the job
timeout -k 9 $guard env RAILMUX_LOG=debug "$railmux" run --no-prefix -n 2 --hosts a,b --launch env sh -c '
    printf "%s\n" "$RAILMUX_JOB_KEY" | (umask 077; cat >"$1/.key")
    cat /proc/[0-9]*/cmdline | tr "\0" "\n" >"$1/all/lines-$RAILMUX_JOB_RANK"
    exec "$0" pingpong --sizes 8 --iterations 100' "$railmux" "$work" >"$work/all/run" 2>"$work/all/run.err" || fail "under run"
[ "$(wc -c <"$work/.key")" -gt 20 ] || fail "there is no key"
nowhere "$work/all"

echo "a key on the command line, or in a file that others may read"
refuses 2 "other users can read" "$railmux" pingpong --listen 0 --set job.key=secret
echo "job.key = secret" >"$work/config"
chmod 644 "$work/config"
RAILMUX_CONFIG=$work/config "$railmux" info >"$work/out" 2>"$work/err"
says "$work/config has the job's key, and other users may read it; chmod 600 $work/config"
chmod 600 "$work/config"
RAILMUX_CONFIG=$work/config "$railmux" info >"$work/out" 2>"$work/err"
[ ! -s "$work/err" ] || fail "a warning about a private file"
echo "all good"
