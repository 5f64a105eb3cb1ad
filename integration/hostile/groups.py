"""Control groups (version 1 or 2): what the kernel lets a daemon have of memory or threads. They need root and a tree that can be written to."""

import os

# Resource -> (folder of its groups, file of the limit, file of the highest use so far)
VERSIONS = {
    "memory": [("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
               ("/sys/fs/cgroup", "memory.max", "memory.peak")],
    "pids": [("/sys/fs/cgroup/pids", "pids.max", "pids.peak"), ("/sys/fs/cgroup", "pids.max", "pids.peak")],
}


class Unavailable(Exception):
    """This machine lacks what a case needs; the message says what."""


class Group:
    def __init__(self, resource, name, limit):
        self.folder = None
        for root, limit_file, peak_file in VERSIONS[resource]:
            folder = f"{root}/deut-hostile-{os.getpid()}-{name}"
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.folder, self.peak_file = folder, f"{folder}/{peak_file}"
            # A folder elsewhere than in a tree of groups, and a controller that is not delegated, have no such file.
            if os.access(f"{folder}/{limit_file}", os.W_OK):
                with open(f"{folder}/{limit_file}", "w", encoding="ascii") as file:
                    file.write(str(limit))
                return
            self.remove()
        raise Unavailable(f"no control group for {resource} can be made here")

    def prefix(self):
        """Words before a command: it enters the group before it begins."""
        return ["/bin/sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh"]

    def peak(self):
        """The highest use so far; 0 where the kernel does not tell."""
        try:
            with open(self.peak_file, encoding="ascii") as file:
                return int(file.read())
        except OSError:
            return 0

    def remove(self):
        """After its processes have ended."""
        if self.folder:
            try:
                os.rmdir(self.folder)
            except OSError:
                pass
