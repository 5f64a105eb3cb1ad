"""A header field that announces a gigabyte (CVE-2023-33953), and a block of very many fields: the daemon ends the connection."""

import itertools

from cases import close_hard, rounds, send_until_ended, surely_connect
from client import HEALTH
from hpack import call_headers, literal
from http2 import CONTINUATION, HEADERS, PREFACE, SETTINGS, frame

SLICE = True
MOST_BYTES = 4 << 20
LEAST = {"bombs": 2}


def bomb(target, begin, more):
    one = surely_connect(target)
    piece = frame(CONTINUATION, 0, 1, more)
    pieces = itertools.chain([PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, begin)],
                             itertools.repeat(piece, MOST_BYTES // len(piece)))
    sent, ended = send_until_ended(one, pieces)
    assert ended, f"the daemon took {sent} frames of one header block and has not ended the connection"
    close_hard([one])


def attack(target, until):
    start, bombs = call_headers(HEALTH), 0
    field = start + literal("x", "")[:-1] + b"\x7f\x81\xff\xff\xff\x03"
    for _ in rounds(until):
        for begin, more in ((field, b"x" * 1024), (start, literal("y", "y" * 1000))):
            bomb(target, begin, more)
            bombs += 1
    return {"bombs": bombs}
