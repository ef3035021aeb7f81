#!/usr/bin/env bash
# Eight processes on two hosts over two rails, through a launch command and through ssh, and the report of what went where.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
enter_rig none none

echo "a ring of eight, in turn over the hosts"
run_on "8 A,B" "$build/examples/example_ring" || fail "ring"
grep -q '^after 3 laps of 8 processes: 84$' "$work/out" || fail "the token is wrong"
[ ! -s "$work/err" ] || fail "a good run says something"

echo "a master and seven workers, three here and five there, over both rails"
run_on "8 A:3,B:5" env RAILMUX_POLICY=round_robin RAILMUX_REPORT=1 "$build/examples/example_master_worker" ||
    fail "master_worker"
grep -q '^78498 primes below 1000000$' "$work/out" || fail "the count is wrong"

echo "the report: a table for each process, and what one sent another received"
python3 - "$work/err" <<'PYTHON' || fail "the report"
import re, sys
tables, rank = {}, None
for line in open(sys.argv[1]):
    if found := re.fullmatch(r"# railmux report of rank (\d)\n", line):
        rank = int(found[1])
        tables[rank] = {"rows": {}, "total": None}
    elif line.startswith("# model"):
        names = "# model rail peer source L us o_s us o_r us g us Mbit/s eager B drift"
        assert line.split() == names.split(), line
    elif line.startswith("model"):
        sources = "guess|probed|told|verified|stored|shared"
        row = rf"model +\S+ +rank \d(?: \(\S+\))? +({sources})(?: +[-\d.]+|inf){{7}}\n"
        assert re.fullmatch(row, line), line
    elif " is spare: " in line:
        assert re.fullmatch(r"# \S+ to rank \d(?: \(\S+\))? is spare: moved by the same processors as \S+\n", line), line
    elif line.startswith("# probing"):
        assert line.split() == "# probing rail frames B cpu us".split(), line
    elif line.startswith("probing"):
        assert re.fullmatch(r"probing +\S+ +\d+ +\d+ +\d+\.\d\d\n", line), line
    elif line.startswith("# delivery"):
        assert line.split() == "# delivery rail peer timed fr predicted us real us error us".split(), line
    elif line.startswith("delivery"):
        assert re.fullmatch(r"delivery +\S+ +rank \d(?: \(\S+\))? +\d+(?: +-?\d+\.\d\d){3}\n", line), line
    elif line.startswith("#"):
        assert line.split() == "# rail peer sent B received B sent fr recv fr resent duplicate lost".split(), line
    elif line.startswith("total"):
        tables[rank]["total"] = [int(word) for word in line.split()[1:]]
    else:
        found = re.fullmatch(r"(\S+) +rank (\d)(?: \(\S+\))?((?: +\d+){7})\n", line)
        assert found, line
        tables[rank]["rows"][found[1], int(found[2])] = [int(word) for word in found[3].split()]
assert sorted(tables) == list(range(8)), sorted(tables)
names = "sent received sent_frames received_frames resent duplicates lost".split()
for rank, table in tables.items():
    sums = [sum(row[i] for row in table["rows"].values()) for i in range(len(names))]
    assert table["total"] == sums, (rank, table)
    assert sums[4:] == [0, 0, 0], (rank, table)
    assert all(peer == 0 or rank == 0 for _, peer in table["rows"]), (rank, table)  # workers talk to the master alone
here = {0, 1, 2}
for (rail, peer), row in tables[0]["rows"].items():
    between_hosts = peer not in here
    usual = ("tcp:rail0", "tcp:rail1") if between_hosts else ("shm:node", "tcp:lo", "tcp:rail0", "tcp:rail1")
    assert rail in usual, (rail, peer)
for peer in range(1, 8):
    there = [row for (rail, other), row in tables[peer]["rows"].items()]
    mine = [row for (rail, other), row in tables[0]["rows"].items() if other == peer]
    assert sum(r[0] for r in mine) == sum(r[1] for r in there) and sum(r[1] for r in mine) == sum(r[0] for r in there), peer
# Not for each worker: one that is late may find little to do, and all done before its second link is up.
for rail in ("tcp:rail0", "tcp:rail1"):
    frames = {peer: row[2] + row[3] for (name, peer), row in tables[0]["rows"].items() if name == rail and peer not in here}
    assert sum(frames.values()) > 0, (rail, frames)
PYTHON

