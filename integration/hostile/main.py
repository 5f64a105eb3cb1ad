"""Attacks real daemons, one case after the other, with well-behaved clients beside each. README.md says what must hold.

Usage: main.py --tcd=PROGRAM --dcd=PROGRAM [OPTION...] [CASE...]
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from daemons import NAMES, Cluster, Run  # noqa: E402
from groups import Unavailable  # noqa: E402
from judge import Bounds, run_case  # noqa: E402
import registry  # noqa: E402

SANITIZERS = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_init_order=1:check_initialization_order=1",
              "UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19"}


MOST_TIMES_QUIET_P99 = 5.0
# AddressSanitizer adds guards around each allocation, a shadow of an eighth, and 256 MiB of freed memory that it keeps.
SANITIZER_MEMORY = 3
# The attackers, the clients and both daemons are busy with a flood. On fewer processors a client waits for its turn of the scheduler, whatever the
# daemon does (README.md, "Figures").
LEAST_PROCESSORS = 8


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcd", required=True)
    parser.add_argument("--dcd", required=True)
    parser.add_argument("--certificates", default=os.path.join(os.path.dirname(__file__), "../../scripts/certificates"))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each case against each daemon; at least one round in any case")
    parser.add_argument("--minutes", type=float, default=0.0, help="all cases again and again until that time is over")
    parser.add_argument("--slice", action="store_true", help="only the cases that CI runs, one round each; latencies are not judged")
    parser.add_argument("--sanitized", action="store_true", help="the daemons are slow: neither latencies nor memory are judged")
    parser.add_argument("--tls", choices=["both", "on", "off"], default="both")
    parser.add_argument("--io", default="posix,uring")
    parser.add_argument("--p99", type=float, default=MOST_TIMES_QUIET_P99 if os.cpu_count() >= LEAST_PROCESSORS else 0.0,
                        help="most times the quiet p99 of a client beside the attack; 0 = not judged, which is the default with fewer "
                        f"than {LEAST_PROCESSORS} processors")
    parser.add_argument("--keep", action="store_true", help="the folders and logs of the daemons stay")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    known = registry.load()
    unknown = [name for name in options.cases if name not in known]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}")
    options.chosen = [case for case in known.values() if (case.name in options.cases if options.cases else case.slice or not options.slice)]
    return options


class Suite:
    def __init__(self, options):
        self.options = options
        loose = options.slice or options.sanitized
        self.bounds = Bounds(0.0 if loose else 2.0, not loose, not options.sanitized, 60.0 if loose else 15.0, options.p99)
        self.seconds = 0.0 if options.slice else options.seconds
        self.passed, self.failed, self.skipped = 0, 0, 0

    def fail(self, name, failures):
        self.failed += bool(failures)
        for failure in failures:
            print(f"FAILED {name}: {failure}", flush=True)

    def limits(self, case):
        limits = case.limits
        return limits._replace(memory=limits.memory * SANITIZER_MEMORY) if self.options.sanitized else limits

    def run_group(self, cases, directory, run):
        """Cases that share their daemons. Those behind a daemon's end get new ones."""
        left = [(case, name) for case in cases for name in case.targets]
        while left:
            clusters = []
            try:
                for _ in range(2 if cases[0].twin else 1):
                    clusters.append(Cluster(tempfile.mkdtemp(dir=directory), run, self.limits(cases[0])))
                while left and clusters[0].running():
                    case, name = left.pop(0)
                    target = getattr(clusters[0], name)
                    target.twin = getattr(clusters[-1], name)
                    failures = run_case(case, target, self.bounds, self.seconds)
                    self.passed += not failures
                    self.fail(f"{case.name} against {name}", failures)
                    if case.fresh:
                        break
            except Unavailable as why:
                self.skipped += len(left)
                print(f"  SKIPPED {', '.join(case.name for case in cases)}: {why}", flush=True)
                left = []
            except AssertionError as why:
                self.fail(f"the start of daemons for {cases[0].name}", [str(why)])
                left = []
            finally:
                for cluster in clusters:
                    self.fail(f"the end of daemons after {', '.join(case.name for case in cases)}", cluster.stop())

    def run_all(self, tls, io):
        directory = tempfile.mkdtemp(prefix="hostile-")
        certificates = None
        if tls:
            certificates = directory + "/certs"
            subprocess.run([self.options.certificates, certificates, *NAMES], check=True, stdout=subprocess.DEVNULL)
        programs = {"tcd": os.path.abspath(self.options.tcd), "dcd": os.path.abspath(self.options.dcd)}
        run = Run(programs, certificates, io, self.bounds.patience, dict(SANITIZERS, **os.environ))
        print(f"{'mutual TLS' if tls else 'without TLS'}, io {io}", flush=True)
        groups = {}
        for case in self.options.chosen:
            if tls in case.tls:
                groups.setdefault((case.limits, case.name if case.fresh or case.twin else ""), []).append(case)
        for cases in groups.values():
            self.run_group(cases, directory, run)
        if not self.options.keep:
            shutil.rmtree(directory, ignore_errors=True)


def raise_descriptor_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, 65536), max(hard, 65536)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main():
    options = parse_options()
    raise_descriptor_limit()
    suite = Suite(options)
    if suite.bounds.timed and not options.p99:
        print(f"{os.cpu_count()} processors: the p99 of clients is not compared with the quiet one (--p99={MOST_TIMES_QUIET_P99:g} compares it)")
    end = time.monotonic() + options.minutes * 60
    while True:
        for tls in {"both": [False, True], "on": [True], "off": [False]}[options.tls]:
            for io in options.io.split(","):
                suite.run_all(tls, io)
        if time.monotonic() >= end:
            break
    print(f"{suite.passed} passed, {suite.failed} failed, {suite.skipped} skipped")
    return 1 if suite.failed or not suite.passed else 0


if __name__ == "__main__":
    sys.exit(main())
