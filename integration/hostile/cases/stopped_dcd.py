"""The data component is stopped (SIGSTOP) beneath its tcd, and goes on later. Meanwhile tcd answers health; afterwards transactions succeed."""

import signal
import time

from cases import SOURCE, await_that, rounds, surely_open
import store

SLICE = True
TARGETS = ("tcd",)
TRANSACTIONS = False
CHECKS = 20
LONGEST_STOP_SECONDS = 30
LEAST = {"stops": 1, "checks": CHECKS, "transactions": 1}


def one_transaction(target):
    """Whether one succeeds that needs the data component."""
    connection = surely_open(target, SOURCE)
    try:
        table = store.table(connection, b"stopped")
        store.Session(connection).one_shot([store.put(table, b"key", b"value"), store.scan(table, b"", 10)])
        return True
    except OSError:
        return False
    finally:
        connection.close()


def attack(target, until):
    counts = dict.fromkeys(LEAST, 0)
    for _ in rounds(until):
        await_that(lambda: one_transaction(target), "a transaction before the stop")
        target.other.signal(signal.SIGSTOP)
        try:
            end, connection = time.monotonic() + LONGEST_STOP_SECONDS, surely_open(target, SOURCE)
            for _ in range(CHECKS):
                connection.health()
                counts["checks"] += 1
            while until.going() and time.monotonic() < end:
                connection.health()
                counts["checks"] += 1
                until.pause(0.1)
        finally:
            target.other.signal(signal.SIGCONT)
        counts["stops"] += 1
        await_that(lambda: one_transaction(target), "a transaction after the stop")
        counts["transactions"] += 1
    return counts
