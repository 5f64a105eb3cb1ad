"""Frames of HTTP/2 (RFC 9113) and sockets to a daemon: what hostile peers send. client.py has the well-behaved side. Only the standard library."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW = 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def setting(identifier, value):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", identifier, value))


def window(stream, more):
    return frame(WINDOW, 0, stream, struct.pack(">I", more))


def grpc_message(payload=b""):
    return struct.pack(">BI", 0, len(payload)) + payload


def connect(target, source=None, timeout=10.0, handshake=True):
    """A connected socket. `source` is the loopback address from which it comes; so one machine can be several peers."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    raw.settimeout(timeout)
    try:
        if source:
            # Without this the kernel finds no port for the ten-thousandth connection of a source.
            raw.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            raw.bind((source, 0))
        raw.connect((target.host, target.port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return target.tls.wrap_socket(raw) if target.tls and handshake else raw
    except BaseException:
        raw.close()
        raise


IP_BIND_ADDRESS_NO_PORT = 24  # Linux; the module `socket` has no name for it


def tls_context(directory, name):
    """The client's side of mutual TLS; names are compared by the daemon's allow-list, not here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(f"{directory}/ca.pem")
    if name:
        context.load_cert_chain(f"{directory}/{name}.pem", f"{directory}/{name}.key")
    context.set_alpn_protocols(["h2"])
    return context
