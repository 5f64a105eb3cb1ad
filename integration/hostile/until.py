"""How long an attack goes on: for some seconds, and until each client beside it has made some calls meanwhile."""

import multiprocessing
import time


class Until:
    def __init__(self, seconds):
        self.end, self.enough = time.monotonic() + seconds, multiprocessing.Event()

    def going(self):
        return time.monotonic() < self.end or not self.enough.is_set()

    def pause(self, seconds):
        """The pace of an attack. Shorter where the attack ends before."""
        end = time.monotonic() + seconds
        while self.going() and time.monotonic() < end:
            time.sleep(min(0.05, max(0.0, end - time.monotonic())))
