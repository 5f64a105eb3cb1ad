"""Runs one case against one daemon, with well-behaved clients beside it, and says what is wrong. README.md says what must hold."""

import collections
import multiprocessing
import os
import signal
import time

from neighbour import Neighbour, percentile
from neighbours import Data, Health, NewConnection, RareConnection
from processes import die_with_parent
from until import Until

# How strict a run is. `timed`: latencies are judged. `measured`: so are memory and descriptors. `patience`: after this many seconds a daemon hangs.
# `ratio`: most times the quiet p99; 0 for any.
Bounds = collections.namedtuple("Bounds", "quiet_seconds timed measured patience ratio")

# Afterwards a new client is served within this time.
AFTERWARDS_SECONDS = 15.0
# The quota of gRPC's buffers is 256 MiB, and the allocator keeps as much.
MOST_NEW_MEMORY = 512 << 20
MOST_NEW_DESCRIPTORS = 64
# The quiet p99 of a loopback call can be shorter than a turn of the scheduler; the ratio is never asked of less.
LEAST_QUIET_P99 = 0.001
MOST_HEALTH_SECONDS = 0.5
MOST_CONNECT_SECONDS = 1.0
# Longer than its seconds by this an attack never takes, on a busy machine either.
MOST_ATTACK_SECONDS = 300.0
# Successful calls of each client without the attack, during it, and after it.
LEAST_CALLS = 3


def _attack_process(case, target, until, pipe):
    os.setpgid(0, 0)  # so that its own processes end with it
    # An attacker computes on a machine of its own. Here it gets the time that the daemons and their clients leave, so that a client's latency shows
    # what the attack costs the daemon, and not what the attacker computes.
    os.nice(19)
    die_with_parent()
    try:
        pipe.send(case.attack(target, until))
    except (AssertionError, OSError, ValueError, LookupError) as error:
        pipe.send(f"{type(error).__name__} {error}")


class Attack:
    """A case at work in a process of its own."""

    def __init__(self, case, target, seconds):
        self.until = Until(seconds)
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_attack_process, args=(case, target, self.until, theirs))
        self.process.start()
        theirs.close()

    def result(self, seconds):
        """Waits for its end. (what it did, what is wrong)"""
        self.until.enough.set()
        try:
            if not self.pipe.poll(seconds + MOST_ATTACK_SECONDS):
                return {}, ["the attack does not end"]
            counts = self.pipe.recv()
            return (counts, []) if isinstance(counts, dict) else ({}, [counts])
        except EOFError:
            return {}, ["the process of the attack has died"]
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.join()


def _judge_counts(case, counts, bounds):
    failures = [f"{counts.get(what, 0):g} {what}, fewer than {least}" for what, least in case.least.items()
                if counts.get(what, 0) < least]
    judged = dict(case.most if bounds.measured else {}, **(case.most_timed if bounds.timed else {}))
    failures += [f"{counts[what]:g} {what}, more than {most:g}" for what, most in judged.items() if counts[what] > most]
    return failures


class Client:
    """What one of the clients beside an attack has seen of it."""

    def __init__(self, neighbour, begin, end):
        calls, self.errors = neighbour.end()
        self.name = neighbour.name
        self.quiet = [call.latency for call in calls if call.begin < begin]
        self.beside = [call.latency for call in calls if begin <= call.begin < end]

    def p99(self):
        return percentile(self.beside, 0.99)

    def ratio(self):
        return self.p99() / max(percentile(self.quiet, 0.99), LEAST_QUIET_P99)

    def most(self):
        return max(self.beside, default=float("nan"))

    def figures(self):
        if not self.beside:
            return f"{self.name} -"
        return f"{self.name} p99 {self.p99() * 1e3:.1f} ms ({self.ratio():.1f}x) max {self.most() * 1e3:.0f}"

    def judge(self, bounds):
        failures = [f"{len(self.errors)} errors of the client of {self.name}, first {self.errors[0]}"] if self.errors else []
        if not bounds.timed:
            return failures
        if bounds.ratio and self.name != NewConnection.NAME and not self.ratio() <= bounds.ratio:
            failures.append(f"{self.name}: p99 is {self.ratio():.1f} times that of the quiet client, more than {bounds.ratio:g}")
        most = {Health.NAME: MOST_HEALTH_SECONDS, NewConnection.NAME: MOST_CONNECT_SECONDS}.get(self.name)
        if most and not self.most() <= most:
            failures.append(f"{self.name}: a call took {self.most():.2f} s, more than {most:g} s")
        return failures


