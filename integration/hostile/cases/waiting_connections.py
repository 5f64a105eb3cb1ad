"""1,600 sessions of one client on four connections, which wait as those of waiting_sessions do."""

from cases import waiting_sessions

SLICE = True
TARGETS = ("tcd",)
CONNECTIONS, STREAMS = 4, 400
LEAST = {"sessions": CONNECTIONS * STREAMS}


def attack(target, until):
    return waiting_sessions.attack(target, until, CONNECTIONS, STREAMS)
