#!/usr/bin/env bash
# Two processes over rails of libfabric alone, by three providers that need no hardware.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
# shellcheck source=tests/net/members.sh
. "$net/members.sh"

# info_says REGEX [OPTION...]: not through a pipe, which would break when grep has found it.
info_says() { timeout -k 9 $guard "$railmux" info --all "${@:2}" >"$work/info" && grep -qE "$1" "$work/info"; }

info_says '^ofi' || { echo "SKIPPED: built without libfabric"; exit 77; }

# usable NAME: whether the rail is, with the providers of RAILMUX_OFI_PROVIDERS
usable() { info_says "^$1 +usable"; }

echo "by default no provider is used whose hardware other rails have, and each says so"
for rail in "ofi:tcp;ofi_rxm:lo" ofi:shm "ofi:udp;ofi_rxd:lo"; do
    info_says "^$rail +off .*off by default: " || fail "$rail: no reason"
done
! info_says '^ofi[^ ]* +usable' --rails 'ofi:*' || fail "a rail is usable by default"
RAILMUX_OFI_PROVIDERS=shmm timeout -k 9 $guard "$railmux" info 2>"$work/unknown" && fail "an unknown provider passed"
grep -q 'did you mean "shm"' "$work/unknown" || fail "no hint: $(cat "$work/unknown")"
RAILMUX_OFI_PROVIDERS='all,tcp,^tcp;ofi_rxm:lo' usable "ofi:tcp;ofi_rxm:lo" && fail "an excluded domain is used"

echo "one that is not used keeps no other one off that has the same adapter"
if info_says '^ofi:net:lo '; then
    RAILMUX_OFI_PROVIDERS=all,net usable 'ofi:net;ofi_rxm:lo' && fail "both are used"
    export RAILMUX_OFI_PROVIDERS=all,net
    info_says '^ofi:net;ofi_rxm:lo +usable' --rails 'ofi:net;ofi_rxm:lo' || fail "$(grep ofi:net "$work/info")"
    unset RAILMUX_OFI_PROVIDERS
else
    echo "(not seen here: libfabric has no provider net)"
fi

echo "a provider that hangs or fails says so, and the others are used"
export FI_PROVIDER_PATH=$build/tests/providers
export RAILMUX_OFI_PROVIDERS='all,shm,troubled'
TROUBLED_PROVIDER=asked info_says '^ofi:troubled +off .*troubled takes too long: it hangs' ||
    fail "$(grep troubled "$work/info")"
grep -qE '^ofi:shm +usable' "$work/info" || fail "one that hangs takes others with it"

echo "what it has and cannot be a rail is off with the reason, and one without names is a device all the same"
for mode in 'throwing +off .*it fails: no good reason' \
    'narrow(;ofi_rxm)?:nowhere +off .*it sends no messages of [0-9]+ bytes, only of' \
    'wordy(;ofi_rxm)?:nowhere +off .*the name of its fabric has more than 64 bytes' 'nameless +usable'; do
    trouble=$(grep -o '^[a-z]*' <<<"$mode")
    TROUBLED_PROVIDER=$trouble info_says "^ofi:troubled${mode#"$trouble"}" || fail "$trouble: $(grep troubled "$work/info")"
done

for trouble in opened broken bursting; do
    TROUBLED_PROVIDER=$trouble timeout -k 9 $guard "$railmux" run -n 2 --no-prefix "$railmux" pingpong --rails 'ofi:*' \
        --sizes 8 --iterations 50 --json >"$work/result" 2>"$work/err" || fail "$trouble: no rail works"
    grep -q '"ofi:shm":' "$work/result" || fail "$trouble: nothing by the others"
    case $trouble in
        opened) grep -q 'opening ofi:troubled.* takes too long' "$work/err" || fail "nothing said of it" ;;
        bursting) grep -q 'opening ofi:troubled.* fails: no good reason' "$work/err" || fail "nothing said of it" ;;
        broken) grep -q 'provider troubled.*: fi_fabric failed: Input/output error' "$work/err" || fail "nothing said" ;;
    esac
done

