#!/usr/bin/env bash
# What cannot work says at once what it is and what to do: settings that name nothing, ports in use, other versions, keys.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# listener_says TEXT: the listener says so in one line, and goes on listening
listener_says() {
    until_true "the listener says '$1'" grep -F -- "$1" "$work/listener"
    kill -0 "$listener" || fail "the listener has ended"
    end_listener
}

echo "what selectors name and this host does not have"
refuses 1 'tcp.interfaces names nosuch0' env RAILMUX_TCP_INTERFACES=nosuch0 "$railmux" pingpong --listen 0
refuses 1 '(did you mean "127.0.0.1"?)' env RAILMUX_RAILS=127.0.0.7 "$railmux" info
refuses 1 'rails names tcp:l0, which this host does not have (did you mean "tcp:lo"?)' "$railmux" info --rails tcp:l0
refuses 1 'rails names nosuch0' "$railmux" pingpong --listen 0 --rails nosuch0
refuses 1 'rails names 203.0.113.1' env RAILMUX_RAILS=lo,203.0.113.1 "$railmux" bandwidth --listen 0
"$railmux" info --rails '^nosuch0,nosuch*' >/dev/null || fail "excludes and globs may name what is not there"

echo "malformed and unknown variables"
refuses 1 'RAILMUX_CONNECT_TIMEOUT: "5 parsecs" is not a time' env RAILMUX_CONNECT_TIMEOUT="5 parsecs" "$railmux" info
refuses 1 'RAILMUX_RAILS: ' env RAILMUX_RAILS=10.0.0.0/33 "$railmux" info
refuses 1 "tcp.congestion: no socket of this process may have 'nosuch'" env RAILMUX_TCP_CONGESTION=nosuch "$railmux" info
RAILMUX_POLICI=fixed "$railmux" info >"$work/out" 2>"$work/err" || fail "info with an unknown variable: status $?"
says 'unknown variable RAILMUX_POLICI is ignored (did you mean "RAILMUX_POLICY"?)'
"$railmux" info >"$work/out" 2>"$work/err" || fail "info: status $?"
[ ! -s "$work/err" ] || fail "a warning without a cause"

echo "ports in use"
listen pingpong
refuses 1 "port $port is in use" "$railmux" pingpong --listen "$port"
RAILMUX_TCP_PORTS=$port-$port RAILMUX_TCP_FAMILIES=ipv4 refuses 1 "every port of $port-$port is in use on 127.0.0.1" \
    "$railmux" pingpong --listen 0 --rails lo
end_listener

echo "nobody there, under a name or an address"
refuses 1 "no-such-host.invalid:5000: " "$railmux" pingpong --connect no-such-host.invalid:5000
refuses 1 "127.0.0.1:9 cannot be reached: Connection refused" "$railmux" pingpong --connect 127.0.0.1:9 \
    --set connect.patience=0s

echo "nobody there yet: what it waits for is said at once, and it is not in vain"
"$railmux" pingpong --connect "127.0.0.1:$port" --sizes 8 --iterations 10 >"$work/out" 2>"$work/err" &
client=$!
until_true "the client says what it waits for" \
    grep "127.0.0.1:$port: Connection refused; waiting up to 10 s for somebody to listen there" "$work/err"
"$railmux" pingpong --listen "$port" 2>"$work/listener" || fail "the listener"
wait $client || fail "the client"

echo "another job key is not taken for a network fault"
RAILMUX_JOB_KEY=right listen pingpong
RAILMUX_JOB_KEY=wrong refuses 1 "127.0.0.1:$port refused: the job keys differ" "$railmux" pingpong --connect "127.0.0.1:$port"
listener_says "the job keys differ; give both sides the same job.key (RAILMUX_JOB_KEY)"

echo "one side encrypts and the other does not, or there is no key"
export RAILMUX_JOB_KEY=key RAILMUX_TRANSPORTS=tcp RAILMUX_TCP_INTERFACES=lo
for encrypts in on off; do
    other=$([ $encrypts = on ] && echo off || echo on)
    RAILMUX_TCP_ENCRYPTION=$encrypts listen pingpong
    status=0
    RAILMUX_TCP_ENCRYPTION=$other timeout -k 9 "$soon" "$railmux" pingpong --connect "127.0.0.1:$port" >"$work/out" \
        2>"$work/err" || status=$?
    [ $status = 1 ] || fail "it ended with $status"
    on_says="it does not encrypt, this side does; set tcp.encryption (RAILMUX_TCP_ENCRYPTION) alike on both"
    off_says="it encrypts, this side does not; set tcp.encryption (RAILMUX_TCP_ENCRYPTION) alike on both"
    if [ $encrypts = on ]; then
        mentions "$off_says"
        listener_says "$on_says"
    else
        mentions "$on_says"
        listener_says "$off_says"
    fi
done
unset RAILMUX_JOB_KEY RAILMUX_TRANSPORTS RAILMUX_TCP_INTERFACES
refuses 1 "tcp.encryption is on, and there is no job key" env RAILMUX_TCP_ENCRYPTION=on "$railmux" pingpong --listen 0

# The version differs in one place at a time, as a release that changes just that would have it.
declare -A ours
for version in $("$net/stranger.py" versions); do ours[${version%=*}]=${version#*=}; done
for place in door:"it speaks version 99 of the railmux start-up protocol, this is version ${ours[door]}" \
    contact:"it speaks wire version 99, this is version ${ours[contact]}" \
    stream:"it speaks version 99 of the railmux stream, this is version ${ours[stream]}" \
    hello:"it speaks wire version 99, this is version ${ours[hello]}"; do
    part=${place%%:*}
    text=${place#*:}
    echo "a peer of another version ($part)"
    listen pingpong
    timeout -k 9 $guard "$net/stranger.py" client "127.0.0.1:$port" "--$part" 99 >"$work/stranger" || fail "it was not told why"
    listener_says "$text; use one release of railmux on both sides"

    timeout -k 9 $guard "$net/stranger.py" server "--$part" 99 >"$work/stranger-$part" &
    until_true "a stranger" grep . "$work/stranger-$part"
    # Waiting does not mend it: long before connect.patience is over.
    status=0
    timeout -k 9 "$soon" "$railmux" pingpong --connect "127.0.0.1:$(cat "$work/stranger-$part")" >"$work/out" 2>"$work/err" ||
        status=$?
    [ $status = 1 ] || fail "it ended with $status"
    mentions "$text"
    mentions "use one release of railmux on both sides"
    ! grep -q unreachable "$work/err" || fail "it is taken for a network fault"
    wait $! || fail "the stranger saw something else"
done

echo "a rank of another version"
status=0
# shellcheck disable=SC2016 # for the shells of the job
timeout -k 9 "$soon" "$railmux" run -n 2 sh -c '[ "$RAILMUX_JOB_RANK" = 0 ] && exec "$0" pingpong; exec "$1" job --contact 99' \
    "$railmux" "$net/stranger.py" >"$work/out" 2>"$work/err" || status=$?
[ $status = 1 ] || fail "it ended with $status"
mentions "rank 1 is not a peer: it speaks wire version 99, this is version ${ours[contact]}; use one release of railmux"
mentions "send to rank 1 failed: wrong_version"
echo "all good"
