"""The silent flood against daemons that may have 256 descriptors."""

from cases import silent_flood

SLICE = True
DESCRIPTORS = 256


def attack(target, until):
    silent_flood.attack(target, until)
