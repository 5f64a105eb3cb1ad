"""A process in which a well-behaved client (neighbours.py) works beside an attack, so that the attack does not slow its clock.

The schedule is open: each call has a time at which it is meant to begin, and its latency counts from there. A daemon that stalls for a second
delays all calls of that second, and all of them show it. A closed loop would show one. Where calls of a class do not depend on each other (`begin`),
each is sent at its time, whether those before it are answered or not. With one call in flight, a daemon that answers each within 25 ms would show
seconds at 50 calls a second, because the calls would wait for each other in the client.
"""

import collections
import multiprocessing
import time

from processes import die_with_parent

# `begin` is when the call was meant to begin, `latency` counts from there. Both are in seconds, on the clock of time.monotonic.
Call = collections.namedtuple("Call", "begin latency")
MOST_ERRORS = 20


def _work(make, target, patience, shared):
    """Calls until told to stop. Returns (calls, errors)."""
    calls, errors = [], []
    client = make(target, patience)
    turn = _pipelined_turn if hasattr(make, "begin") else _turn
    shared.pipe.send("ready")
    planned, in_flight = time.monotonic(), {}
    while not (stopping := shared.stop.is_set()) or in_flight:
        planned += 1.0 / make.PER_SECOND
        try:
            client = client or make(target, patience)
            answered = turn(client, planned, in_flight, patience, stopping)
            calls += answered
            with shared.done.get_lock():
                shared.done.value += len(answered)
        except (OSError, ValueError, LookupError) as error:
            errors.append(f"{make.NAME}: {error!r}")
            in_flight.clear()
            if client:
                client.close()
            client = None
            if len(errors) >= MOST_ERRORS:
                break
    if client:
        client.close()
    return calls, errors


def _turn(client, planned, _in_flight, _patience, _stopping):
    """Waits until `planned`, then for one call. Returns it."""
    time.sleep(max(0.0, planned - time.monotonic()))
    client.once()
    return [Call(planned, time.monotonic() - planned)]


def _pipelined_turn(client, planned, in_flight, patience, stopping):
    """Takes answers until `planned`, then sends one call, unless `stopping`. Returns the calls that were answered; the others are `in_flight`, by
    what `begin` has returned for them."""
    answered = []
    while (left := planned - time.monotonic()) > 0:
        for each in client.answers(left):
            begin = in_flight.pop(each)
            answered.append(Call(begin, time.monotonic() - begin))
    if in_flight and time.monotonic() - next(iter(in_flight.values())) > patience:
        raise TimeoutError(f"no answer within {patience:g} s")
    if not stopping:
        in_flight[client.begin()] = planned
    return answered


def _run(make, target, patience, shared):
    die_with_parent()
    try:
        shared.pipe.send(_work(make, target, patience, shared))
    except (OSError, ValueError, LookupError) as error:
        shared.pipe.send(([], [f"{make.NAME} cannot begin: {error!r}"]))


Shared = collections.namedtuple("Shared", "stop done pipe")


class Neighbour:
    """`make` is a class of neighbours.py."""

    def __init__(self, make, target, patience):
        self.name, self.patience, self.failed = make.NAME, patience, None
        self.pipe, theirs = multiprocessing.Pipe()
        self.shared = Shared(multiprocessing.Event(), multiprocessing.Value("Q"), theirs)
        self.process = multiprocessing.Process(target=_run, args=(make, target, patience, self.shared), daemon=True)
        self.process.start()
        theirs.close()
        first = self._receive()
        if first != "ready":
            self.failed = first

    def _receive(self):
        if not self.pipe.poll(self.patience * 4):
            return [], [f"{self.name}: hangs"]
        try:
            return self.pipe.recv()
        except EOFError:
            return [], [f"{self.name}: its process has died"]

    def await_calls(self, more):
        """Waits for that many successful calls from now on. False if they do not come, because of errors or a hang."""
        goal, end = self.shared.done.value + more, time.monotonic() + self.patience
        while self.shared.done.value < goal:
            if self.failed or time.monotonic() > end or not self.process.is_alive():
                return False
            time.sleep(0.005)
        return True

    def end(self):
        """(calls, errors)"""
        self.shared.stop.set()
        answer = self.failed or self._receive()
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return answer


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")
