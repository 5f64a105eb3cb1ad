"""Daemons that may have 1 GiB of memory (a control group), and 1,000 messages of 4 MiB of which the last byte never comes."""

import select
import time

from cases import SOURCE, close_hard, others_are_served, rounds, surely_open
from daemons import Limits
from http2 import DATA, frame, grpc_message
from store import DATA_SERVICE, SERVICE

SLICE = True
PATHS = {"tcd": SERVICE + "Session", "dcd": DATA_SERVICE + "Data"}
CONNECTIONS, STREAMS = 4, 250
LIMITS = Limits(memory=1 << 30)
MESSAGE = grpc_message(bytes((4 << 20) - 1))[:-1]
PIECE = 16 << 10
# A daemon that takes nothing for this time has enough.
PAUSE_MS = 2000
LEAST = {"streams": CONNECTIONS * STREAMS, "bytes": 1 << 20}


class Sender:
    """One connection. It sends in turns of its streams what their windows and its own allow."""

    def __init__(self, target):
        self.connection = surely_open(target, SOURCE)
        self.sent = {self.connection.open(PATHS[target.name]): 0 for _ in range(STREAMS)}
        self.ended = False

    def step(self):
        """Bytes sent: none if there is nothing to send, or no window for it."""
        connection, total = self.connection, 0
        try:
            connection.serve_pending()
            for stream, at in self.sent.items():
                size = min(PIECE, stream.window, connection.window, len(MESSAGE) - at)
                if size > 0 and not stream.over:
                    connection.socket.sendall(frame(DATA, 0, stream.number, MESSAGE[at:at + size]))
                    stream.window, connection.window = stream.window - size, connection.window - size
                    self.sent[stream] += size
                    total += size
        except OSError:
            self.ended = True
        return total


def attack(target, until):
    counts = {"streams": 0, "bytes": 0, "connections ended": 0}
    for _ in rounds(until):
        senders = [Sender(target) for _ in range(CONNECTIONS)]
        poll = select.poll()
        for each in senders:
            poll.register(each.connection.socket, select.POLLIN)
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < PAUSE_MS / 1e3:
            total = sum(each.step() for each in senders if not each.ended)
            counts["bytes"] += total
            if total:
                quiet_since = time.monotonic()
            else:
                poll.poll(50)
        counts["streams"] += CONNECTIONS * STREAMS
        counts["connections ended"] += sum(each.ended for each in senders)
        others_are_served(target)
        close_hard(each.connection.socket for each in senders)
    return counts
