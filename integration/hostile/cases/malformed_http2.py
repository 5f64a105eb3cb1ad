"""Frames that HTTP/2 does not allow, one connection each. The daemon ends the connection or goes on with it, and never hangs."""

import random
import struct

from cases import ends_or_answers, rounds, surely_open
from client import HEALTH
from hpack import call_headers, number
from http2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PUSH, RESET, SETTINGS, WINDOW, frame,
                   setting)

SLICE = True
CALL = call_headers(HEALTH)
PADDED, WITH_PRIORITY = 8, 0x20
RANDOM = 50


def headers(block, flags=END_HEADERS | END_STREAM, stream=1):
    return frame(HEADERS, flags, stream, block)


MISTAKES = {
    "data of a stream that is not open": frame(DATA, 0, 1, b"x"),
    "data of the connection": frame(DATA, 0, 0, b"x"),
    "headers of the connection": headers(CALL, stream=0),
    "headers of a server's stream": headers(CALL, stream=2),
    "headers of an earlier stream": headers(CALL, stream=5) + headers(CALL, stream=3),
    "headers twice": headers(CALL, END_HEADERS) + headers(CALL, END_HEADERS),
    "data behind the end": headers(CALL) + frame(DATA, 0, 1, b"x"),
    "a continuation of nothing": frame(CONTINUATION, END_HEADERS, 1, CALL),
    "a frame within a header block": headers(CALL, 0) + frame(PING, 0, 0, bytes(8)),
    "a continuation of another stream": headers(CALL, 0) + frame(CONTINUATION, END_HEADERS, 3, b""),
    "padding longer than its frame": frame(DATA, PADDED, 1, b"\xff"),
    "padded headers without a length": frame(HEADERS, PADDED | END_HEADERS, 1, b""),
    "headers with half a priority": frame(HEADERS, WITH_PRIORITY | END_HEADERS, 1, b"\0\0"),
    "a stream that depends on itself": headers(CALL, END_HEADERS) + frame(PRIORITY, 0, 1, struct.pack(">IB", 1, 0)),
    "a short priority": frame(PRIORITY, 0, 1, b"\0"),
    "a reset of a stream that is not open": frame(RESET, 0, 9, bytes(4)),
    "a reset of the connection": frame(RESET, 0, 0, bytes(4)),
    "a short reset": headers(CALL, END_HEADERS) + frame(RESET, 0, 1, b"\0"),
    "settings of a stream": frame(SETTINGS, 0, 1),
    "half a setting": frame(SETTINGS, 0, 0, b"\0\4\0"),
    "an acknowledgement with settings": frame(SETTINGS, 1, 0, bytes(6)),
    "an initial window beyond the largest": setting(4, 0x80000000),
    "frames smaller than the smallest": setting(5, 1),
    "frames larger than the largest": setting(5, 0xffffffff),
    "push that is neither on nor off": setting(2, 7),
    "a setting that nobody knows": setting(0x7777, 7),
    "a promise of a client": frame(PUSH, END_HEADERS, 1, struct.pack(">I", 2) + CALL),
    "a short ping": frame(PING, 0, 0, b"\0"),
    "a ping of a stream": frame(PING, 0, 1, bytes(8)),
    "an answer to no ping": frame(PING, 1, 0, b"abcdefgh"),
    "a short good-bye": frame(GOAWAY, 0, 0, b"\0"),
    "a good-bye": frame(GOAWAY, 0, 0, struct.pack(">II", 0, 2)),
    "a short window": frame(WINDOW, 0, 0, b"\0"),
    "a window of a stream that is not open": frame(WINDOW, 0, 7, struct.pack(">I", 1)),
    "a frame of a kind that nobody knows": frame(0x77, 0xff, 1, b"x" * 100),
    "a frame longer than allowed": struct.pack(">I", 0xffffff)[1:] + struct.pack(">BBI", DATA, 0, 1) + bytes(1000),
    "an index that nothing has": headers(number(0x80, 7, 1000)),
    "an index of zero": headers(b"\x80"),
    "a number without an end": headers(b"\xff" * 100),
    "a table larger than allowed": headers(number(0x20, 5, 1 << 30) + CALL),
    "a string longer than its block": headers(b"\0" + number(0, 7, 1000) + b"x"),
    "a Huffman code of ones": headers(b"\0\x82\xff\xff\x82\xff\xff"),
    "no header at all": headers(b""),
    "a name in capitals": headers(b"\0\1X\1y" + CALL),
    "a method behind other fields": headers(b"\0\1x\1y\x83"),
    "two paths": headers(CALL + b"\x84"),
}
LEAST = {"mistakes": len(MISTAKES), "at random": RANDOM}


def attack(target, until):
    counts = dict.fromkeys(LEAST, 0)

    def make(what, data):
        one = surely_open(target)
        try:
            one.socket.sendall(data)
        except OSError:
            pass  # the daemon was faster
        ends_or_answers(one, what)
        one.close()

    for round_number in rounds(until):
        for what, data in MISTAKES.items():
            make(what, data)
            counts["mistakes"] += 1
        chance = random.Random(round_number)
        for _ in range(RANDOM):
            frames = b"".join(frame(chance.randrange(12), chance.randrange(256), chance.randrange(6), chance.randbytes(chance.randrange(40)))
                              for _ in range(20))
            make(f"frames at random, round {round_number}", frames)
            counts["at random"] += 1
    return counts
