"""Ten thousand sessions that are open and ask for nothing. Each may cost a server of transactions 64 KiB."""

import time

from cases import SOURCE, going
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, Connection, call_headers, frame

SLICE = True
CONNECTIONS, SESSIONS = 10, 1000
MOST_BYTES = 64 << 10
SESSION = "/deut.wire.TransactionService/Session"
# SessionRequests{requests: [{open: {protocol_version}}]}, as Session of transaction_service.proto has it.
VERSION = 2
OPEN = bytes([0, 0, 0, 0, 6, 0x0a, 4, 0x12, 2, 8, VERSION])


def open_sessions(target, number):
    """A connection with so many sessions, each of which has been answered."""
    one = Connection(target, SOURCE)
    answered = set()
    for first in range(0, number, 100):
        streams = range(first * 2 + 1, (first + 100) * 2 + 1, 2)
        one.socket.sendall(b"".join(
            frame(HEADERS, END_HEADERS, stream, call_headers(SESSION)) + frame(DATA, 0, stream, OPEN) for stream in streams))
        while len(answered) < first + 100:
            kind, flags, stream, payload = one.read_frame()
            if kind == DATA:
                answered.add(stream)
            assert kind != HEADERS or not flags & END_STREAM, f"session {stream} was refused: {payload!r}"
    return one


def attack(target, until):
    if target.name != "tcd":
        return  # a data component has no sessions
    before = target.memory_bytes()
    held = [open_sessions(target, SESSIONS) for _ in range(CONNECTIONS)]
    each = (target.memory_bytes() - before) / (CONNECTIONS * SESSIONS)
    print(f"  {CONNECTIONS * SESSIONS} idle sessions: {each / 1024:.1f} KiB each", flush=True)
    assert each <= MOST_BYTES, f"an idle session costs {each:.0f} bytes"
    while going(until):
        time.sleep(0.05)
    for one in held:
        one.close()
