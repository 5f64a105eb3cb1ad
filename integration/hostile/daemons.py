"""A dcd and a tcd of a run, each a process with a folder and a port of its own."""

import collections
import os
import re
import signal
import socket
import subprocess
import time

from client import Connection
from groups import Group, Unavailable
from http2 import tls_context
from processes import die_with_parent

# The attacker's certificate has the rights of the client beside it at tcd, and those of the transaction component at dcd. It has a name of its own,
# as limits of one client are limits of a name.
NAMES = ["tcd", "dcd", "client", "hostile"]
ROLES = {"tcd": ["--tls_dc=dcd", "--tls_clients=client,hostile", "--tls_admins=client,hostile"], "dcd": ["--tls_tc=tcd,client,hostile"]}
FLAGS = {"tcd": ["--record_buckets_log2=14", "--log_segment=16MiB", "--log_buffer=16MiB"], "dcd": []}
# A line of a log that says so means a defect, whatever else holds.
DEFECTS = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|FATAL|fail-stop|CHECK failed|terminate called")

# What all daemons of a run have in common, and what one case asks for: `descriptors`, `memory`, `threads` are limits, 0 for none; `flags` are
# further ones of both daemons.
Run = collections.namedtuple("Run", "programs tls_directory io patience environment")
Limits = collections.namedtuple("Limits", "descriptors memory threads flags", defaults=(0, 0, 0, ()))
Address = collections.namedtuple("Address", "name host port tls")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Daemon:
    """What a case attacks: `host`, `port` and `tls` say where, the rest says how it bears it."""

    def __init__(self, name, directory, flags, run, limits):
        self.name, self.host, self.port = name, "127.0.0.1", free_port()
        self.run, self.other, self.groups = run, None, []
        self.tls = tls_context(run.tls_directory, "hostile") if run.tls_directory else None
        self.tls_of_client = tls_context(run.tls_directory, "client") if run.tls_directory else None
        self.log = f"{directory}/{name}.log"
        command = [run.programs[name], f"--listen=127.0.0.1:{self.port}", f"--data_dir={directory}/{name}", f"--io={run.io}"]
        command += FLAGS[name] + flags + list(limits.flags)
        if run.tls_directory:
            stem = f"{run.tls_directory}/{name}"
            command += [f"--tls_cert={stem}.pem", f"--tls_key={stem}.key", f"--tls_ca={run.tls_directory}/ca.pem"] + ROLES[name]
        command = self._prefix(limits) + command
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=run.environment,
                                            preexec_fn=die_with_parent)

    def _prefix(self, limits):
        words = []
        try:
            for resource, limit in (("memory", limits.memory), ("pids", limits.threads)):
                if limit:
                    self.groups.append(Group(resource, self.name, limit))
                    words += self.groups[-1].prefix()
        except Unavailable:
            self._remove_groups()
            raise
        if limits.descriptors:
            words += ["prlimit", f"--nofile={limits.descriptors}:{limits.descriptors}"]
        return words

    def for_client(self):
        """This daemon, as the well-behaved clients connect to it."""
        return Address(self.name, self.host, self.port, self.tls_of_client)

    def running(self):
        return self.process.poll() is None

    def await_health(self, seconds):
        """Waits until a new connection is answered. Returns how long that took."""
        begin = time.monotonic()
        while True:
            try:
                connection = Connection(self.for_client(), timeout=max(0.1, begin + seconds - time.monotonic()))
                try:
                    if connection.health():
                        return time.monotonic() - begin
                finally:
                    connection.close()
            except OSError:
                pass
            if not self.running():
                raise AssertionError(f"{self.name} has ended with status {self.process.returncode}\n{self.end_of_log()}")
            if time.monotonic() - begin > seconds:
                raise AssertionError(f"{self.name} does not serve a new client within {seconds:g} s\n{self.end_of_log()}")
            time.sleep(0.01)

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_seconds(self):
        """What all of its threads have used so far."""
        return time.clock_gettime((~self.process.pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) numbers it

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def signal(self, number):
        self.process.send_signal(number)

    def end_of_log(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return f"--- end of {self.log}\n" + log.read()[-3000:]

    def defects(self):
        """Lines of the log that report one."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return [f"the log of {self.name}: {line.strip()}" for line in log if DEFECTS.search(line)][:5]

    def stop(self):
        """Asks it to stop. Returns what is wrong with how it ended, and with its log."""
        failures = []
        if self.running():
            self.signal(signal.SIGCONT)  # a case that failed may have left it stopped
            self.process.terminate()
            try:
                self.process.wait(self.run.patience)
            except subprocess.TimeoutExpired:
                failures.append(f"{self.name} has not ended {self.run.patience:g} s after SIGTERM\n{self.end_of_log()}")
                self.signal(signal.SIGKILL)
                self.process.wait()
        if not failures and self.process.returncode != 0:
            failures.append(f"{self.name} has ended with status {self.process.returncode}\n{self.end_of_log()}")
        self._remove_groups()
        return failures + self.defects()

    def _remove_groups(self):
        for group in self.groups:
            group.remove()


class Cluster:
    def __init__(self, directory, run, limits):
        self.daemons = []
        try:
            self.dcd = self._start(Daemon("dcd", directory, [], run, limits))
            self.tcd = self._start(Daemon("tcd", directory, [f"--dc=127.0.0.1:{self.dcd.port}"], run, limits))
            self.tcd.other, self.dcd.other = self.dcd, self.tcd
            for daemon in (self.dcd, self.tcd):
                daemon.await_health(run.patience)
        except BaseException:
            self.stop()
            raise

    def _start(self, daemon):
        self.daemons.insert(0, daemon)
        return daemon

    def running(self):
        return all(daemon.running() for daemon in self.daemons)

    def stop(self):
        """Returns what is wrong with how they ended. The tcd goes first: it ends while its data component is there."""
        return [failure for daemon in self.daemons for failure in daemon.stop()]