for mode in "failing hybrid" "failing block" "erring hybrid" "deafened block"; do
    trouble=${mode% *} progress=${mode#* }
    echo "a provider that fails while it is used is opened anew, and its rail used again ($trouble, $progress)"
    case $trouble in
        failing | deafened) cause='its completion queue failed: Input/output error' ;;
        erring) cause='its completion queue has an error that the provider does not tell' ;;
    esac
    : >"$work/err"  # the job opens it some time; until then it says what the job before has said
    RAILMUX_OFI_PROVIDERS=troubled:lo TROUBLED_PROVIDER=$trouble TROUBLED_FILE=$work/fails RAILMUX_PROGRESS=$progress \
        timeout -k 9 $guard "$railmux" run -n 2 --no-prefix "$railmux" pingpong --rails 'ofi:*' --sizes 8 --iterations 20000 \
        --json --set log=debug >"$work/result" 2>"$work/err" &
    job=$!
    both_linked() { [ "$(grep -c 'link .* up$' "$work/err")" -ge 2 ]; }
    until_true "a link" both_linked
    touch "$work/fails"
    both_said() { [ "$(grep -c "rail ofi:troubled:lo$1" "$work/err")" -ge 2 ]; }
    until_true "both notice it" both_said " down: $cause"
    until_true "what is still broken is said" grep -q 'cannot be opened anew: .*fi_fabric failed.*; tried again' "$work/err"
    rm "$work/fails"
    if [ "$trouble" = deafened ]; then
        until_true "both say why it stays down" both_said ': opened anew, it does not have a descriptor'
        kill "$job"
        wait "$job" || true
        continue
    fi
    until_true "both are up again" both_said ' is up again after'
    wait "$job" || fail "not everything arrived"
    grep -q '"ofi:troubled:lo": *[0-9]' "$work/result" || fail "nothing was carried"
done

echo "a put whose header was damaged on the way ends its link, and what it carried arrives all the same"
RAILMUX_OFI_PROVIDERS=troubled:lo TROUBLED_PROVIDER=damaging timeout -k 9 $guard "$railmux" run -n 2 --no-prefix \
    "$railmux" pingpong --rails 'ofi:*' --sizes 1M --iterations 20 --json --set log=debug >"$work/result" 2>"$work/err" ||
    fail "it did not arrive"
grep -q 'lost: corrupted data (the checksum of the header of a put is wrong)' "$work/err" || fail "nobody noticed"
grep -q '"ofi:troubled:lo": *[0-9]' "$work/result" || fail "nothing was carried"

echo "a message that the provider could not send ends its link, and arrives all the same"
RAILMUX_OFI_PROVIDERS=troubled:lo TROUBLED_PROVIDER=losing timeout -k 9 $guard "$railmux" run -n 2 --no-prefix \
    "$railmux" pingpong --rails 'ofi:*' --sizes 64K --iterations 20 --json --set log=debug >"$work/result" 2>"$work/err" ||
    fail "it did not arrive"
grep -q 'lost: the provider could not send: Input/output error' "$work/err" || fail "nobody noticed"
grep -q '"ofi:troubled:lo": *[0-9]' "$work/result" || fail "nothing was carried"
unset FI_PROVIDER_PATH

for provider in "tcp;ofi_rxm:lo" shm "udp;ofi_rxd:lo"; do
    echo "$provider: ping-pong and bandwidth"
    export RAILMUX_OFI_PROVIDERS=$provider RAILMUX_RAILS='ofi:*'
    usable "ofi:$provider" || fail "ofi:$provider is not usable when it is named"
    listen pingpong --keep
    for options in "pingpong --sizes 0,8,16K,1M" "bandwidth --sizes 8,20K,1M --bidirectional"; do
        # To end what hangs, only: ofi_rxd, which has to be polled, takes 7 s alone and many times as long beside others.
        # shellcheck disable=SC2086 # the options are words
        timeout -k 9 $guard "$railmux" $options --connect "127.0.0.1:$port" --iterations 50 --json >"$work/result" ||
            fail "$provider: $options"
        python3 - "$work/result" "ofi:$provider" <<'PYTHON'
import json, sys
for result in json.load(open(sys.argv[1]))["results"]:
    assert list(result["rails"]) == [sys.argv[2]], result
    assert result["rails"][sys.argv[2]] >= 50 * result["bytes"], result
PYTHON
    done
    end_listener
done

echo "udp;ofi_rxd: of more messages than it has room for it forgets none"
export RAILMUX_OFI_PROVIDERS="udp;ofi_rxd:lo" RAILMUX_RAILS='ofi:*'
listen bandwidth --keep
timeout -k 9 $guard "$railmux" bandwidth --connect "127.0.0.1:$port" --sizes 8,512,3000 --window 4096 --bidirectional \
    >"$work/result" 2>"$work/err" || fail "they did not arrive"
! grep -H 'lost' "$work/err" || fail "a link was lost"
end_listener

unset RAILMUX_OFI_PROVIDERS RAILMUX_RAILS
for provider in "tcp;ofi_rxm:lo" "udp;ofi_rxd:lo"; do
    echo "$provider: tests of the engine"
    tests=$(printf '%s*,' 'messages of every' tags 'a message longer' gather callbacks wait_any 'one-sided: puts' \
        'one-sided: atomics')
    RAILMUX_TEST_PROVIDERS=all,$provider RAILMUX_TEST_RAILS='ofi:*' timeout -k 9 $guard "$build/tests/engine" "${tests%,}" \
        >"$work/engine" 2>&1 || fail "$provider"
    # Catch is content with no test at all.
    grep -qE '^All tests passed \([1-9][0-9]* assertions in ([3-9]|1[0-9]) test cases' "$work/engine" || fail "not all ran"
