"""HTTP/2 as RFC 9113 draws it, as far as hostile peers and a lone health check need it. Only the standard library."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
HEALTH = "/grpc.health.v1.Health/Check"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def number(first, bits, value):
    """An integer of HPACK (RFC 7541, 5.1) behind the bits of `first`."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out = bytearray([first | most])
    value -= most
    while value >= 128:
        out.append(128 | (value & 127))
        value >>= 7
    out.append(value)
    return bytes(out)


def literal(name, value):
    name, value = name.encode(), value.encode()
    return b"\0" + number(0, 7, len(name)) + name + number(0, 7, len(value)) + value


def call_headers(path):
    return (b"\x83\x86" + literal(":path", path) + literal(":authority", "x") + literal("te", "trailers") +
            literal("content-type", "application/grpc"))


def connect(target, source=None, timeout=10.0, handshake=True):
    """A connected socket. `source` is the loopback address from which it comes; so one machine can be several peers."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    raw.settimeout(timeout)
    try:
        if source:
            raw.bind((source, 0))
        raw.connect((target.host, target.port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return target.tls.wrap_socket(raw) if target.tls and handshake else raw
    except BaseException:
        raw.close()
        raise


def tls_context(directory, name):
    """The client's side of mutual TLS; names are compared by the daemon's allow-list, not here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(f"{directory}/ca.pem")
    context.load_cert_chain(f"{directory}/{name}.pem", f"{directory}/{name}.key")
    context.set_alpn_protocols(["h2"])
    return context


class Connection:
    """A well-behaved connection: settings and pings are acknowledged, windows given back."""

    def __init__(self, target, source=None, timeout=10.0):
        self.socket = connect(target, source, timeout)
        self.stream = 1
        self.pending = b""
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0))

    def close(self):
        self.socket.close()

    def _read(self, bytes_wanted):
        while len(self.pending) < bytes_wanted:
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError("the server has closed the connection")
            self.pending += got
        out, self.pending = self.pending[:bytes_wanted], self.pending[bytes_wanted:]
        return out

    def read_frame(self):
        head = self._read(9)
        size = int.from_bytes(head[:3], "big")
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        payload = self._read(size)
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == DATA and size:
            self.socket.sendall(frame(WINDOW, 0, 0, struct.pack(">I", size)))
        elif kind == GOAWAY:
            raise ConnectionError(f"the server says good-bye: {payload[8:].decode(errors='replace')}")
        return kind, flags, stream, payload

    def health(self):
        """True if the daemon answers SERVING or NOT_SERVING to the standard health check."""
        stream, self.stream = self.stream, self.stream + 2
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, call_headers(HEALTH)) +
                            frame(DATA, END_STREAM, stream, b"\0\0\0\0\0"))
        answered = False
        while True:
            kind, flags, of, payload = self.read_frame()
            if of != stream:
                continue
            if kind == DATA:
                answered = answered or payload[5:6] == b"\x08"
            if kind == RESET or (kind in (HEADERS, DATA) and flags & END_STREAM):
                return answered
