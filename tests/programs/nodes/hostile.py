"""Disturbs the servers at an address until the file STOP exists: hostile.py ADDRESS PORT,PORT STOP SEED. Some connections say
nothing, some stop within the first words of the protocol, the others send random bytes, whole or torn. At the end it
prints how many connections it opened."""

import contextlib
import os
import random
import socket
import struct
import sys
import time

#: Connections that stay open to each port.
SILENT = 20
#: How a peer of version 2 of Ceph's protocol begins: banner, length, features.
BANNER = b"ceph v2\n" + struct.pack("<HQQ", 16, 1, 0)


def connected(address, port):
    peer = socket.create_connection((address, port), timeout=5)
    peer.settimeout(0.2)
    return peer


def talk(peer, draw):
    """Sends what no client sends, and reads some of the answer."""
    noise = draw.randbytes(draw.choice([1, 16, 100, 4096, 1 << 16]))
    beginning = draw.choice([b"", BANNER, BANNER[: draw.randrange(len(BANNER))], BANNER + struct.pack("<B", 1)])
    with contextlib.suppress(OSError):
        peer.sendall(beginning)
        peer.recv(100)
    with contextlib.suppress(OSError):
        peer.sendall(noise)
        peer.recv(100)


def main(address, ports, stop, seed):
    draw = random.Random(int(seed))
    ports = [int(port) for port in ports.split(",")]
    opened = 0
    silent = []
    for port in ports * SILENT:
        silent.append(connected(address, port))
        if len(silent) % 2:
            silent[-1].sendall(BANNER[:7])
        opened += 1
    while not os.path.exists(stop):
        with contextlib.suppress(OSError), connected(address, draw.choice(ports)) as peer:
            opened += 1
            talk(peer, draw)
        time.sleep(0.005)
    print(opened)


main(*sys.argv[1:])
