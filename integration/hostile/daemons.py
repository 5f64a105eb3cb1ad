"""A dcd and a tcd of a run, each a process with a folder and a port of its own."""

import os
import socket
import subprocess
import time

from http2 import Connection, tls_context


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# The attacker has the best certificate there is: the client's beside it at tcd, the transaction component's at dcd.
ROLES = {"tcd": ["--tls_dc=dcd", "--tls_clients=client", "--tls_admins=client"], "dcd": ["--tls_tc=tcd,client"]}


class Daemon:
    """What a case attacks: `host`, `port` and `tls` say where, the rest says how it bears it."""

    def __init__(self, name, program, directory, flags, tls_directory, io, descriptors):
        self.name, self.host, self.port = name, "127.0.0.1", free_port()
        self.tls = tls_context(tls_directory, "client") if tls_directory else None
        self.log = f"{directory}/{name}.log"
        command = [program, f"--listen=127.0.0.1:{self.port}", f"--data_dir={directory}/{name}", f"--io={io}"] + flags
        if descriptors:
            command = ["prlimit", f"--nofile={descriptors}:{descriptors}"] + command
        if tls_directory:
            command += [f"--tls_cert={tls_directory}/{name}.pem", f"--tls_key={tls_directory}/{name}.key",
                        f"--tls_ca={tls_directory}/ca.pem"] + ROLES[name]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def await_health(self, seconds):
        """Waits until a new connection is answered. Returns how long that took."""
        begin = time.monotonic()
        while True:
            try:
                connection = Connection(self, timeout=max(0.1, begin + seconds - time.monotonic()))
                try:
                    if connection.health():
                        return time.monotonic() - begin
                finally:
                    connection.close()
            except OSError:
                pass
            if time.monotonic() - begin > seconds or self.process.poll() is not None:
                raise AssertionError(f"{self.name} does not answer a new client within {seconds} s\n{self.end_of_log()}")
            time.sleep(0.01)

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end_of_log(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return f"--- end of {self.log}\n" + log.read()[-3000:]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Cluster:
    def __init__(self, programs, directory, tls_directory, io, descriptors=0):
        self.dcd = Daemon("dcd", programs["dcd"], directory, [], tls_directory, io, descriptors)
        small = ["--record_buckets_log2=14", "--log_segment=16MiB", "--log_buffer=16MiB"]
        self.tcd = Daemon("tcd", programs["tcd"], directory, [f"--dc=127.0.0.1:{self.dcd.port}"] + small, tls_directory,
                          io, descriptors)
        try:
            for daemon in (self.dcd, self.tcd):
                daemon.await_health(60)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        self.tcd.stop()
        self.dcd.stop()