done

for provider in shm "udp;ofi_rxd:lo"; do  # two contexts of one process do not reach each other over shm
    echo "$provider: everything at once, checked"
    RAILMUX_OFI_PROVIDERS=$provider RAILMUX_RAILS='ofi:*' timeout -k 9 $guard "$railmux" run -n 2 --no-prefix "$railmux" soak \
        --minutes 0.03 --json >"$work/soak" 2>"$work/err" || fail "$provider: $(cat "$work/soak")"
    grep -q "\"ofi:$provider\"" "$work/soak" || fail "$provider carried nothing"
done

# kill_asleep PID: kills a process that sleeps. Whoever dies within shm (1.17) holds a lock for good, and whoever needs it next
# spins for as long (docs/ofi.md): what is tested here is what railmux can do about a death.
kill_asleep() {
    until_true "$1 sleeps" stopped_asleep "$1"
    kill -9 "$1"
}
stopped_asleep() {
    local call
    kill -STOP "$1" || return 1
    until grep -q '^State:.T' "/proc/$1/status"; do kill -0 "$1" || return 1; done
    read -r call _ <"/proc/$1/syscall"
    case $call in
        7 | 232 | 281 | 441 | 22 | 73) return 0 ;;  # poll and its like, on x86-64 and on arm64
    esac
    kill -CONT "$1"
    return 1
}

for provider in shm "udp;ofi_rxd:lo"; do
    echo "$provider: of two processes one is killed: the other is told soon, and goes on with the next"
    folder=$(mktemp -d -p "$work")
    RAILMUX_OFI_PROVIDERS=$provider RAILMUX_RAILS='ofi:*' RAILMUX_LINK_UNHEARD=2s timeout -k 9 $guard "$railmux" run \
        --no-prefix -n 2 --restart 1 "$build/tests/job_members" "$folder" 2>"$work/job" &
    job=$!
    until_true "both know each other" all_know 0 1
    victim=${newest[1]} survivor=${newest[0]}
    kill_asleep "$victim"
    begun=$(date +%s%N)
    until_true "the other is told" grep -qx "lost 1 $victim" "$folder/0.$survivor"
    took=$((($(date +%s%N) - begun) / 1000000))
    [ $took -lt $((soon_ms * slower)) ] || fail "told after $took ms"
    until_true "rank 1 is started anew" replaced 1 "$victim"
    until_true "both know each other again" all_know 0 1
    touch "$folder/leave"
    wait $job || fail "the job ended with $?: $(cat "$work/job")"
    rm -f "/dev/shm/$victim:"*  # libfabric's shm leaves the memory of who was killed
done

echo "shm: what was on its way to a process that was killed is not in the way of what goes to the next"
export RAILMUX_OFI_PROVIDERS=shm RAILMUX_RAILS='ofi:*'
RAILMUX_LINK_UNHEARD=2s RAILMUX_RECOVER_PATIENCE=1s listen bandwidth --keep
both_ways=(bandwidth --connect "127.0.0.1:$port" --sizes 64K --bidirectional --json)
busy() { [ "$(cut -d ' ' -f 14 "/proc/$victim/stat")" -ge 50 ]; }  # ticks: long after it was connected
for _ in 1 2 3; do  # once in a while nothing is on its way
    RAILMUX_PROGRESS=block "$railmux" "${both_ways[@]}" --window 1024 --iterations 1000000000 >"$work/first" 2>"$work/err" &
    victim=$!
    until_true "messages go both ways" busy
    kill_asleep "$victim"
    wait "$victim" 2>/dev/null || true
    timeout -k 9 $guard "$railmux" "${both_ways[@]}" --iterations 200 >"$work/result" 2>"$work/err" ||
        fail "the next hears nothing"
    rm -f "/dev/shm/$victim:"*
    ! grep -q 'ofi:shm down: what was sent to a process that is no more is in the way' "$work/listener" || break
done
libfabric=$(sed -n 's/^RAILMUX_LIBFABRIC_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
if [ "$(printf '%s\n' 2.5 "$libfabric" | sort -V | head -n 1)" != 2.5 ]; then  # since then nothing is
    grep -q 'ofi:shm is up again' "$work/listener" || fail "nothing was in the way"
fi
end_listener

echo "a rail of libfabric beside one of tcp: both carry"
export RAILMUX_OFI_PROVIDERS='all,tcp;ofi_rxm:lo' RAILMUX_RAILS='tcp:lo,ofi:*'
timeout -k 9 $guard "$railmux" run -n 2 "$railmux" bandwidth --policy round_robin --sizes 64K --iterations 100 --json \
    >"$work/both"
grep -q '"tcp:lo":' "$work/both" && grep -q '"ofi:tcp;ofi_rxm:lo":' "$work/both" || fail "not both rails carried"
