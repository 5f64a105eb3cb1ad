"""Control groups that bound all memory of a contender, page cache included (scripts/bench --memory_limit). Called by bench.py.

Each contender has a group of its own, below the group of this program. Its processes enter the group before their program begins. The kernel charges a
page of a file to the group that first touches it, so a contender's files use up its own limit, and nobody else's. Pages of
programs and libraries that were in the cache before the run count for no contender. The groups do not swap.
"""

import collections
import errno
import os
import re
import signal
import sys
import time

# The files of a group in the two versions of control groups. `hits`: a file and the field in it. `settings`: (file, value, whether there is no limit without it).
# Version 1 could also limit memory and swap together (memory.memsw). The kernel looks at that limit first, and then counts no hits of the other one; with a
# swappiness of 0 it does not swap for the sake of the group's limit.
Version = collections.namedtuple('Version', 'limit peak hits kills file_pages settings')
ONE = Version(
    limit='memory.limit_in_bytes', peak='memory.max_usage_in_bytes', hits=('memory.failcnt', None), kills='memory.oom_control', file_pages='cache',
    settings=lambda limit: [('memory.limit_in_bytes', limit, True), ('memory.swappiness', 0, True)])
TWO = Version(
    limit='memory.max', peak='memory.peak', hits=('memory.events', 'max'), kills='memory.events', file_pages='file',
    settings=lambda limit: [('memory.max', limit, True), ('memory.swap.max', 0, False), ('memory.oom.group', 1, False)])

NEEDED = ('it needs root, and a memory controller of control groups (version 1 or 2) that this program may write to. Under systemd: '
          'systemd-run --scope -p Delegate=yes scripts/bench ...; in a container: /sys/fs/cgroup mounted for writing')
REMOVE_LIMIT = 10  # seconds


class Unavailable(Exception):
    """This machine gives no group, or has not enough memory for all of them."""

    def __init__(self, why, needed=NEEDED):
        super().__init__(f'--memory_limit: {why}; {needed}')


def read(*path):
    """The text of a file; empty if there is none."""
    try:
        with open(os.path.join(*path)) as file:
            return file.read()
    except OSError:
        return ''


