"""Calls whose messages are none: gRPC's framing broken, bytes that are no message, methods that do not exist. Each call ends, and none is served."""

import random
import struct

from cases import PATIENCE, rounds, surely_open
from hpack import call_headers, literal
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, frame, grpc_message
from protobuf import field, parse
from store import DATA_SERVICE, SERVICE

SLICE = True
METHODS = {"tcd": [SERVICE + name for name in
                   "Session OneShots AskOutcome OpenTable CreateTable DropTable ListTables GetStatus DropCaches".split()],
           "dcd": [DATA_SERVICE + name for name in "Hello Data Scan ApplyLog Partition Checkpoint Tables Counters".split()]}
UNKNOWN = ["", "/", "//", "no slash", "/deuteronomy.v1.Nothing/Nothing", SERVICE + "Nothing", "/" + "x" * 4000, "/\xe4\xff/\0"]
RANDOM = 5


def nested(depth):
    data = b""
    for _ in range(depth):
        data = field(1, data)
    return data


# Framing: whatever the method, these are no call in good order.
BROKEN = {
    "a message that ends too early": struct.pack(">BI", 0, 100) + b"short",
    "half a head": b"\0\0\0",
    "a message of 4 GiB": struct.pack(">BI", 0, 0xffffffff) + b"x",
    "a compressed message without a compression": struct.pack(">BI", 1, 4) + b"abcd",
}
# Bytes that are no message of Protocol Buffers.
GARBAGE = {
    "a number without an end": b"\x08" + b"\xff" * 20,
    "a field longer than its message": b"\x0a\xff\xff\xff\x7f",
    "field zero": b"\0\0",
    "a wire type that nobody knows": b"\x0f",
    "a group without an end": b"\x0b",
    "an end without a group": b"\x0c",
    "a field cut short": b"\x09\0",
}
# Far from what a method expects; it may answer as it likes. (A message with a flag that nobody knows is an empty one to gRPC.)
STRANGE = {"nesting": grpc_message(nested(2000)), "many empty fields": grpc_message(field(1, b"") * 20_000),
           "an unknown field": grpc_message(field(100, b"x" * 1000)),
           "a flag that nobody knows": struct.pack(">BI", 0x80, 4) + b"abcd"}

HEADERS_OF = {
    "a content type of another protocol": b"\x83\x86" + literal(":path", SERVICE + "GetStatus") + literal("content-type", "text/html"),
    "GET": b"\x82\x86" + literal(":path", SERVICE + "GetStatus") + literal("content-type", "application/grpc"),
    "a timeout that is no time": call_headers(SERVICE + "GetStatus") + literal("grpc-timeout", "soon"),
    "a timeout of nothing": call_headers(SERVICE + "GetStatus") + literal("grpc-timeout", "0n"),
    "a compression that nobody knows": call_headers(SERVICE + "GetStatus") + literal("grpc-encoding", "best"),
    "no path": b"\x83\x86" + literal("content-type", "application/grpc"),
    "no method": b"\x86" + literal(":path", "/x/y") + literal("content-type", "application/grpc"),
}


LEAST = {"refused": 8 * (len(BROKEN) + len(GARBAGE)) + len(UNKNOWN), "ended": 8 * (len(STRANGE) + RANDOM) + len(HEADERS_OF)}


class Caller:
    """One call after the other on one connection, or on the next if the daemon has ended it."""

    def __init__(self, target):
        self.target, self.connection = target, None

    def is_served(self, what, block, body):
        """Sends a call, and whether it is answered without an error. AssertionError if it hangs."""
        self.connection = self.connection or surely_open(self.target)
        try:
            stream = self.connection.begin()
            self.connection.socket.sendall(frame(HEADERS, END_HEADERS, stream.number, block) + self.body(stream.number, body))
            self.connection.finish(stream)
            # In all answers an error is the first field.
            return stream.status() == 0 and any(1 not in parse(answer) for answer in stream.messages)
        except TimeoutError as error:
            raise AssertionError(f"{what}: the call has not ended within {PATIENCE:g} s") from error
        except OSError:
            self.connection.close()
            self.connection = None
            return False

    @staticmethod
    def body(stream, data):
        pieces = [data[at:at + 16384] for at in range(0, len(data), 16384)] or [b""]
        return b"".join(frame(DATA, END_STREAM if index == len(pieces) - 1 else 0, stream, piece) for index, piece in enumerate(pieces))


def attack(target, until):
    caller = Caller(target)
    counts = dict.fromkeys(LEAST, 0)

    def refused(what, path, body):
        assert not caller.is_served(what, call_headers(path), body), f"{path} with {what}: the daemon serves it"
        counts["refused"] += 1

    def ends(what, block, body):
        caller.is_served(what, block, body)
        counts["ended"] += 1

    for round_number in rounds(until):
        chance = random.Random(round_number)
        for path in METHODS[target.name]:
            for what, data in BROKEN.items():
                refused(what, path, data)
            for what, data in GARBAGE.items():
                refused(what, path, grpc_message(data))
            for what, data in STRANGE.items():
                ends(what, call_headers(path), data)
            for _ in range(RANDOM):
                ends("bytes at random", call_headers(path), grpc_message(chance.randbytes(chance.randrange(100))))
        for path in UNKNOWN:
            refused("a method that does not exist", path, grpc_message())
        for what, block in HEADERS_OF.items():
            ends(what, block, grpc_message())
    return counts
