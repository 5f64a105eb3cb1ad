"""Floods of small frames whose answers nobody reads: pings and settings. The daemon ends the connection."""

import itertools

from cases import close_hard, rounds, send_until_ended, surely_connect
from http2 import PING, PREFACE, SETTINGS, frame

SLICE = True
FLOODS = [frame(PING, 0, 0, b"01234567"), frame(SETTINGS, 0, 0)]
TOGETHER, MOST_PIECES = 200, 2000
LEAST = {"frames": 1000, "connections ended": len(FLOODS)}


def attack(target, until):
    counts = {"frames": 0, "connections ended": 0}
    for _ in rounds(until):
        for each in FLOODS:
            one = surely_connect(target)
            one.sendall(PREFACE + frame(SETTINGS, 0, 0))
            sent, ended = send_until_ended(one, itertools.repeat(each * TOGETHER, MOST_PIECES))
            assert ended, f"the daemon took {sent * TOGETHER} frames of kind {each[3]} and has not ended the connection"
            counts["frames"] += sent * TOGETHER
            counts["connections ended"] += 1
            close_hard([one])
    return counts
