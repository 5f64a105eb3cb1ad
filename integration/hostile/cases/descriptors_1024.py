"""The silent flood against daemons that may have 1,024 descriptors, the limit of a shell on Debian."""

from cases import descriptors_256, silent_flood
from daemons import Limits

SLICE = False
LIMITS = Limits(descriptors=1024)
MOST_KEPT = 1024 // 2
LEAST = {"connections": silent_flood.HELD, "turned away": silent_flood.HELD - MOST_KEPT}


def attack(target, until):
    return descriptors_256.attack(target, until, MOST_KEPT)
