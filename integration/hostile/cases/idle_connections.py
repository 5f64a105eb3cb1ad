"""Ten thousand connections with everything in order and no call, or as many as descriptors allow. The daemon keeps all of them."""

import resource

from cases import await_that, close_hard, others_are_served, rounds, surely_open

SLICE = False
FRESH = True
# No address may have more than half of a daemon's connections.
SOURCES = [f"127.0.0.{number}" for number in range(2, 7)]
# A connection takes two descriptors of a daemon, which keeps some hundreds for other purposes.
HELD = min(10_000, int(resource.getrlimit(resource.RLIMIT_NOFILE)[1] * 0.45))
LEAST = {"connections": HELD, "kept": HELD}


def is_kept(connection):
    """Answers the daemon's pings, too."""
    try:
        connection.serve_pending()
        return True
    except OSError:
        return False


def attack(target, until):
    before, descriptors = target.memory_bytes(), target.descriptors()
    held = []
    for number in range(HELD):
        held.append(surely_open(target, SOURCES[number % len(SOURCES)]))
        if number % 1000 == 999:
            kept = sum(is_kept(one) for one in held)
    await_that(lambda: target.descriptors() >= descriptors + HELD, f"the daemon has accepted {HELD} connections")
    others_are_served(target)
    each = (target.memory_bytes() - before) / HELD
    for _ in rounds(until):
        kept = sum(is_kept(one) for one in held)
        until.pause(1.0)
    close_hard(one.socket for one in held)
    return {"connections": len(held), "kept": kept, "bytes each": each}
