"""Streams of every kind that say nothing: 900 on each of four connections, which are held."""

from cases import close_hard, others_are_served, rounds, surely_open
from hpack import call_headers
from http2 import END_HEADERS, HEADERS, frame
from store import DATA_SERVICE, SERVICE

SLICE = True
PATHS = {"tcd": [SERVICE + "Session", SERVICE + "OneShots", SERVICE + "GetStatus"],
         "dcd": [DATA_SERVICE + "Data", DATA_SERVICE + "Scan", DATA_SERVICE + "ApplyLog", DATA_SERVICE + "Counters"]}
STREAMS, CONNECTIONS = 900, 4
LEAST = {"streams": STREAMS * CONNECTIONS}


def hold(target, paths, streams):
    """A connection that has so many open and silent."""
    one = surely_open(target)
    one.socket.sendall(b"".join(frame(HEADERS, END_HEADERS, 2 * index + 1, call_headers(paths[index % len(paths)]))
                                for index in range(streams)))
    one.ping()
    return one.socket


def attack(target, until):
    streams = 0
    for _ in rounds(until):
        held = [hold(target, PATHS[target.name], STREAMS) for _ in range(CONNECTIONS)]
        streams += STREAMS * CONNECTIONS
        others_are_served(target)
        close_hard(held)
    return {"streams": streams}
