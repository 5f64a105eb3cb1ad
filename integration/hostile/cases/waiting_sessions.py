"""1,000 sessions of one connection that wait for a snapshot, which an open transaction holds back. Each takes a thread of the daemon."""

from cases import SOURCE, close_hard, others_are_served, rounds, surely_open
from client import KeptAlive
from many_sessions import Sessions
from protobuf import message
import store

SLICE = True
TARGETS = ("tcd",)
STREAMS = 1000
LEAST = {"sessions": STREAMS}
SNAPSHOT = 1


def hold_back(target):
    """A connection with an open writer, and a timestamp behind it: no snapshot has it while the writer is open."""
    connection = surely_open(target, SOURCE)
    table = store.table(connection, b"waiting")
    writer, later = store.Session(connection), store.Session(connection)
    writer.ask((store.BEGIN, b""))
    writer.ask((store.EXECUTE, store.execute([store.put(table, b"writer", b"x")])))
    later.ask((store.BEGIN, b""))
    later.ask((store.EXECUTE, store.execute([store.put(table, b"later", b"x")])))
    return connection, store.first(later.ask((store.COMMIT, b""))[0], 2)


def wait_beside(target, connections, streams, counts):
    """Others are served while all sessions of that many connections wait."""
    opened = [Sessions(target, SOURCE, streams) for _ in range(connections)]
    writer, timestamp = hold_back(target)
    for sessions in opened:
        for stream in sessions.streams:
            sessions.connection.send(stream, store.requests((store.BEGIN, message([(1, SNAPSHOT), (3, timestamp)]))))
        sessions.connection.ping()
    with KeptAlive([writer] + [sessions.connection for sessions in opened]):
        others_are_served(target)
    counts["threads"] = max(counts["threads"], target.threads())
    for sessions in opened:
        early = sum(bool(stream.messages) for stream in sessions.streams)
        assert not early, f"{early} sessions have not waited for a snapshot that an open transaction holds back"
        counts["sessions"] += len(sessions.streams)
    close_hard([writer.socket] + [sessions.connection.socket for sessions in opened])


def attack(target, until, connections=1, streams=STREAMS):
    counts = {"sessions": 0, "threads": 0}
    for _ in rounds(until):
        wait_beside(target, connections, streams, counts)
    return counts
