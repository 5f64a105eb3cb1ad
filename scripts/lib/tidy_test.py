"""Tests of the record of clean files."""

import unittest

import tidy


def key(files, file='a/b.cc', base=b'base'):
    return tidy.key_of(file, base, files.get)


class TidyTest(unittest.TestCase):
    def test_a_key_depends_on_the_file_its_header_and_the_configuration(self):
        files = {'a/b.cc': b'int b;', 'a/b.h': b'extern int b;', 'a/c.h': b'c'}
        before = key(files)
        self.assertEqual(before, key(dict(files, **{'a/c.h': b'd'})))
        self.assertNotEqual(before, key(dict(files, **{'a/b.cc': b'int c;'})))
        self.assertNotEqual(before, key(dict(files, **{'a/b.h': b''})))
        self.assertNotEqual(before, key({'a/b.cc': b'int b;'}))
        self.assertNotEqual(before, key(files, base=b'other'))

    def test_bytes_that_move_from_the_header_to_the_file_change_the_key(self):
        self.assertNotEqual(key({'a/b.cc': b'xy', 'a/b.h': b'z'}), key({'a/b.cc': b'x', 'a/b.h': b'yz'}))

    def test_a_test_has_the_header_of_its_subject(self):
        self.assertEqual(tidy.header_of('a/b_test.cc'), 'a/b.h')
        self.assertEqual(tidy.header_of('a/b_test_case.cc'), 'a/b_test_case.h')

    def test_a_run_records_the_clean_and_drops_the_changed_and_the_removed(self):
        recorded = {'same': '1', 'changed': '2', 'gone': '3', 'unclean': '4'}
        now = {'same': '1', 'changed': '22', 'unclean': '44', 'new': '5'}
        self.assertEqual(tidy.merged(recorded, now, {'changed': True, 'unclean': False, 'new': True}), {'same': '1', 'changed': '22', 'new': '5'})

    def test_a_changed_file_that_was_not_looked_at_is_dropped(self):
        self.assertEqual(tidy.merged({'a': '1', 'b': '2'}, {'a': '1', 'b': '3'}, {}), {'a': '1'})

    def test_the_record_reads_back(self):
        clean = {'b/c.cc': '2', 'a b.cc': '1'}
        self.assertEqual(tidy.render(clean), '1 a b.cc\n2 b/c.cc\n')
        self.assertEqual(tidy.parse(tidy.render(clean)), clean)
        self.assertEqual(tidy.parse(''), {})
