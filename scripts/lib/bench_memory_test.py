"""Tests of the groups that bound a contender's memory: a group that bounds nothing must not pass for one."""

import errno
import os
import subprocess
import tempfile
import unittest
from unittest import mock

import bench_memory
from bench_memory import ONE, TWO, Unavailable, find

MIB = 1 << 20


def mount(root, top, kind, options):
    return f'35 31 0:32 {root} {top} rw,relatime shared:9 - {kind} none rw,{options}\n'


class FindTest(unittest.TestCase):
    def test_version_one_where_it_has_the_memory(self):
        mounts = mount('/', '/g/cpu', 'cgroup', 'cpu') + mount('/', '/g/memory', 'cgroup', 'memory') + mount('/', '/g/two', 'cgroup2', 'nsdelegate')
        self.assertEqual(find('4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/d\n', mounts), (ONE, '/g/memory/a/b', '/g/memory'))

    def test_version_two_elsewhere(self):
        mounts = mount('/', '/', 'ext4', 'memory') + mount('/', '/g', 'cgroup2', 'nsdelegate')
        self.assertEqual(find('0::/user.slice/a.scope\n', mounts), (TWO, '/g/user.slice/a.scope', '/g'))
        self.assertEqual(find('0::/\n', mounts), (TWO, '/g', '/g'))

    def test_a_container_sees_its_part_of_the_tree(self):
        mounts = mount('/docker/a', '/g/memory', 'cgroup', 'memory')
        self.assertEqual(find('4:memory:/docker/a\n', mounts), (ONE, '/g/memory', '/g/memory'))
        self.assertEqual(find('4:memory:/docker/a/b\n', mounts), (ONE, '/g/memory/b', '/g/memory'))

    def test_none_is_an_error_that_says_what_is_needed(self):
        for groups, mounts in (('0::/\n', ''), ('4:memory:/\n', mount('/', '/g', 'cgroup2', 'rw')), ('1:cpu:/\n', mount('/', '/g', 'cgroup2', 'rw')),
                               ('4:memory:/docker/b\n', mount('/docker/a', '/g', 'cgroup', 'memory')), ('0::/../b\n', mount('/', '/g', 'cgroup2', 'rw'))):
            with self.assertRaisesRegex(Unavailable, 'needs root, and a memory controller'):
                find(groups, mounts)


class FakeKernel:
    """Version 2 in a plain folder: a group with processes lets none below it have limits."""

    def __init__(self, folder, inside):
        self.folder = folder
        self.put('memory cpu', folder, 'cgroup.controllers')
        self.put('cpu', folder, 'cgroup.subtree_control')
        self.put('\n'.join(map(str, inside)), folder, 'cgroup.procs')

    @staticmethod
    def put(text, *path):
        with open(os.path.join(*path), 'w') as file:
            file.write(text)

    def write(self, value, *path):
        path = os.path.join(*path)
        folder, name = os.path.split(path)
        if value == '+memory' and bench_memory.read(folder, 'cgroup.procs'):
            raise OSError(errno.EBUSY, 'busy', path)
        if name == 'cgroup.subtree_control':
            self.put('cpu memory' if value == '+memory' else 'cpu', path)
        elif name == 'cgroup.procs':
            for other in (self.folder, folder):
                pids = set(bench_memory.read(other, name).split()) - {str(value)}
                self.put('\n'.join(pids | ({str(value)} if other == folder else set())), other, name)
        elif 'memory' in bench_memory.read(self.folder, 'cgroup.subtree_control'):
            self.put(str(value), path)
        else:
            raise OSError(errno.ENOENT, 'no such file', path)


RMDIR = os.rmdir


def remove_with_files(folder):
    """As rmdir of a group, whose files are part of it."""
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    RMDIR(folder)


class GroupsTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def kernel(self, inside):
        kernel = FakeKernel(self.folder, inside)
        self.enterContext(mock.patch('bench_memory.write', kernel.write))
        self.enterContext(mock.patch('bench_memory.os.rmdir', remove_with_files))

    def text(self, name):
        return bench_memory.read(self.folder, name)

    def test_version_two_moves_this_run_into_a_group_below_and_back(self):
        self.kernel([os.getppid(), os.getpid()])
        groups = bench_memory.Groups(64 * MIB, (TWO, self.folder, self.folder))
        self.assertEqual((self.text('cgroup.procs'), self.text('cgroup.subtree_control')), ('', 'cpu memory'))
        self.assertEqual(set(bench_memory.read(groups.driver, 'cgroup.procs').split()), {str(os.getppid()), str(os.getpid())})
        group = groups.group('a')
        self.assertEqual([group.number('memory.max'), group.number('memory.swap.max')], [64 * MIB, 0])
        group.remove()
        groups.close()
        self.assertEqual(set(self.text('cgroup.procs').split()), {str(os.getppid()), str(os.getpid())})
        self.assertEqual(self.text('cgroup.subtree_control'), 'cpu')
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith('deut')], [])

    def test_processes_of_others_are_not_moved(self):
        self.kernel([os.getpid(), 0])
        with self.assertRaisesRegex(Unavailable, 'not of this run.*systemd-run'):
            bench_memory.Groups(64 * MIB, (TWO, self.folder, self.folder))
        self.assertEqual(set(self.text('cgroup.procs').split()), {str(os.getpid()), '0'})

    def test_a_group_without_its_limit_is_an_error(self):
        with self.assertRaisesRegex(Unavailable, 'no group can be made'):
            bench_memory.Groups(64 * MIB, (ONE, self.folder, self.folder))
        self.assertEqual(os.listdir(self.folder), [])

    def test_all_groups_fit_at_once(self):
        self.kernel([])
        below = os.path.join(self.folder, 'a', 'b')
        os.makedirs(below)
        FakeKernel.put('memory', below, 'cgroup.controllers')
        FakeKernel.put('memory', below, 'cgroup.subtree_control')
        FakeKernel.put('cpu memory', self.folder, 'cgroup.subtree_control')
        FakeKernel.put(str(3 * MIB), self.folder, 'a', 'memory.max')
        FakeKernel.put('max', below, 'memory.max')
        groups = bench_memory.Groups(MIB, (TWO, below, self.folder))
        groups.check_room(3)
        with self.assertRaisesRegex(Unavailable, '4 contenders .* fewer contenders'):
            groups.check_room(4)

    def test_usage_is_that_of_either_version(self):
        FakeKernel.put('7\n', self.folder, 'memory.max_usage_in_bytes')
        FakeKernel.put('5\n', self.folder, 'memory.failcnt')
        FakeKernel.put('oom_kill_disable 0\nunder_oom 0\noom_kill 2\n', self.folder, 'memory.oom_control')
        FakeKernel.put('cache 50\nshmem 20\nfile 90\n', self.folder, 'memory.stat')
        one = {'limit_bytes': 9, 'peak_bytes': 7, 'file_bytes': 30, 'limit_hits': 5, 'kills': 2}
        self.assertEqual(bench_memory.Group(ONE, self.folder, 9).usage(), one)
        FakeKernel.put('low 0\nmax 3\noom 2\noom_kill 1\n', self.folder, 'memory.events')
        # Older kernels have no memory.peak.
        two = {'limit_bytes': 9, 'peak_bytes': None, 'file_bytes': 70, 'limit_hits': 3, 'kills': 1}
        self.assertEqual(bench_memory.Group(TWO, self.folder, 9).usage(), two)


class RealGroupTest(unittest.TestCase):
    """On this machine, where it has version 1 and the right to use it: version 2 could have to move the processes that started this test."""

    def setUp(self):
        try:
            place = find(bench_memory.read('/proc/self/cgroup'), bench_memory.read('/proc/self/mountinfo'))
            if place[0] is not ONE:
                self.skipTest('not version 1')
            self.groups = bench_memory.Groups(64 * MIB, place)
        except Unavailable as why:
            self.skipTest(str(why))
        self.group = self.groups.group('test')
        self.addCleanup(self.group.remove)

    def run_within(self, *command):
        return subprocess.run([*self.group.within(), *command], check=False, capture_output=True, text=True)

    def test_a_program_begins_within_it(self):
        said = self.run_within('cat', '/proc/self/cgroup').stdout
        self.assertRegex(said, rf':memory:.*/{os.path.basename(self.group.folder)}\n')
        self.assertEqual(self.group.kills(), 0)

    def test_the_pages_of_its_files_count(self):
        with tempfile.NamedTemporaryFile(dir='/var/tmp') as file:
            self.run_within('dd', 'if=/dev/zero', f'of={file.name}', 'bs=1M', 'count=16')
            self.assertGreaterEqual(self.group.usage()['file_bytes'], 16 * MIB)

    def test_a_process_that_needs_more_is_ended(self):
        done = self.run_within('python3', '-c', f'held = bytes(range(256)) * {MIB}')
        self.assertNotEqual(done.returncode, 0)
        usage = self.group.usage()
        self.assertGreater(usage['kills'], 0)
        self.assertGreater(usage['limit_hits'], 0)

    def test_a_process_that_is_left_ends_with_it(self):
        left = subprocess.Popen([*self.group.within(), 'sleep', '100'], stdout=subprocess.DEVNULL)
        while not self.group.number('cgroup.procs'):
            self.assertIsNone(left.poll())
        self.group.remove()
        self.assertEqual(left.wait(), -9)
        self.assertFalse(os.path.exists(self.group.folder))


if __name__ == '__main__':
    unittest.main()
