"""What ten thousand idle sessions take from a lone busy one: at most 5 % of its throughput, compared with a tcd that has none, in turns."""

import statistics
import time

from cases import SOURCE, surely_open
from many_sessions import Idle
import store

SLICE = False
FRESH = True
TWIN = True
TARGETS = ("tcd",)
IDLE = 10_000
TURN_SECONDS, LEAST_TURNS = 0.25, 60
TIME, PROCESSOR = "% of the time without them", "% of the processor time"
LEAST = {"idle sessions": IDLE, "turns": LEAST_TURNS}
MOST_TIMED = {TIME: 105.0}


class Lone:
    """One session, one transaction after the other: a write and a read of the same key."""

    def __init__(self, target):
        self.target, self.connection = target, surely_open(target.for_client(), "127.0.0.1")
        self.session = store.Session(self.connection)
        table = store.table(self.connection, b"lone")
        self.operations = [store.put(table, b"key", b"x" * 100), store.get(table, b"key")]

    def turn(self):
        """(seconds, seconds of the daemon's processors) of a transaction"""
        begin, used, done = time.monotonic(), self.target.processor_seconds(), 0
        while time.monotonic() - begin < TURN_SECONDS:
            self.session.transaction(self.operations)
            done += 1
        return (time.monotonic() - begin) / done, (self.target.processor_seconds() - used) / done


def attack(target, until):
    times, processor = [], []
    with Idle(target, SOURCE, IDLE):
        beside, alone = Lone(target), Lone(target.twin)
        for each in (beside, alone):
            each.turn()  # warms up
        while len(times) < LEAST_TURNS or until.going():
            # The order changes, so that a load of the machine that comes and goes favours neither.
            pair = (beside, alone) if len(times) % 2 else (alone, beside)
            took = {each: each.turn() for each in pair}
            times.append(took[beside][0] / took[alone][0])
            processor.append(took[beside][1] / took[alone][1])
    return {"idle sessions": IDLE, "turns": len(times), TIME: 100 * statistics.median(times),
            PROCESSOR: 100 * statistics.median(processor)}
