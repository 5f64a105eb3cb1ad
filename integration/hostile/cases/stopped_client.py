"""A client that is stopped (SIGSTOP) in the middle of transactions of 200 sessions, and goes on later: nothing of it holds up others."""

import multiprocessing
import os
import signal
import time

from cases import PATIENCE, SOURCE, await_that, rounds, surely_open
from many_sessions import Busy
from processes import die_with_parent

SLICE = True
TARGETS = ("tcd",)
SESSIONS = 200
# Of another client, which the daemon answers while the one is stopped.
CHECKS = 20
LEAST = {"stops": 1, "commits": SESSIONS, "checks": CHECKS}
LONGEST_STOP_SECONDS = 30


def work(target, turns):
    """Never ends by itself, but for an error: it was stopped for longer than the daemon waits for an answer to its ping."""
    die_with_parent()

    def goes_on():
        turns.value += 1
        return True

    try:
        Busy(target, SOURCE, SESSIONS).run(goes_on)
    except OSError:
        pass


def attack(target, until):
    counts = dict.fromkeys(LEAST, 0)
    for _ in rounds(until):
        turns = multiprocessing.Value("Q")
        worker = multiprocessing.Process(target=work, args=(target, turns), daemon=True)
        worker.start()
        # A commit takes three answers, often in one message.
        await_that(lambda: turns.value > 3 * SESSIONS, "the transactions of the client that will be stopped")
        counts["commits"] += SESSIONS
        os.kill(worker.pid, signal.SIGSTOP)
        end, other = time.monotonic() + LONGEST_STOP_SECONDS, surely_open(target, SOURCE)
        for _ in range(CHECKS):
            other.health()
            counts["checks"] += 1
        while until.going() and time.monotonic() < end:
            other.health()
            counts["checks"] += 1
            until.pause(0.1)
        stopped_at = turns.value
        os.kill(worker.pid, signal.SIGCONT)
        counts["stops"] += 1
        await_that(lambda: turns.value > stopped_at or not worker.is_alive(), "the client that goes on")
        worker.kill()
        worker.join(PATIENCE)
    return counts