def write(value, *path):
    # The file is never created, and is written by one system call, whose error is the kernel's answer.
    file = os.open(os.path.join(*path), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def find(groups, mounts):
    """(version, folder of this process's group, folder of the topmost visible one), by the texts of /proc/self/cgroup and /proc/self/mountinfo.

    The memory controller belongs to version 1 wherever the first text names it, even if version 2 is mounted, too.
    """
    paths = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(':', 2)
        for controller in controllers.split(','):
            paths[controller] = path
    version, path = (ONE, paths['memory']) if 'memory' in paths else (TWO, paths.get('', '/..'))
    for line in mounts.splitlines():
        words = line.split(' ')
        root, top, kind, options = words[3], words[4], words[words.index('-') + 1], words[-1].split(',')
        if kind != ('cgroup' if version is ONE else 'cgroup2') or version is ONE and 'memory' not in options:
            continue
        # A mount within a container may show another part of the tree than that of this process.
        below = os.path.relpath(path, root)
        if not any(part.startswith(('/..', '..')) for part in (path, root, below)):
            return version, os.path.normpath(os.path.join(top, below)), top
    raise Unavailable('no control group with a memory controller is mounted here')


def own_ancestors():
    """This process and those that started it."""
    found, pid = [], os.getpid()
    while pid > 0:
        found.append(pid)
        status = re.search(r'^PPid:\s*(\d+)', read('/proc', str(pid), 'status'), re.M)
        pid = int(status[1]) if status else 0
    return found


class Groups:
    """The groups of a run."""

    def __init__(self, limit, place=None):
        self.limit = limit
        self.version, self.folder, self.top = place or find(read('/proc/self/cgroup'), read('/proc/self/mountinfo'))
        self.driver = None  # version 2: the group that this program has moved to
        self.moved = []
        self.delegated = False
        try:
            if self.version is TWO:
                self.delegate()
            self.group('probe').remove()
        except OSError as error:
            self.close()
            raise Unavailable(f'no group can be made in {self.folder} ({error.strerror}: {error.filename or "refused"})') from error

    def delegate(self):
        """Lets the groups below this one have limits (version 2).

        The kernel refuses that while the group itself has processes, unless it is the topmost. They then move into a group below, too. They have to be this
        program and those that started it: others are not ours to move.
        """
        if 'memory' not in read(self.folder, 'cgroup.controllers').split():
            raise Unavailable(f'{self.folder} has no memory controller')
        switch = os.path.join(self.folder, 'cgroup.subtree_control')
        if 'memory' in read(switch).split():
            return
        try:
            write('+memory', switch)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            inside = [int(pid) for pid in read(self.folder, 'cgroup.procs').split()]
            if not set(inside) <= set(own_ancestors()):
                raise Unavailable(f'{self.folder} also has processes that are not of this run') from error
            self.driver = self.path('driver')
            os.mkdir(self.driver)
            for pid in inside:
                write(pid, self.driver, 'cgroup.procs')
                self.moved.append(pid)
            write('+memory', switch)
        self.delegated = True

    def path(self, name):
        return os.path.join(self.folder, f'deut-bench-{os.getpid()}-{name}')

    def group(self, name):
        """A new one, of a contender."""
        group = Group(self.version, self.path(name), self.limit)
        group.make()
        return group

    def check_room(self, contenders):
        """All groups have to fit at once: else the kernel would take an idle contender's pages for those of another one."""
        room = int(re.search(r'MemAvailable:\s*(\d+)', read('/proc/meminfo'))[1]) << 10
        folder = self.folder
        while True:  # a group above this one may have a limit, too
            limit = read(folder, self.version.limit).strip()
            if limit.isdigit():
                room = min(room, int(limit))
            if folder == self.top:
                break
            folder = os.path.dirname(folder)
        if contenders * self.limit > room:
            raise Unavailable(f'{contenders} contenders of {self.limit:,} bytes each do not fit at once into the {room:,} bytes that are available',
                              'choose a smaller limit, or fewer contenders in each run')

    def close(self):
        """All is as it was before. REQUIRES: the groups of the contenders are removed."""
        try:
            if self.delegated:
                write('-memory', self.folder, 'cgroup.subtree_control')
            for pid in self.moved:
                try:
                    write(pid, self.folder, 'cgroup.procs')
                except ProcessLookupError:
                    pass  # it has ended meanwhile
            if self.driver is not None:
                os.rmdir(self.driver)
        except OSError as error:
            print(f'bench: the control group {self.folder} is not as it was before: {error.strerror}', file=sys.stderr)
        self.delegated, self.moved, self.driver = False, [], None


class Group:
    """The group of one contender."""

    def __init__(self, version, folder, limit):
        self.version, self.folder, self.limit = version, folder, limit

    def make(self):
        os.mkdir(self.folder)
        try:
            for name, value, needed in self.version.settings(self.limit):
                try:
                    write(value, self.folder, name)
                except OSError:
                    # A kernel without swap, or an older one, has no such file.
                    if needed:
                        raise
        except OSError:
            os.rmdir(self.folder)
            raise

    def within(self):
        """The words before a command that begins in this group. The group is entered first, by the same process, as a later word may drop the right to do so."""
        return ['/bin/sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.folder]

    def number(self, file, field=None):
        """The number in a file of this group, or the one behind the field's name; None if there is none."""
        match = re.search(r'^(\d+)$' if field is None else rf'^{field} (\d+)$', read(self.folder, file), re.M)
        return int(match[1]) if match else None

    def kills(self):
        """How many of its processes the kernel has ended because the group had no memory left."""
        return self.number(self.version.kills, 'oom_kill') or 0

    def usage(self):
        version = self.version
        return {
            'limit_bytes': self.limit,
            'peak_bytes': self.number(version.peak),
            # The pages of files on a disk. Shared memory counts as pages of files for the kernel, but cannot be given up.
            'file_bytes': (self.number('memory.stat', version.file_pages) or 0) - (self.number('memory.stat', 'shmem') or 0),
            'limit_hits': self.number(*version.hits),
            'kills': self.kills(),
        }

    def remove(self):
        """Ends the processes that are left in it, and removes it."""
        limit = time.monotonic() + REMOVE_LIMIT
        while True:
            # A process of another namespace of processes is shown as 0, which os.kill would take for this program's own group.
            for pid in set(read(self.folder, 'cgroup.procs').split()) - {'0'}:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended meanwhile
            try:
                os.rmdir(self.folder)
                return
            except FileNotFoundError:
                return
            except OSError as error:  # a process that is ending still counts
                if time.monotonic() > limit:
                    print(f'bench: the control group {self.folder} stays behind: {error.strerror}', file=sys.stderr)
                    return
            time.sleep(0.05)
