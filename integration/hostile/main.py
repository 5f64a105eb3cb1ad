"""Attacks real daemons, one case after the other, with a well-behaved client beside each. README.md says what must hold.

Usage: main.py --tcd=PROGRAM --dcd=PROGRAM [--seconds=N] [--slice] [--tls=both|on|off] [--io=posix,uring] [--p99=N] [CASE...]
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from daemons import Cluster  # noqa: E402
from neighbour import Neighbour, percentile  # noqa: E402
import registry  # noqa: E402

QUIET_SECONDS = 1.0
# Afterwards a new client is answered within this time.
AFTERWARDS_SECONDS = 15.0
# The quota of gRPC's buffers is 256 MiB, and the allocator keeps as much.
MOST_NEW_MEMORY = 512 << 20
# The quiet p99 of a loopback call can be shorter than a turn of the scheduler; the ratio is never asked of less.
LEAST_QUIET_P99 = 0.001


def attack_process(module, target, until, pipe):
    try:
        module.attack(target, until)
        pipe.send("")
    except AssertionError as error:
        pipe.send(str(error) or "an assertion of the case failed")


def measure(target, module, seconds):
    """(latencies, latencies of new connections, errors, what the case says) of the client beside the attack, if there is one."""
    neighbour = Neighbour(target)
    said = ""
    if module is None:
        time.sleep(seconds)
    else:
        ours, theirs = multiprocessing.Pipe()
        attacker = multiprocessing.Process(target=attack_process,
                                           args=(module, target, time.monotonic() + seconds, theirs), daemon=True)
        attacker.start()
        attacker.join(seconds + 30)
        if attacker.is_alive():
            attacker.kill()
            said = "the attack does not end"
        else:
            said = ours.recv() if ours.poll() else f"the attack ended with status {attacker.exitcode}"
    return (*neighbour.end(), said)


def run_case(name, module, target, seconds, most_ratio):
    """Failures of one case against one daemon."""
    failures = []
    quiet, quiet_new, errors, _ = measure(target, None, QUIET_SECONDS)
    failures += [f"quiet: {error}" for error in errors[:3]]
    memory, descriptors = target.memory_bytes(), target.descriptors()
    calls, new, errors, said = measure(target, module, seconds)
    if target.process.poll() is not None:
        return [f"{target.name} has ended with {target.process.returncode}\n{target.end_of_log()}"]
    if said:
        failures.append(said)
    if errors:
        failures.append(f"{len(errors)} errors of the client beside it, first: {errors[0]}")
    p99 = percentile(calls, 0.99)
    ratio = p99 / max(percentile(quiet, 0.99), LEAST_QUIET_P99)
    if not ratio <= most_ratio:
        failures.append(f"p99 is {ratio:.1f} times that of the quiet client, more than {most_ratio:g}")
    try:
        afterwards = target.await_health(AFTERWARDS_SECONDS)
    except AssertionError as error:
        return failures + [str(error)]
    end = time.monotonic() + AFTERWARDS_SECONDS
    while target.descriptors() > descriptors + 64 and time.monotonic() < end:
        time.sleep(0.1)
    if target.descriptors() > descriptors + 64:
        failures.append(f"{target.descriptors()} descriptors are left open, {descriptors} were before")
    grown = target.memory_bytes() - memory
    if grown > MOST_NEW_MEMORY:
        failures.append(f"{grown >> 20} MiB more memory than before")
    print(f"  {name:24} {target.name}  calls {len(calls):6}  p99 {p99 * 1e3:7.2f} ms  ratio {ratio:6.1f}  "
          f"new p99 {percentile(new, 0.99) * 1e3:7.1f} ms  after {afterwards * 1e3:6.1f} ms  +{max(grown, 0) >> 20} MiB"
          f"  {'FAILED' if failures else 'ok'}", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcd", required=True)
    parser.add_argument("--dcd", required=True)
    parser.add_argument("--certificates", default=os.path.join(os.path.dirname(__file__), "../../scripts/certificates"))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each case against each daemon")
    parser.add_argument("--slice", action="store_true", help="only the cases that CI runs")
    parser.add_argument("--tls", choices=["both", "on", "off"], default="both")
    parser.add_argument("--io", default="posix,uring")
    parser.add_argument("--p99", type=float, default=5.0, help="most times the quiet p99 of the client beside the attack")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    known = registry.load()
    unknown = [name for name in options.cases if name not in known]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = {name: module for name, module in known.items()
              if (name in options.cases if options.cases else module.SLICE or not options.slice)}
    programs = {"tcd": os.path.abspath(options.tcd), "dcd": os.path.abspath(options.dcd)}
    failed = passed = 0
    for tls in {"both": [False, True], "on": [True], "off": [False]}[options.tls]:
        for io in options.io.split(","):
            directory = tempfile.mkdtemp(prefix="hostile-")
            certificates = None
            if tls:
                certificates = directory + "/certs"
                subprocess.run([options.certificates, certificates, "tcd", "dcd", "client"], check=True,
                               stdout=subprocess.DEVNULL)
            print(f"{'mutual TLS' if tls else 'without TLS'}, io {io}", flush=True)
            groups = {}
            for name, module in chosen.items():
                groups.setdefault(getattr(module, "DESCRIPTORS", 0), []).append((name, module))
            for descriptors, group in groups.items():
                cluster = Cluster(programs, tempfile.mkdtemp(dir=directory), certificates, io, descriptors)
                try:
                    for name, module in group:
                        for target in (cluster.tcd, cluster.dcd):
                            failures = run_case(name, module, target, options.seconds, options.p99)
                            passed, failed = passed + (not failures), failed + bool(failures)
                            for failure in failures:
                                print(f"FAILED {name} against {target.name}: {failure}", flush=True)
                            if target.process.poll() is not None:
                                raise SystemExit(1)
                finally:
                    cluster.stop()
            shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
