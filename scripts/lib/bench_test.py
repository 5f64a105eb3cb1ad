"""Tests of the driver of scripts/bench: its options, and a run that goes on without a contender."""

import tempfile
import unittest
from unittest import mock

import bench
import bench_table

LIMIT = 1 << 30
SAMPLE = {'seconds': 2.0, 'transactions': 1000, 'records_read': 0, 'records_written': 10, 'retries': 0, 'p50_us': 1.0, 'p99_us': 2.5, 'p999_us': 1234.0,
          'cpu_us': 3.0, 'read_bytes': 4096000, 'written_bytes': 77, 'write_amplification': None, 'resident_bytes': 1, 'resident_private_bytes': 1,
          'disk_bytes': 1, 'rest_seconds': 61.4}
USAGE = {'limit_bytes': LIMIT, 'peak_bytes': LIMIT, 'file_bytes': 5000, 'limit_hits': 12345, 'kills': 0}
FACTS = {'name': 's', 'isolation': 'i', 'interactive': 0, 'buffered': 'b', 'durable': 'd'}


def options(*arguments):
    return bench.options_of(['--engines=none', '--have=deut,lmdb', *arguments])


class OptionsTest(unittest.TestCase):
    def test_the_cache_is_half_of_the_memory_unless_it_is_given(self):
        self.assertEqual((options('--memory_limit=2000000000').memory_limit, options('--memory_limit=2000000000').cache), (2_000_000_000, 1_000_000_000))
        self.assertEqual(options('--memory_limit=2000000000', '--cache=5').cache, 5)
        self.assertEqual((options().memory_limit, options().cache), (None, 4 << 30))

    def test_this_projects_process_gets_seven_eighths_of_the_limit_unless_it_is_given(self):
        self.assertEqual(options('--memory_limit=2000000000').memory, 1_750_000_000)
        self.assertEqual(options('--memory_limit=2000000000', '--cache=5').memory, 5)
        self.assertEqual(options('--memory_limit=2000000000', '--cache=5', '--memory=6').memory, 6)
        self.assertEqual((options().memory, options('--cache=5').memory), (4 << 30, 5))

    def test_only_this_projects_engine_is_told_its_memory(self):
        told = options('--memory_limit=2000000000', '--value_bytes=100')
        told.groups, told.builds, told.engines = None, {}, '/engines'
        with tempfile.TemporaryDirectory() as folder, mock.patch('subprocess.Popen') as started, mock.patch.object(bench.Contender, 'answer'):
            for name in ('ours', 'lmdb'):
                bench.Contender(name, told, folder).start(told)
        caches = [word for call in started.call_args_list for word in call.args[0] if word.startswith('--cache=')]
        self.assertEqual(caches, ['--cache=1750000000', '--cache=1000000000'])

    def test_a_limit_is_a_number_of_bytes(self):
        for wrong in ('', '0', '-1', '1GiB', '1e9', str((1 << 20) - 1)):
            with self.assertRaises(SystemExit):
                options(f'--memory_limit={wrong}')

    def test_uniform_keys_only_where_they_are_by_zipf_and_there_is_no_scan(self):
        run = bench.Run(options('--uniform', '--quick'), 'folder')
        self.assertEqual({workload: run.order(workload, 1, 0).split()[1] for workload in 'abcdeftlu'},
                         {'a': 'a-uniform', 'b': 'b-uniform', 'c': 'c-uniform', 'd': 'd', 'e': 'e', 'f': 'f-uniform', 't': 't-uniform', 'l': 'l', 'u': 'u'})
        self.assertEqual(bench.Run(options('--quick'), 'folder').order('c', 1, 0), 'run c 1 1500 buffered 20')


class FakeContender:
    """Fails in its turn with this number, perhaps because the kernel has ended it."""

    def __init__(self, name, fails_at=None, killed=True):
        self.name, self.fails_at, self.turns = name, fails_at, 0
        self.group = mock.Mock(limit=LIMIT)
        self.group.usage.side_effect = lambda: {**USAGE, 'kills': int(self.killed())}
        self.dies = killed
        self.stopped = False

    def killed(self):
        return self.dies and self.fails_at is not None and self.turns >= self.fails_at

    def start(self, _):
        return FACTS

    def order(self, _):
        return {'checksum': '1'}

    def measure(self, *_):
        self.turns += 1
        if self.turns == self.fails_at:
            raise bench.Failed(f'{self.name} has ended')
        return SAMPLE

    def rest(self):
        pass

    def stop(self):
        self.stopped = True


class RunTest(unittest.TestCase):
    def run_of(self, contenders):
        run = bench.Run(options(f'--memory_limit={LIMIT}', '--workloads=load,c', '--threads=1'), 'folder')
        run.options.contenders = list(contenders)
        with mock.patch('bench.Contender', side_effect=lambda name, *_: contenders[name]):
            run.run()
        return run.result()

    def test_a_contender_that_the_kernel_ends_leaves_and_its_rows_stay(self):
        contenders = {'ours': FakeContender('ours'), 'lmdb': FakeContender('lmdb', fails_at=3)}
        result = self.run_of(contenders)
        self.assertEqual({(row['workload'], row['contender']): len(row['samples']) for row in result['rows']},
                         {('load', 'ours'): 1, ('load', 'lmdb'): 1, ('c', 'ours'): 3, ('c', 'lmdb'): 1})
        why = 'lmdb was ended by the kernel: it needs more than the limit of 1,073,741,824 bytes'
        self.assertEqual(result['ended'], {'lmdb': why})
        self.assertEqual((result['memory']['lmdb']['kills'], result['memory']['ours']['read_bytes']), (1, 4 * 4096000))
        self.assertTrue(contenders['lmdb'].stopped)
        self.assertFalse(contenders['ours'].stopped)
        text = bench_table.tables(result)
        self.assertIn(why, text)
        self.assertIn('| ours | 1.07 GB | 5.00 kB | 16.4 MB | 308B | 12,345 | 0 |', text)
        self.assertIn('| ours | 1B | 1B | 1B | – | – | – | 61 |', text)
        self.assertIn('| ours | 409,600 | 4,096 |', text)
        self.assertIn('| ours | 1 / 2.5 / 1,234 | 1 / 2.5 / 1,234 |', text)
        self.assertNotIn('The targets', text)

    def test_one_that_is_ended_before_it_has_opened_has_no_row(self):
        contenders = {'ours': FakeContender('ours'), 'lmdb': FakeContender('lmdb', fails_at=0)}
        contenders['lmdb'].start = mock.Mock(side_effect=bench.Failed('lmdb has ended'))
        result = self.run_of(contenders)
        self.assertEqual({row['contender'] for row in result['rows']}, {'ours'})
        self.assertIn('lmdb was ended by the kernel', bench_table.tables(result))

    def test_another_failure_ends_the_run(self):
        with self.assertRaisesRegex(bench.Failed, 'ours has ended'):
            self.run_of({'ours': FakeContender('ours', fails_at=2, killed=False)})


if __name__ == '__main__':
    unittest.main()
