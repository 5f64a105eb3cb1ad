"""Tests of the driver of scripts/bench: its options."""

import unittest

import bench


def options(*arguments):
    return bench.options_of(['--engines=none', '--have=deut,lmdb', *arguments])


class OptionsTest(unittest.TestCase):
    def test_uniform_keys_only_where_they_are_by_zipf_and_there_is_no_scan(self):
        run = bench.Run(options('--uniform', '--quick'), 'folder')
        self.assertEqual({workload: run.order(workload, 1, 0).split()[1] for workload in 'abcdeftlu'},
                         {'a': 'a-uniform', 'b': 'b-uniform', 'c': 'c-uniform', 'd': 'd', 'e': 'e', 'f': 'f-uniform', 't': 't-uniform', 'l': 'l', 'u': 'u'})
        self.assertEqual(bench.Run(options('--quick'), 'folder').order('c', 1, 0), 'run c 1 1500 buffered 20')


if __name__ == '__main__':
    unittest.main()
