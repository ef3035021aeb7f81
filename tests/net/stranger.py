#!/usr/bin/env python3
"""Plays a railmux process of another version, as far as the two come: docs/protocol.md in 100 lines.

  stranger.py client HOST:PORT [--door V] [--contact V] [--stream V] [--hello V]    knocks where a railmux process listens
  stranger.py server [...]                                                          lets one knock; prints its port
  stranger.py job [...]                                                             is a rank of a `railmux run` job
  stranger.py versions                                                              prints ours, a PART=V each

V is the version that it speaks in the start-up channel, in its contact, in the tcp stream and in the handshake (ours). It
prints what the other side answers. Exit code 0 when the other side refused as it should: in its own words, not by silence.
"""
import argparse
import hashlib
import hmac
import os
import pathlib
import re
import socket
import struct


def ours(header, name):
    """What a header of the library says."""
    text = (pathlib.Path(__file__).parents[2] / "src" / header).read_text()
    return int(re.search(rf"constexpr std::uint16_t {name} = (\d+);", text)[1])


parser = argparse.ArgumentParser()
parser.add_argument("role", choices=["client", "server", "job", "versions"])
parser.add_argument("place", nargs="?", default="127.0.0.1:0")
wire = ours("rails/process_address.hpp", "wire_version")
OURS = {"door": ours("bootstrap/channel.hpp", "channel_version"), "contact": wire,
        "stream": ours("transports/tcp/wire.hpp", "stream_version"), "hello": wire}
for part, version in OURS.items():
    parser.add_argument(f"--{part}", type=int, default=version)
options = parser.parse_args()
host, port = options.place.rsplit(":", 1)
NONCE = os.urandom(16)
INSTANCE = 0x5742414E47455231


KEY = os.environ.get("RAILMUX_JOB_KEY", "").encode()


def mac(label, *parts, key=KEY):
    return hmac.new(key, label + b"".join(parts), hashlib.sha256).digest()


def read(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise SystemExit(f"it closed the connection after {len(data)} of {size} bytes")
        data += part
    return data


def greet_door(connection):
    """The start-up channel's mutual proof, with the empty key. False when the versions differ."""
    own = b"RMXBOOT1" + struct.pack("<HH", options.door, 0) + NONCE
    client = options.role != "server"
    if client:
        connection.sendall(own)
    theirs = read(connection, 28)
    nonces = NONCE + theirs[12:] if client else theirs[12:] + NONCE
    if not client:
        connection.sendall(own + (mac(b"railmux door server", nonces) if options.door == OURS["door"] else b""))
    if options.door != OURS["door"]:
        return False
    if client:
        assert read(connection, 32) == mac(b"railmux door server", nonces)
        connection.sendall(mac(b"railmux door client", nonces))
        return read(connection, 1) == b"\0"
    assert read(connection, 32) == mac(b"railmux door client", nonces)
    connection.sendall(b"\0")
    return True


def contact(rail_port):
    address = socket.inet_aton("127.0.0.1").ljust(16, b"\0")
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        identity = f"{file.read().strip()} {os.stat('/proc/thread-self/ns/net').st_ino}"
    number = 14695981039346656037
    for byte in identity.encode():
        number = (number ^ byte) * 1099511628211 % 2**64
    tcp = struct.pack("<BQBB", 1, number, 1, 1) + struct.pack("<BBH", 4, 8, rail_port) + address
    process = struct.pack("<HQII", options.contact, INSTANCE, 0xFFFFFFFF, os.getpid()) + struct.pack("<H", 8) + b"stranger"
    rail = struct.pack("<BH", 0, 3) + b"tcp" + struct.pack("<QH", 0, len(tcp)) + tcp
    return process + struct.pack("<B", 1) + rail


def exchange_contacts(connection, own):
    connection.sendall(struct.pack("<BII", 1, 0, len(own)) + own)
    kind, _, size = struct.unpack("<BII", read(connection, 9))
    assert kind == 1
    return read(connection, size)


def rail_of(theirs):
    """The instance, and the port of the rail on the loopback interface."""
    version, instance, _, _, size = struct.unpack_from("<HQIIH", theirs)
    assert version == OURS["contact"]
    at = theirs.index(socket.inet_aton("127.0.0.1").ljust(16, b"\0"), 20 + size)
    return instance, struct.unpack_from("<H", theirs, at - 2)[0]


def greeting(kind, body):
    return b"RMUX" + struct.pack("<HBBHH", options.stream, kind, 0, len(body), 0) + body


def read_greeting(connection):
    magic, version, kind, _, size, _ = struct.unpack("<4sHBBHH", read(connection, 12))
    assert magic == b"RMUX"
    return version, kind, read(connection, size)


def hello(instance):
    job = mac(b"", key=b"railmux job")[:8]
    body = struct.pack("<HBBIQQ", options.hello, 0, 0, 0xFFFFFFFF, INSTANCE, instance) + os.urandom(8) + job
    return body + mac(b"railmux hello", body)[:16]


def refused(connection):
    version, kind, body = read_greeting(connection)
    verdict = body[2] if len(body) > 2 else None
    print(f"refusal of stream version {version}, verdict {verdict}")
    assert (version, kind) == (OURS["stream"], 3) and (options.stream != OURS["stream"] or verdict == 1)


if options.role == "versions":
    print(*(f"{part}={version}" for part, version in OURS.items()))
elif options.role == "job":
    place = os.environ["RAILMUX_JOB_SERVER"].split(",")[0]
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place.removeprefix("unix:"))
        assert greet_door(server)
        address = contact(1)
        server.sendall(struct.pack("<BII", 2, int(os.environ["RAILMUX_JOB_RANK"]), len(address)) + address)
        server.recv(1)  # until the job ends
elif options.role == "client":
    with socket.create_connection((host, int(port)), timeout=10) as door:
        if not greet_door(door):
            raise SystemExit(0)
        other, rail = rail_of(exchange_contacts(door, contact(1)))
    if options.contact == OURS["contact"]:
        with socket.create_connection(("127.0.0.1", rail), timeout=10) as link:
            link.sendall(greeting(1, hello(other)))
            refused(link)
else:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    for listener in listeners:
        listener.settimeout(10)
    print(listeners[0].getsockname()[1], flush=True)
    with listeners[0].accept()[0] as door:
        if not greet_door(door):
            raise SystemExit(0)
        exchange_contacts(door, contact(listeners[1].getsockname()[1]))
    if options.contact == OURS["contact"]:
        with listeners[1].accept()[0] as link:
            read_greeting(link)
            verdict = struct.pack("<HBBIQQB7x", options.hello, 1, 0, 0xFFFFFFFF, INSTANCE, 0, 0)
            link.sendall(greeting(3, verdict + bytes(32)))
