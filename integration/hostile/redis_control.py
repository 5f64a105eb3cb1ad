"""The control of silent_flood: what a client of a Redis sees beside the same attack, on the same machine. Prints its p99 before and beside it.

Usage: python3 -B integration/hostile/redis_control.py [SECONDS]
"""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases import silent_flood  # noqa: E402
from daemons import Address, free_port  # noqa: E402
from http2 import connect  # noqa: E402
from judge import Attack  # noqa: E402
from main import raise_descriptor_limit  # noqa: E402
from neighbour import Neighbour, percentile  # noqa: E402
from neighbours import SOURCE, Health  # noqa: E402

QUIET_SECONDS, PATIENCE = 2.0, 15.0


class Ping:
    """Calls as often as the client that asks a daemon for health."""

    NAME, PER_SECOND = "ping", Health.PER_SECOND

    def __init__(self, target, patience):
        self.socket = connect(target, SOURCE, patience)

    def once(self):
        self.socket.sendall(b"PING\r\n")
        if self.socket.recv(64) != b"+PONG\r\n":
            raise ValueError("no answer to PING")

    def close(self):
        self.socket.close()


class Flood:
    """The case without its look at whether transactions succeed meanwhile, of which a Redis has none."""

    @staticmethod
    def attack(target, until):
        silent_flood.others_are_served = lambda target: None
        return silent_flood.attack(target, until)


def await_redis(target):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return Ping(target, PATIENCE).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory() as directory:
        target = Address("redis", "127.0.0.1", free_port(), None)
        command = ["redis-server", "--port", str(target.port), "--dir", directory, "--save", "", "--maxclients", "16384"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as redis:
            try:
                await_redis(target)
                client = Neighbour(Ping, target, PATIENCE)
                time.sleep(QUIET_SECONDS)
                begin = time.monotonic()
                attack = Attack(Flood, target, seconds)
                time.sleep(seconds)
                counts, wrong = attack.result(seconds)
                end = time.monotonic()
                calls, errors = client.end()
            finally:
                redis.terminate()
    quiet = [call.latency for call in calls if call.begin < begin]
    beside = [call.latency for call in calls if begin <= call.begin < end]
    print(f"quiet p99 {percentile(quiet, 0.99) * 1e3:.2f} ms, beside the flood {percentile(beside, 0.99) * 1e3:.2f} ms  | {counts}")
    for failure in wrong + errors:
        print(f"FAILED {failure}")
    return 1 if wrong or errors or not beside else 0


if __name__ == "__main__":
    sys.exit(main())
