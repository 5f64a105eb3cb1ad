"""One attack in each file. A module has

  attack(target, until)  attacks until that monotonic time; raises AssertionError if the daemon bears it in a way that it must not
  SLICE                  True: part of the short run in CI
  DESCRIPTORS            optional: the daemons' limit of open files
"""

import time

# Attacks come from another address than the well-behaved client, so that the cap of one peer holds for them alone.
SOURCE = "127.0.0.2"


def going(until):
    return time.monotonic() < until
