"""The well-behaved clients beside an attack: what each does again and again. neighbour.py says when.

A class has PER_SECOND, how often it calls, and `close`. Either `once` waits for its call; or `begin` begins one and returns what names it, and
`answers` waits for a time and returns the names of those that were answered. A new object is made after an error.
"""

import concurrent.futures
import itertools
import os
import select
import time

from client import HEALTH, CallError, Connection
import store

SOURCE = "127.0.0.1"


class Health:
    """Asks for health on one connection."""

    NAME, PER_SECOND = "health", 50

    def __init__(self, target, patience):
        self.connection = Connection(target, SOURCE, patience)

    def begin(self):
        stream = self.connection.open(HEALTH)
        self.connection.send(stream, b"", last=True)
        return stream

    def answers(self, seconds):
        if not select.select([self.connection.socket], [], [], seconds)[0]:
            return []
        self.connection.serve_pending()
        over = [stream for stream in self.connection.streams.values() if stream.over]
        for stream in over:
            self.connection.finish(stream)
            if stream.status() != 0:
                raise CallError(f"{HEALTH} has ended with {stream.why()}")
        return over

    def close(self):
        self.connection.close()


class NewConnection:
    """Connects, asks for health, and closes the connection. Each in a thread of its own, so that none waits for another."""

    NAME, PER_SECOND = "connect", 10

    def __init__(self, target, patience):
        self.target, self.patience = target, patience
        self.threads, self.in_flight = concurrent.futures.ThreadPoolExecutor(256), set()

    def begin(self):
        call = self.threads.submit(self._once)
        self.in_flight.add(call)
        return call

    def answers(self, seconds):
        if not self.in_flight:
            time.sleep(seconds)
            return []
        over, self.in_flight = concurrent.futures.wait(self.in_flight, seconds, concurrent.futures.FIRST_COMPLETED)
        for each in over:
            each.result()  # raises its error
        return over

    def _once(self):
        connection = Connection(self.target, SOURCE, self.patience)
        try:
            connection.health()
        finally:
            connection.close()

    def close(self):
        self.threads.shutdown(wait=False)


class RareConnection(NewConnection):
    """Where a daemon may have 16 connections: those that wait for their handshake beside a flood would be as many."""

    PER_SECOND = 2


class Data:
    """Transactions of a write, two reads and a scan, in turns of a session, step by step, and in one message.

    One of the reads is of a key that nobody has asked for, and the scan ends at no cached record: both need the data component.
    """

    NAME, PER_SECOND = "data", 20
    KEYS = 100
    counter = itertools.count()  # over all objects of a process, so that no unknown key is read twice

    def __init__(self, target, patience):
        self.connection = Connection(target, SOURCE, patience)
        self.unknown = os.urandom(8).hex().encode()
        self.table = store.table(self.connection, b"neighbour")
        self.session = store.Session(self.connection)

    def once(self):
        number = next(self.counter)
        key, value = b"key %d" % (number % self.KEYS), b"value %d." % number
        operations = [store.put(self.table, key, value), store.get(self.table, key), store.get(self.table, b"%s %d" % (self.unknown, number)),
                      store.scan(self.table, key, 10)]
        records = (self.session.transaction if number % 2 else self.session.one_shot)(operations)
        if len(records) != 4 or value not in records[1] or value not in records[3] or records[2]:
            raise CallError(f"the transaction that wrote {value!r} to {key!r} has read {records!r}")

    def close(self):
        self.connection.close()