def _beside(case, target, bounds, seconds):
    """The attack with clients beside it: (clients, what the attack did, what is wrong)"""
    # A comparison with daemons that nobody attacks would measure the clients, too.
    kinds = [] if case.twin else [(Health, target), (RareConnection if case.few_connections else NewConnection, target)]
    if case.transactions and not case.twin:
        kinds.append((Data, target if target.name == "tcd" else target.other))
    neighbours = [Neighbour(kind, at.for_client(), bounds.patience) for kind, at in kinds]
    failures = []

    def all_go_on(when):
        for each in neighbours:
            if not each.await_calls(LEAST_CALLS) and not failures:
                failures.append(f"{each.name}: no {LEAST_CALLS} calls {when} within {bounds.patience:g} s")

    all_go_on("before the attack")
    time.sleep(bounds.quiet_seconds)
    begin = time.monotonic()
    at_work = Attack(case, target, seconds)
    all_go_on("during the attack")
    counts, wrong = at_work.result(seconds)
    end = time.monotonic()
    all_go_on("after the attack")
    return [Client(each, begin, end) for each in neighbours], counts, wrong + failures


def _afterwards(target, memory, descriptors, bounds):
    """(seconds until a new client was served, bytes of memory more than before, what is wrong)"""
    try:
        seconds = target.await_health(max(AFTERWARDS_SECONDS, bounds.patience))
    except AssertionError as error:
        return float("nan"), 0, [str(error)]
    failures = []

    def await_most(number, most):
        """Waits for the number to fall to that. Returns what it is then."""
        end = time.monotonic() + max(AFTERWARDS_SECONDS, bounds.patience)
        while number() > most and time.monotonic() < end:
            time.sleep(0.05)
        return number()

    left = await_most(target.descriptors, descriptors + MOST_NEW_DESCRIPTORS)
    if left > descriptors + MOST_NEW_DESCRIPTORS:
        failures.append(f"{left} descriptors are left open, {descriptors} were before")
    grown = await_most(target.memory_bytes, memory + MOST_NEW_MEMORY) - memory if bounds.measured else target.memory_bytes() - memory
    if bounds.measured and grown > MOST_NEW_MEMORY:
        failures.append(f"{grown >> 20} MiB more memory than before")
    return seconds, grown, failures


def run_case(case, target, bounds, seconds):
    """What is wrong with one case against one daemon. Prints a line of figures."""
    begin, memory, descriptors = time.monotonic(), target.memory_bytes(), target.descriptors()
    clients, counts, failures = _beside(case, target, bounds, seconds)
    for daemon in (target, target.other):
        if not daemon.running():
            failures.insert(0, f"{daemon.name} has ended with {daemon.process.returncode}\n{daemon.end_of_log()}")
    if not target.running() or not target.other.running():
        return failures
    failures += _judge_counts(case, counts, bounds) if counts else []
    for client in clients:
        failures += client.judge(bounds)
    afterwards, grown, wrong = _afterwards(target, memory, descriptors, bounds)
    failures += wrong
    said = ", ".join(f"{number:g} {what}" for what, number in counts.items())
    print(f"  {'FAILED' if failures else 'ok':6} {case.name:24} {target.name}  " + "  ".join(each.figures() for each in clients) +
          f"  after {afterwards * 1e3:.0f} ms  +{max(grown, 0) >> 20} MiB  {time.monotonic() - begin:.1f} s  | {said}", flush=True)
    return failures
