"""Tests of how figures are put beside targets: a missed one must not read as met, nor a rival as ours."""

import errno
import os
import tempfile
import types
import unittest

import targets
from measuring import Failed, json_lines, run


def result_of(rates):
    return {'rows': [{'contender': name, 'workload': workload, 'threads': threads, 'rate': rate} for (name, workload, threads), rate in rates.items()]}


class RowsTest(unittest.TestCase):
    def test_met_or_missed(self):
        self.assertTrue(targets.at_least('a', 1000, 1000)['met'])
        self.assertFalse(targets.at_least('a', 1000, 999)['met'])
        self.assertTrue(targets.at_most('a', 1.1, 1.1)['met'])
        self.assertFalse(targets.at_most('a', 1.1, 1.101)['met'])

    def test_the_table_says_so(self):
        text = targets.table_of({'processors': 2, 'processor': 'p', 'memory_gib': 1, 'system': 's', 'load_average': 0.0},
                                [('T', [targets.at_most('a', 1, 2), targets.at_most('b', 2, 1), targets.row('c', 'near 2', '1')])])
        cells = [[cell.strip() for cell in line.split('|')] for line in text.splitlines() if line.startswith('| ')]
        self.assertEqual([(line[1], line[4]) for line in cells[1:]], [('a', 'missed'), ('b', 'met'), ('c', '')])

    def test_beside_ours_stands_the_fastest_rival(self):
        with tempfile.TemporaryDirectory() as folder:
            part = targets.Targets(types.SimpleNamespace(bin=folder, quick=True, have='deut'), folder)
            rows = part.rates(result_of({('ours', 'c', 1): 3e6, ('ours-sockets', 'c', 1): 9e9, ('slow', 'c', 1): 1e3, ('fast', 'c', 1): 1.5e6,
                                         ('fast', 'x', 1): 9e9}), 'ours')
            self.assertEqual([(r['met'], r['beside']) for r in rows], [(True, 'fast 1.50 M/s: ×2.00')])
            self.assertEqual(part.rates(result_of({('ours', 'c', 1): 1}), 'ours')[0]['beside'], '')
            # Half as fast as there, a quarter as fast: as a whole, the root of an eighth.
            slow = part.rates(result_of({('ours', 'c', 1): 0.6e6, ('lmdb', 'c', 1): 997e3 / 2, ('wiredtiger', 'c', 1): 567e3 / 4}), 'ours')
            self.assertEqual(slow[0]['beside'], 'lmdb 498 k/s: ×1.20; rivals ×0.35 of where the target was set, which leaves ×1.41 of it')
            self.assertEqual(part.rates(result_of({('fast', 'c', 1): 1}), 'ours'), [])
            pipelined = part.rates(result_of({('ours-sockets', 'c', 4): 450e3, ('redis', 'c', 4): 511e3 * 2}), 'ours-sockets',
                                   targets.bench_table.PIPELINED, targets.bench_table.PIPELINED_THERE)
            self.assertEqual([(r['met'], r['beside']) for r in pipelined],
                             [(True, 'redis 1.02 M/s: ×0.44; rivals ×2.00 of where the target was set, which leaves ×0.50 of it')])

    def test_an_old_reader_is_judged_by_the_median_of_rounds(self):
        rounds = [{'with': w, 'without': 100.0, 'ratio': w / 100, 'processor_ratio': 0.9} for w in (10.0, 81.0, 95.0)]
        self.assertEqual([targets.old_reader_row(rounds)[name] for name in ('here', 'met')], ['0.81', True])
        self.assertFalse(targets.old_reader_row(rounds[:1])['met'])

    def test_the_worst_case_has_no_target(self):
        worst = targets.worst_case_row([{'name': 'Scans/updates:20000/age:0/ranges:16', 'scans/s': 100.0},
                                        {'name': 'Scans/updates:20000/age:60/ranges:16', 'scans/s': 25.0}])
        self.assertEqual((worst['here'], worst['met']), ('0.25', None))

    def test_every_part_is_named(self):
        for name in targets.PARTS:
            self.assertTrue(getattr(targets.Targets, name).__doc__, name)
        with self.assertRaises(targets.argparse.ArgumentTypeError):
            targets.parts('embedded,none')


class MeasuringTest(unittest.TestCase):
    def test_a_failing_program_is_named_with_what_it_said(self):
        with self.assertRaisesRegex(Failed, 'a thing: status 3: no room'):
            run(['sh', '-c', 'echo no room >&2; exit 3'], 'a thing')

    def test_lines_that_are_no_objects_are_left_out(self):
        self.assertEqual(json_lines('a line\n{"a": 1}\n[2]\n{"b": 2}\n'), [{'a': 1}, {'b': 2}])

    def test_the_device_is_written_to(self):
        with tempfile.TemporaryDirectory(dir='.') as folder:
            try:
                self.assertGreater(targets.device_write_us(folder, blocks=16), 0)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise  # else: a file system without O_DIRECT
            else:
                self.assertEqual(os.listdir(folder), [])


if __name__ == '__main__':
    unittest.main()
