"""Tests of the gate's judgement: what it must not let pass."""

import os
import tempfile
import unittest

import gate


def bounds(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'bounds')
        with open(path, 'w') as file:
            file.write(text)
        return gate.bounds_of(path)


class GateTest(unittest.TestCase):
    COUNTS = {'read': 1000.0, 'scan': 3000.0}

    def failures(self, text):
        return [(figure, told) for passed, figure, told in gate.judge(bounds(text), self.COUNTS) if not passed]

    def test_within_bounds(self):
        self.assertEqual(self.failures('# a comment\nread 1000  # as it was\n\nscan 3001\nscan/read 3.0\n'), [])

    def test_the_least_of_two_counts(self):
        self.assertEqual(gate.least(self.COUNTS, {'read': 999.0, 'scan': 4000.0}), {'read': 999.0, 'scan': 3000.0})

    def test_a_break_names_the_figure_and_the_bound(self):
        self.assertEqual(self.failures('read 999\nscan 5000'), [('read', '1,000 instructions, more than 999')])
        self.assertEqual(self.failures('scan/read 2.9\n'), [('scan/read', '3.000, more than 2.9')])

    def test_every_path_has_a_bound(self):
        self.assertEqual(self.failures('read 1000'), [('scan', 'has no bound')])

    def test_callees_are_told_apart(self):
        profile = """fn=(1) deut::(anonymous namespace)::CountedPath(deut::Path const&)
0 72
cfn=(2) deut::(anonymous namespace)::Read(deut::Stores&)
calls=1 0
0 4000
cfn=(3)
calls=1 0
0 50
0 45

fn=(2)
0 24
cfn=(3) deut::Scan(deut::Stores&)
calls=1999 0
0 51928057
"""
        self.assertEqual(gate.taken_by_callees(profile), {'Read': 4000, 'Scan': 50})

    def test_a_bound_of_nothing(self):
        with self.assertRaises(gate.Failed):
            self.failures('write 1000')
        with self.assertRaises(gate.Failed):
            bounds('read')


if __name__ == '__main__':
    unittest.main()
