"""The silent flood against daemons that may have 256 descriptors: most of it is turned away."""

from cases import await_that, close_hard, is_closed, others_are_served, rounds, silent_flood, surely_connect
from daemons import Limits

SLICE = True
FEW_CONNECTIONS = True
LIMITS = Limits(descriptors=256)
# A connection takes two descriptors, so the daemon can keep at most this many.
MOST_KEPT = 256 // 2
LEAST = {"connections": silent_flood.HELD, "turned away": silent_flood.HELD - MOST_KEPT}


def attack(target, until, kept=MOST_KEPT):
    counts = {"connections": 0, "turned away": 0}
    for _ in rounds(until):
        held = [surely_connect(target, handshake=False) for _ in range(silent_flood.HELD)]
        counts["connections"] += len(held)
        left = list(held)

        def few_are_left():
            left[:] = [each for each in left if not is_closed(each)]
            return len(left) <= kept

        await_that(few_are_left, f"a daemon of few descriptors keeps at most {kept} connections")
        others_are_served(target)
        counts["turned away"] += len(held) - len(left)
        close_hard(held)
    return counts
