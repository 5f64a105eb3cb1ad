"""Handshakes of which one byte a second comes: of TLS, or of HTTP/2 without TLS. The daemon ends them at its timeout of 10 s."""

import time

from cases import close_hard, is_closed, others_are_served, rounds, surely_connect
from http2 import PREFACE

SLICE = True
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
HELD = 200
# --handshake_timeout, and what a busy machine may take longer.
OLDEST_SECONDS = 25.0
LEAST = {"handshakes": HELD, "bytes": HELD}


class Handshake:
    def __init__(self, target):
        self.socket, self.begin = surely_connect(target, handshake=False), time.monotonic()
        self.left = HELLO if target.tls else PREFACE

    def step(self):
        """Sends one byte, if there is one and the daemon takes it. Returns how many."""
        try:
            self.socket.send(self.left[:1])
        except OSError:
            return 0
        more, self.left = len(self.left[:1]), self.left[1:]
        return more


def attack(target, until):
    held, counts = [], {"handshakes": 0, "bytes": 0, "ended": 0}
    for _ in rounds(until):
        ended = {each for each in held if is_closed(each.socket)}
        close_hard(each.socket for each in ended)
        counts["ended"] += len(ended)
        held = [each for each in held if each not in ended]
        oldest = max((time.monotonic() - each.begin for each in held), default=0.0)
        assert oldest <= OLDEST_SECONDS, f"the daemon keeps a handshake of {oldest:.0f} s"
        while len(held) < HELD:
            held.append(Handshake(target))
            counts["handshakes"] += 1
        counts["bytes"] += sum(each.step() for each in held)
        others_are_served(target)
        until.pause(1.0)
    close_hard(each.socket for each in held)
    return counts
