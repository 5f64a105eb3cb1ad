"""A well-behaved HTTP/2 and gRPC client: it acknowledges settings and pings, gives windows back and keeps to those it was given."""

import ssl
import struct
import threading

from hpack import Decoder, call_headers
from http2 import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW, PING, PREFACE, RESET, SETTINGS,
                   WINDOW, connect, frame, grpc_message, window)

HEALTH = "/grpc.health.v1.Health/Check"
FIRST_WINDOW = 65535


class CallError(OSError):
    """A call that ended with another status than OK."""


class Stream:
    """What has come of one call."""

    def __init__(self, number, window_bytes):
        self.number, self.window = number, window_bytes
        self.bytes, self.messages = b"", []
        self.fields, self.reset = {}, None  # of the last header block; the code of RST_STREAM
        self.over = False

    def take(self, payload):
        self.bytes += payload
        while len(self.bytes) >= 5:
            end = 5 + int.from_bytes(self.bytes[1:5], "big")
            if len(self.bytes) < end:
                return
            self.messages.append(self.bytes[5:end])
            self.bytes = self.bytes[end:]

    def status(self):
        """The gRPC status of a call that is over; -1 if it was reset or has none."""
        return int(self.fields.get("grpc-status", -1))

    def why(self):
        text = self.fields.get("grpc-message", "")
        return f"reset with {self.reset}" if self.reset is not None else f"status {self.status()} {text}"


class Connection:
    """`settings` is the first frame; another one than the empty one announces less than a good client does."""

    def __init__(self, target, source=None, timeout=10.0, settings=frame(SETTINGS, 0, 0)):
        self.socket = connect(target, source, timeout)
        self.next, self.streams, self.decoder = 1, {}, Decoder()
        self.pending, self.block = b"", b""
        self.window = self.initial = FIRST_WINDOW
        self.pongs = 0
        self.socket.sendall(PREFACE + settings)

    def close(self):
        self.socket.close()

    def _need(self, size):
        """Waits until that many bytes are there. They stay, so that a read that would block can be repeated."""
        while len(self.pending) < size:
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError("the server has closed the connection")
            self.pending += got

    def pump(self):
        """Reads one frame and does what it asks for. Returns its stream, or None."""
        self._need(9)
        head = self.pending[:9]
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        self._need(9 + size)
        payload, self.pending = self.pending[9:9 + size], self.pending[9 + size:]
        stream = self.streams.get(int.from_bytes(head[5:], "big"))
        if kind == SETTINGS and not flags & ACK:
            self._settings(payload)
        elif kind == PING and flags & ACK:
            self.pongs += 1
        elif kind == PING:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            raise ConnectionError(f"the server says good-bye: {payload[8:].decode(errors='replace')}")
        elif kind == WINDOW:
            more = int.from_bytes(payload, "big")
            if stream:
                stream.window += more
            elif head[5:] == b"\0\0\0\0":
                self.window += more
        elif kind in (HEADERS, CONTINUATION):
            self.block += payload
            if flags & END_HEADERS:
                fields, self.block = self.decoder.fields(self.block), b""
                if stream:
                    stream.fields = fields
        elif kind == RESET and stream:
            stream.reset, stream.over = int.from_bytes(payload, "big"), True
        elif kind == DATA:
            self._data(stream, payload, flags)
        if stream and kind in (HEADERS, DATA) and flags & END_STREAM:
            stream.over = True
        return stream

    def serve_pending(self):
        """Does what the frames that have come ask for, without waiting for more."""
        timeout = self.socket.gettimeout()
        self.socket.setblocking(False)
        try:
            while True:
                self.pump()
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        finally:
            self.socket.settimeout(timeout)

    def _settings(self, payload):
        for identifier, value in struct.iter_unpack(">HI", payload):
            if identifier == INITIAL_WINDOW:
                for stream in self.streams.values():
                    stream.window += value - self.initial
                self.initial = value
        self.socket.sendall(frame(SETTINGS, ACK, 0))

    def _data(self, stream, payload, flags):
        if payload:
            back = window(0, len(payload))
            if stream and not flags & END_STREAM:
                back += window(stream.number, len(payload))
            self.socket.sendall(back)
        if stream:
            stream.take(payload)

    def begin(self):
        """A stream of which nothing has been sent yet."""
        stream = Stream(self.next, self.initial)
        self.next += 2
        self.streams[stream.number] = stream
        return stream

    def open(self, path):
        stream = self.begin()
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream.number, call_headers(path)))
        return stream

    def send(self, stream, payload, last=False):
        """One message, of at most 16 KiB."""
        out = grpc_message(payload)
        while not stream.over and min(stream.window, self.window) < len(out):
            self.pump()
        stream.window -= len(out)
        self.window -= len(out)
        self.socket.sendall(frame(DATA, END_STREAM if last else 0, stream.number, out))

    def receive(self, stream):
        """The next message. CallError if the call ends before."""
        while not stream.messages:
            if stream.over:
                raise CallError(f"a stream has ended with {stream.why()}")
            self.pump()
        return stream.messages.pop(0)

    def finish(self, stream):
        """Waits until the call is over, and forgets it."""
        while not stream.over:
            self.pump()
        del self.streams[stream.number]
        return stream

    def call(self, path, payload=b""):
        """The answer of a unary call. CallError if it has another status than OK."""
        stream = self.open(path)
        self.send(stream, payload, last=True)
        self.finish(stream)
        if stream.status() != 0 or not stream.messages:
            raise CallError(f"{path} has ended with {stream.why()}")
        return stream.messages[0]

    def ping(self):
        """Waits until the server has read everything that was sent before."""
        goal = self.pongs + 1
        self.socket.sendall(frame(PING, 0, 0, bytes(8)))
        while self.pongs < goal:
            self.pump()

    def health(self):
        """True if the daemon is serving. CallError if it does not say."""
        return self.call(HEALTH) == b"\x08\x01"


class KeptAlive:
    """Answers the server's pings on connections that nobody uses meanwhile, in a thread. A context manager."""

    PERIOD_SECONDS = 0.5

    def __init__(self, connections):
        self.connections, self.error, self.stop = connections, None, threading.Event()
        self.thread = threading.Thread(target=self._keep, daemon=True)

    def _keep(self):
        try:
            while not self.stop.wait(self.PERIOD_SECONDS):
                for each in self.connections:
                    each.serve_pending()
        except OSError as error:
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        """OSError if the server has ended one of the connections."""
        self.stop.set()
        self.thread.join()
        if self.error:
            raise self.error
