"""Connections that never send a byte, opened as fast as possible, and held."""

from cases import close_hard, others_are_served, rounds, surely_connect

SLICE = True
HELD = 1100
LEAST = {"connections": HELD}


def attack(target, until):
    held, opened = [], 0
    for _ in rounds(until):
        for _ in range(HELD):
            held.append(surely_connect(target, handshake=False))
            opened += 1
        others_are_served(target)
        close_hard(held[:-HELD])
        del held[:-HELD]
    close_hard(held)
    return {"connections": opened}
