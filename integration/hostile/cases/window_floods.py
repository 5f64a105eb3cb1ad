"""Floods of WINDOW_UPDATE, of the connection and of its streams; windows beyond 2^31-1; initial windows that go up and down beneath open streams."""

from cases import SOURCE, await_end, close_hard, ends_or_answers, rounds, surely_connect, surely_open
from http2 import INITIAL_WINDOW, PREFACE, SETTINGS, frame, setting, window
from store import DATA_SERVICE, SERVICE

SLICE = True
STREAMS = {"tcd": SERVICE + "Session", "dcd": DATA_SERVICE + "Data"}
FRAMES, TOGETHER = 20_000, 200
# A daemon takes 5,000 settings at once, and then 1,000 a second.
CHANGES, OPEN = 500, 200
LEAST = {"frames": 2 * FRAMES, "impossible updates": 2, "changes": CHANGES}


def updates(target):
    """Of the connection, then of a stream. The daemon reads all of them, and goes on."""
    one = surely_open(target, SOURCE)
    stream = one.open(STREAMS[target.name])
    for number in (0, stream.number):
        for _ in range(FRAMES // TOGETHER):
            one.socket.sendall(window(number, 1) * TOGETHER)
        one.ping()
    close_hard([one.socket])
    return 2 * FRAMES


def beyond(target):
    """Updates that make a window too large, and one of zero, which ends the connection."""
    large = surely_open(target, SOURCE)
    stream = large.open(STREAMS[target.name])
    large.socket.sendall((window(0, 0x7fffffff) + window(stream.number, 0x7fffffff)) * TOGETHER)
    ends_or_answers(large, "windows beyond the largest")
    zero = surely_connect(target, SOURCE)
    zero.sendall(PREFACE + frame(SETTINGS, 0, 0) + window(0, 0))
    await_end(zero, "a window that grows by nothing")
    close_hard([large.socket, zero])
    return 2


def changes(target):
    one = surely_open(target, SOURCE)
    for _ in range(OPEN):
        one.open(STREAMS[target.name])
    for index in range(CHANGES):
        one.socket.sendall(setting(INITIAL_WINDOW, 0x7fffffff if index % 2 else 0))
    one.ping()
    close_hard([one.socket])
    return CHANGES


def attack(target, until):
    counts = dict.fromkeys(LEAST, 0)
    for _ in rounds(until):
        counts["frames"] += updates(target)
        counts["impossible updates"] += beyond(target)
        counts["changes"] += changes(target)
    return counts
