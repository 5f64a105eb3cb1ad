"""Daemons that may have 150 threads (a control group): at tcd 700 sessions that wait for one each, at dcd 1,600 silent streams."""

from cases import close_hard, others_are_served, rounds, waiting_sessions
from cases.streams_never_send import PATHS, hold
from daemons import Limits

SLICE = True
LIMITS = Limits(threads=150)
SESSIONS, STREAMS, CONNECTIONS = 700, 800, 2
# Waiting sessions take all threads that tcd gets. Silent streams hold none.
LEAST = {"held": SESSIONS}


def attack(target, until):
    if target.name == "tcd":
        counts = waiting_sessions.attack(target, until, 1, SESSIONS)
        return dict(counts, held=counts["sessions"])
    counts = {"held": 0, "threads": 0}
    for _ in rounds(until):
        held = [hold(target, PATHS[target.name], STREAMS) for _ in range(CONNECTIONS)]
        counts["held"] += STREAMS * CONNECTIONS
        others_are_served(target)
        counts["threads"] = max(counts["threads"], target.threads())
        close_hard(held)
    return counts
