"""The judges find what they must: a stall, an error, an attack that did nothing, a bad end of a daemon. Run by //integration/tests:hostile_test."""

import itertools
import os
import queue
import select
import signal
import socket
import tempfile
import threading
import time
import types
import unittest

from daemons import Daemon, Limits, Run
import hpack
from judge import Attack, Bounds, Client, _judge_counts
from neighbour import Call, Neighbour
from neighbours import Health

STRICT = Bounds(quiet_seconds=0.0, timed=True, measured=True, patience=1.0, ratio=5.0)
LOOSE = STRICT._replace(timed=False)


def seen(latencies, errors=(), name=Health.NAME):
    """A client with a quiet second of 0.5 ms a call, and these latencies of the calls behind it."""
    calls = [Call(number / 100, 0.0005) for number in range(100)] + [Call(1 + number / 100, each) for number, each in enumerate(latencies)]
    return Client(types.SimpleNamespace(name=name, end=lambda: (calls, list(errors))), 1.0, 1000.0)


class StallingClient:
    """Answers at once, but for one call, which takes half a second."""

    NAME, PER_SECOND = "stalling", 100

    def __init__(self, *_):
        self.calls = 0

    def once(self):
        self.calls += 1
        if self.calls == 20:
            time.sleep(0.5)

    def close(self):
        pass


class DistantClient:
    """Each call is answered 0.2 s after it was sent, however many are in flight."""

    NAME, PER_SECOND, AWAY = "distant", 100, 0.2

    def __init__(self, *_):
        self.ours, self.theirs = socket.socketpair()
        self.numbers, self.calls = itertools.count(), queue.SimpleQueue()
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self):
        while (answer_at := self.calls.get()) is not None:
            time.sleep(max(0.0, answer_at - time.monotonic()))
            self.theirs.send(b"a")

    def begin(self):
        self.calls.put(time.monotonic() + self.AWAY)
        return next(self.numbers)

    def answers(self, seconds):
        if not select.select([self.ours], [], [], seconds)[0]:
            return []
        got = len(self.ours.recv(1000))
        first = self.answered = getattr(self, "answered", 0)
        self.answered += got
        return list(range(first, first + got))

    def close(self):
        self.calls.put(None)


class ClientTest(unittest.TestCase):
    def test_quick_calls_pass(self):
        self.assertEqual(seen([0.001] * 500).judge(STRICT), [])

    def test_a_ratio_beyond_the_bound_fails(self):
        self.assertIn("times that of the quiet client", seen([0.001] * 480 + [0.02] * 20).judge(STRICT)[0])

    def test_a_ratio_is_not_judged_without_a_bound(self):
        self.assertEqual(seen([0.001] * 480 + [0.02] * 20).judge(STRICT._replace(ratio=0.0)), [])
        self.assertIn("more than 0.5 s", seen([0.001] * 500 + [0.6]).judge(STRICT._replace(ratio=0.0))[0])

    def test_one_call_beyond_the_maximum_fails(self):
        self.assertIn("more than 0.5 s", seen([0.001] * 500 + [0.6]).judge(STRICT)[0])

    def test_no_call_at_all_fails(self):
        self.assertTrue(seen([]).judge(STRICT))

    def test_loose_bounds_judge_errors_only(self):
        self.assertEqual(seen([9.0]).judge(LOOSE), [])
        self.assertIn("1 errors", seen([], ["lost"]).judge(LOOSE)[0])

    def test_a_stall_delays_all_calls_of_its_time(self):
        neighbour = Neighbour(StallingClient, None, 10.0)
        self.assertTrue(neighbour.await_calls(80))
        calls, errors = neighbour.end()
        self.assertEqual(errors, [])
        self.assertGreaterEqual(sum(call.latency > 0.1 for call in calls), 30)

    def test_calls_of_a_pipelining_client_do_not_wait_for_each_other(self):
        neighbour = Neighbour(DistantClient, None, 10.0)
        self.assertTrue(neighbour.await_calls(200))
        calls, errors = neighbour.end()
        self.assertEqual(errors, [])
        self.assertGreaterEqual(min(call.latency for call in calls), DistantClient.AWAY)
        # One after another they would take 40 s.
        self.assertLess(calls[199].begin + calls[199].latency - calls[0].begin, 20)


class AttackTest(unittest.TestCase):
    CASE = types.SimpleNamespace(least={"bombs": 2}, most={"bytes": 10}, most_timed={"ms": 10})

    def test_less_than_the_least_fails(self):
        self.assertEqual(_judge_counts(self.CASE, {"bombs": 2, "bytes": 10, "ms": 10}, STRICT), [])
        self.assertEqual(len(_judge_counts(self.CASE, {"bombs": 1, "bytes": 11, "ms": 11}, STRICT)), 3)
        self.assertEqual(len(_judge_counts(self.CASE, {"bombs": 2, "bytes": 11, "ms": 11}, LOOSE)), 1)

    def test_an_attack_that_fails_or_dies_is_told(self):
        def lost(*_):
            raise ConnectionError("lost")

        def dies(*_):
            os.kill(os.getpid(), signal.SIGKILL)

        for attack, word in ((lost, "lost"), (dies, "died")):
            _, wrong = Attack(types.SimpleNamespace(attack=attack), None, 0.0).result(0.0)
            self.assertIn(word, wrong[0])


class DaemonTest(unittest.TestCase):
    def ended(self, script):
        """What is wrong with the end of a daemon that is this script, after it has written its first line."""
        with tempfile.TemporaryDirectory() as directory:
            program = directory + "/program"
            with open(program, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(program, 0o755)
            daemon = Daemon("dcd", directory, [], Run({"dcd": program}, None, "posix", 1.0, dict(os.environ)), Limits())
            while not os.path.getsize(daemon.log):
                time.sleep(0.01)
            return daemon.stop()

    WAIT = "echo ready; while :; do sleep 0.05; done"

    def test_a_clean_end_passes(self):
        self.assertEqual(self.ended("trap 'exit 0' TERM; " + self.WAIT), [])

    def test_a_status_fails(self):
        self.assertIn("ended with status 3", self.ended("trap 'exit 3' TERM; " + self.WAIT)[0])

    def test_a_shutdown_that_hangs_fails(self):
        self.assertIn("has not ended", self.ended("trap '' TERM; " + self.WAIT)[0])

    def test_a_report_in_the_log_fails(self):
        self.assertIn("LeakSanitizer", self.ended("trap 'exit 0' TERM; echo 'ERROR: LeakSanitizer: detected memory leaks'; " + self.WAIT)[0])


class HpackTest(unittest.TestCase):
    def test_fields_are_read_as_they_were_written(self):
        decoder = hpack.Decoder()
        kept = b"\x40" + hpack.number(0, 7, 11) + b"grpc-status" + hpack.number(0, 7, 2) + b"13"
        self.assertEqual(decoder.fields(b"\x88" + kept), {":status": "200", "grpc-status": "13"})
        self.assertEqual(decoder.fields(hpack.number(0x80, 7, 62)), {"grpc-status": "13"})
        self.assertEqual(decoder.fields(hpack.literal("x", "y" * 1000)), {"x": "y" * 1000})


if __name__ == "__main__":
    unittest.main()
