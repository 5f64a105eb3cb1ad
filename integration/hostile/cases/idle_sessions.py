"""Ten thousand interactive sessions that are open and ask for nothing, and 200 that are busy beside them. An idle one costs at most 64 KiB."""

from cases import SOURCE
from many_sessions import Busy, Idle

SLICE = True
FRESH = True
TARGETS = ("tcd",)
IDLE, BUSY = 10_000, 200
LEAST = {"idle sessions": IDLE, "busy sessions": BUSY, "commits": BUSY}
MOST = {"bytes each": 64 << 10}


def attack(target, until):
    before = target.memory_bytes()
    with Idle(target, SOURCE, IDLE) as idle:
        each = (target.memory_bytes() - before) / IDLE
        busy = Busy(target, SOURCE, BUSY)
        commits = busy.run(until.going)
        busy.sessions.close()
        opened = sum(len(part.streams) for part in idle.parts)
    return {"idle sessions": opened, "busy sessions": len(busy.done), "commits": commits, "bytes each": each}