echo "ssh: what it is given, and what a login shell makes of it"
mkdir "$work/bin"
cat >"$work/bin/ssh" <<'SSH'
#!/bin/sh
# Takes the words as ssh does: options, a host, and a command that the shell over there takes apart.
echo "$*" >>"${0%/bin/ssh}/ssh.calls"
while [ "$1" = -o ]; do shift 2; done
host=$1
shift
exec ip netns exec "$host" env -i PATH="$PATH" HOME="${0%/bin/ssh}" "${LOGIN_SHELL:-sh}" -c "$*"
SSH
chmod +x "$work/bin/ssh"
over_ssh() {
    PATH=$work/bin:$PATH timeout -k 9 $guard "$railmux" run --hosts "$RIG_NAME-A,$RIG_NAME-B" "$@" >"$work/out" 2>"$work/err"
}
over_ssh -n 8 "$build/examples/example_ring" || fail "ring over ssh"
grep -qx '\[0\] after 3 laps of 8 processes: 84' "$work/out" || fail "the token is wrong"
[ "$(wc -l <"$work/ssh.calls")" = 8 ] || fail "not one ssh for each process"
[ "$(grep -c "^-o BatchMode=yes -o ConnectTimeout=10 $RIG_NAME-[AB] 'sh' '-c' " "$work/ssh.calls")" = 8 ] ||
    fail "other words than expected"
! grep -q JOB_KEY= "$work/ssh.calls" || fail "the key shows in the list of processes"

echo "ssh: folders, arguments, variables and exit codes survive the shells between"
mkdir "$work/a folder's"
script='printf "%s|" "$PWD" "$RAILMUX_LOG" "$PLAIN" "$@"; exit 3'
status=0
(cd "$work/a folder's" && RAILMUX_LOG=error PLAIN="two  words" over_ssh -n 1 --env PLAIN --no-prefix \
    sh -c "$script" sh 'a b' '$HOME' "it's" '*' '') || status=$?
[ $status = 3 ] || fail "exit status $status, not 3"
[ "$(cat "$work/out")" = "$work/a folder's|error|two  words|a b|\$HOME|it's|*||" ] || fail "not what was given"

echo "ssh: a host that is not reached is named with ssh's own words"
cat >"$work/bin/ssh" <<'SSH'
#!/bin/sh
echo "ssh: connect to host nowhere port 22: No route to host" >&2
exit 255
SSH
status=0
over_ssh -n 2 true || status=$?
[ $status = 255 ] || fail "exit status $status, not 255"
grep -q 'No route to host' "$work/err" || fail "ssh's words are lost"
grep -q "rank [01] on host $RIG_NAME-[AB] ended with exit status 255" "$work/err" || fail "the host is not named"

# A real sshd on each host. Only true root can be one: it changes users.
sshd=$(PATH=$PATH:/usr/sbin command -v sshd || true)
if [ -z "$sshd" ] || ! command -v ssh >/dev/null; then
    echo "SKIPPED a real ssh: openssh-server and openssh-client are not installed"
elif [ "$(awk '{ print $3 }' /proc/self/uid_map)" != 4294967295 ] || [ "$(id -u)" != 0 ]; then
    echo "SKIPPED a real ssh: only root can run sshd"
else
    echo "a real ssh"
    mkdir "$work/keys" "$work/run"
    made=no
    [ -d /run/sshd ] || { mkdir /run/sshd && made=yes; }
    mount -t tmpfs -o mode=755 tmpfs /run/sshd  # here only, as the networks
    for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$work/keys/$key"; done
    for host in A B; do
        on $host "$sshd" -f /dev/null -p 22 -h "$work/keys/host" -o PidFile="$work/run/$host" -o StrictModes=no -o UsePAM=no \
            -o PermitRootLogin=prohibit-password -o AuthorizedKeysFile="$work/keys/user.pub" ||
            fail "sshd does not start"
    done
    cat >"$work/keys/config" <<CONFIG
Host $RIG_NAME-A
    HostName 10.77.0.1
Host $RIG_NAME-B
    HostName 10.77.0.2
Host *
    IdentityFile $work/keys/user
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking no
    LogLevel ERROR
CONFIG
    # The launcher sits on host A, as a user does.
    cat >"$work/bin/ssh" <<SSH
#!/bin/sh
exec ip netns exec $RIG_NAME-A $(command -v ssh) -F $work/keys/config "\$@"
SSH
    over_ssh --env XDG_CACHE_HOME -n 8 "$build/examples/example_ring" || fail "ring over a real ssh"
    grep -qx '\[0\] after 3 laps of 8 processes: 84' "$work/out" || fail "the token is wrong"
    status=0
    over_ssh -n 2 sh -c 'exit $((RAILMUX_JOB_RANK * 7))' || status=$?
    [ $status = 7 ] || fail "exit status $status, not 7"
    for host in A B; do kill "$(cat "$work/run/$host")"; done
    umount /run/sshd
    [ $made = no ] || rmdir /run/sshd
fi
echo "all good"
