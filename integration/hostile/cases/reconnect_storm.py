"""Clients with all that they need, which connect, ask for health once and connect again: 200 threads."""

import threading

from cases import SOURCE, going
from http2 import Connection

SLICE = False
THREADS = 200


def attack(target, until):
    served = []

    def storm():
        while going(until):
            try:
                connection = Connection(target, SOURCE)
                served.append(connection.health())
                connection.close()
            except OSError:
                pass

    threads = [threading.Thread(target=storm) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert any(served), "no client of the storm was served"
