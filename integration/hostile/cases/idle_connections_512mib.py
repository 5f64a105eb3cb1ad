"""Daemons that may have 512 MiB of memory (a control group), and 5,000 connections with everything in order and no call, from one address."""

from cases import SOURCE, close_hard, others_are_served, rounds
from cases.idle_connections import is_kept
from client import Connection
from daemons import Limits

SLICE = True
FRESH = True
LIMITS = Limits(memory=512 << 20)
CONNECTIONS = 5000
# One address may have half of what an eighth of the memory holds, at 24 KiB for each connection without TLS. Daemons with sanitizers have three
# times the memory.
MOST_KEPT = 3 * (512 << 20) // 8 // (24 << 10) // 2
LEAST = {"connections": CONNECTIONS, "turned away": CONNECTIONS - MOST_KEPT}


def attack(target, until):
    counts = {"connections": 0, "turned away": 0}
    for _ in rounds(until):
        held = []
        for _ in range(CONNECTIONS):
            counts["connections"] += 1
            try:
                held.append(Connection(target, SOURCE))
            except OSError:
                counts["turned away"] += 1
        others_are_served(target)
        counts["turned away"] += sum(not is_kept(one) for one in held)
        close_hard(one.socket for one in held)
    return counts
