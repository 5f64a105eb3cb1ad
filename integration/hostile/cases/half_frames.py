"""Connections that stop anywhere in the middle of a conversation: one for each of its bytes."""

from cases import close_hard, rounds, surely_connect
from hpack import call_headers
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, grpc_message

SLICE = True
WHOLE = (PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, call_headers("/deuteronomy.v1.Nothing/Nothing")) +
         frame(DATA, END_STREAM, 1, grpc_message(b"nothing")))
HELD = 200
LEAST = {"halves": len(WHOLE)}


def attack(target, until):
    held, halves = [], 0
    for _ in rounds(until):
        for cut in range(1, len(WHOLE) + 1):
            one = surely_connect(target)
            one.sendall(WHOLE[:cut])
            halves += 1
            held.append(one)
            if len(held) > HELD:
                close_hard([held.pop(0)])
    close_hard(held)
    return {"halves": halves}
