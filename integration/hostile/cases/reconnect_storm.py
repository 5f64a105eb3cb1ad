"""2,000 clients whose connections all break at once. Each connects, shakes hands and asks for health again, at the same time as all others."""

import multiprocessing
import time

from cases import PATIENCE, SOURCE, close_hard, rounds
from herd import connect_all
from processes import die_with_parent

SLICE = False
CLIENTS, PROCESSES = 2000, 4
LEAST = {"reconnected": CLIENTS}
MOST_TIMED = {"slowest storm ms": 10_000}


def part(target, pipe):
    """Each time it is told to: breaks all connections of its clients, and says how many are served again."""
    die_with_parent()
    held = []
    try:
        while pipe.recv():
            close_hard(held)
            held, again = connect_all(target, SOURCE, CLIENTS // PROCESSES, 4 * PATIENCE)
            pipe.send((len(held), again))
    except OSError as error:
        pipe.send(repr(error))


def storm(pipes):
    """(clients served, times that one had to connect again, seconds)"""
    begin, served, again = time.monotonic(), 0, 0
    for pipe in pipes:
        pipe.send(True)
    for pipe in pipes:
        answer = pipe.recv()
        assert isinstance(answer, tuple), f"a client of the storm: {answer}"
        served, again = served + answer[0], again + answer[1]
    return served, again, time.monotonic() - begin


def attack(target, until):
    pipes, counts = [], {"reconnected": 0, "again": 0, "slowest storm ms": 0.0}
    for _ in range(PROCESSES):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=part, args=(target, theirs), daemon=True).start()
        pipes.append(ours)
    storm(pipes)  # nobody is connected before
    for _ in rounds(until):
        served, again, seconds = storm(pipes)
        counts["reconnected"] += served
        counts["again"] += again
        counts["slowest storm ms"] = max(counts["slowest storm ms"], seconds * 1e3)
    for pipe in pipes:
        pipe.send(False)
    return counts
