"""The well-behaved client beside an attack: a process of its own, so that the attack does not slow its clock.

It calls the health service on one connection all the time, and on a new connection ten times a second.
"""

import multiprocessing
import time

from http2 import Connection

SOURCE = "127.0.0.1"
NEW_EVERY = 0.1
PAUSE = 0.001


def _run(target, stop, pipe):
    calls, fresh, errors = [], [], []
    connection, next_fresh = Connection(target, SOURCE), 0.0
    pipe.send("ready")
    while not stop.is_set():
        begin = time.monotonic()
        try:
            if begin >= next_fresh:
                next_fresh = begin + NEW_EVERY
                other = Connection(target, SOURCE)
                try:
                    if not other.health():
                        errors.append("a new connection: no answer")
                finally:
                    other.close()
                fresh.append(time.monotonic() - begin)
            begin = time.monotonic()
            if not connection.health():
                errors.append("no answer")
            calls.append(time.monotonic() - begin)
        except OSError as error:
            errors.append(repr(error))
            if len(errors) > 20:
                break
            try:
                connection = Connection(target, SOURCE)
            except OSError as again:
                errors.append(repr(again))
        time.sleep(PAUSE)
    pipe.send((calls, fresh, errors))


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


class Neighbour:
    def __init__(self, target):
        self.stop = multiprocessing.Event()
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_run, args=(target, self.stop, theirs), daemon=True)
        self.process.start()
        assert self.pipe.recv() == "ready"

    def end(self):
        """(latencies of calls, latencies of new connections, errors)"""
        self.stop.set()
        answer = self.pipe.recv()
        self.process.join()
        return answer
