"""Tests of the search for tests that documents name and nobody has."""

import unittest

import named_tests

FILES = {'a/b_test.cc': 'TEST_F(OneTest, Works) {', 'a/c_test.py': '    def test_it(self):', 'a/d_test.cc': 'TEST_P( TwoTest ,\n  Works ) {'}
ALL_TESTS = {('OneTest', 'Works'), ('TwoTest', 'Works')}


def read(name):
    if name not in FILES:
        raise FileNotFoundError(name)
    return FILES[name]


def wrong(text):
    return named_tests.wrong('page', text, read, ALL_TESTS)


class NamedTestsTest(unittest.TestCase):
    def test_what_is_there_is_right(self):
        self.assertEqual(wrong('by `a/b_test.cc:OneTest.Works`, `a/c_test.py:CTest.test_it` and `a/d_test.cc:TwoTest.Works`\n'), [])
        self.assertEqual(wrong('by `OneTest.Works` or `TwoTest.W*`\n'), [])

    def test_a_wrong_file_or_name_is_found(self):
        self.assertEqual(wrong('x\n`a/b_test.cc:OneTest.Work`\n'), ['page:2: a/b_test.cc has no test OneTest.Work'])
        self.assertEqual(wrong('`a/b_test.cc:TwoTest.Works`'), ['page:1: a/b_test.cc has no test TwoTest.Works'])
        self.assertEqual(wrong('`a/z_test.cc:OneTest.Works`'), ['page:1: there is no a/z_test.cc'])
        self.assertEqual(wrong('`OneTest.Work` `ThreeTest.*`'), ['page:1: no file has a test OneTest.Work', 'page:1: no file has a test ThreeTest.*'])

    def test_a_column_of_tests_has_one_in_each_row_and_nothing_else(self):
        head = '| what | test |\n|---|---|\n| a `b` | `a/b_test.cc:OneTest.Works` |\n'
        self.assertEqual(wrong(head), [])
        self.assertEqual(wrong(head + '| c | `b_test` `Works` |\n| d | |\n'),
                         ['page:4: "`b_test` `Works`" is not of the form `FILE:SUITE.CASE`', 'page:5: "" is not of the form `FILE:SUITE.CASE`'])
        self.assertEqual(wrong(head + '\n| a | b |\n|---|---|\n| `c` | `d` |\n'), [])
