"""Many interactive sessions of one client, on few connections."""

from client import CallError, Connection, KeptAlive
import store

STREAMS = 1000  # of a connection; a daemon allows 1,024


class Sessions:
    """Sessions on one connection, each of which has been opened and answered."""

    TOGETHER = 100

    def __init__(self, target, source, number):
        self.connection = Connection(target, source, 60.0)
        self.streams = []
        for first in range(0, number, self.TOGETHER):
            some = [self.connection.open(store.SERVICE + "Session") for _ in range(min(self.TOGETHER, number - first))]
            for stream in some:
                self.connection.send(stream, store.OPEN_SESSION)
            for stream in some:
                store.answers(self.connection.receive(stream))
            self.streams += some

    def close(self):
        self.connection.close()


class Idle:
    """Sessions that ask for nothing. A context manager: they stay open until its end. OSError if the daemon has ended one before."""

    def __init__(self, target, source, number):
        self.parts = [Sessions(target, source, min(STREAMS, number - first)) for first in range(0, number, STREAMS)]
        self.kept = KeptAlive([part.connection for part in self.parts])

    def __enter__(self):
        self.kept.__enter__()
        return self

    def __exit__(self, *about):
        self.kept.__exit__(*about)
        ended = [stream for part in self.parts for stream in part.streams if stream.over]
        for part in self.parts:
            part.close()
        if ended:
            raise CallError(f"{len(ended)} idle sessions have ended, one with {ended[0].why()}")


class Busy:
    """Sessions that have one transaction under way each, all the time: begin, a write and a read, commit."""

    def __init__(self, target, source, number):
        self.sessions = Sessions(target, source, number)
        self.done = dict.fromkeys(self.sessions.streams, 0)
        self.answers = dict.fromkeys(self.sessions.streams, 0)
        self.table = store.table(self.sessions.connection, b"busy")

    def _begin(self, stream):
        key = b"busy %d" % stream.number
        operations = [store.put(self.table, key, b"x" * 100), store.get(self.table, key)]
        self.sessions.connection.send(stream, store.requests((store.BEGIN, b""), (store.EXECUTE, store.execute(operations)),
                                                             (store.COMMIT, b"")))

    def run(self, going):
        """Until `going()` is false and each session has committed. Returns the number of commits."""
        for stream in self.done:
            self._begin(stream)
        connection = self.sessions.connection
        while going() or not all(self.done.values()):
            stream = connection.pump()
            if stream not in self.done:
                continue
            while stream.messages:
                self.answers[stream] += store.ended(store.answers(stream.messages.pop(0)))
            if stream.over:
                raise CallError(f"a busy session has ended with {stream.why()}")
            if self.answers[stream] == 3:
                self.answers[stream] = 0
                self.done[stream] += 1
                self._begin(stream)
        return sum(self.done.values())
