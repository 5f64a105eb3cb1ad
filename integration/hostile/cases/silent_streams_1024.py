"""Silent Data streams, 480 on each of two connections, at a data component that may have 1,024 descriptors."""

from cases import close_hard, others_are_served, rounds
from cases.streams_never_send import hold
from daemons import Limits
from store import DATA_SERVICE

SLICE = True
TARGETS = ("dcd",)
LIMITS = Limits(descriptors=1024)
STREAMS, CONNECTIONS = 480, 2
LEAST = {"streams": STREAMS * CONNECTIONS}


def attack(target, until):
    streams = 0
    for _ in rounds(until):
        held = [hold(target, [DATA_SERVICE + "Data"], STREAMS) for _ in range(CONNECTIONS)]
        streams += STREAMS * CONNECTIONS
        others_are_served(target)
        close_hard(held)
    return {"streams": streams}
