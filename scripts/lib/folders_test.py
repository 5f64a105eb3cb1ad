"""Tests of the check of the order of folders."""

import unittest

import folders

ORDER = {'a': ('low other', 'high', '.')}


def library(name, *sources, testonly=False):
    return f'deut_cc_library(name = "{name}",{" testonly = True," if testonly else ""} hdrs = {list(sources)!r})\n'


def found(low='', other='', high='', top='', **more):
    files = {
        'a/BUILD': 'deut_cc_binary(name = "a", srcs = ["main.cc"])\n', 'a/main.cc': top,
        'a/low/BUILD': library('low', 'low.h'), 'a/low/low.h': low,
        'a/other/BUILD': library('other', 'other.h'), 'a/other/other.h': other,
        'a/high/BUILD': library('high', 'high.h'), 'a/high/high.h': high,
    }
    return folders.check(ORDER, {**files, **more.get('files', {})})


def include(path):
    return f'// A header.\n#include "{path}"\n'


class FoldersTest(unittest.TestCase):
    def test_lower_folders_may_be_included(self):
        self.assertEqual(found(high=include('a/low/low.h'), top=include('a/high/high.h'), low=include('a/low/low.h') + include('b/x/x.h')), [])

    def test_higher_folders_may_not(self):
        self.assertEqual(found(low=include('a/high/high.h')),
                         ['a/low/low.h:2: a/high/high.h is in a folder that is not below a/low; scripts/lib/folders.py has the order'])

    def test_folders_of_one_line_may_not_include_each_other(self):
        self.assertEqual(len(found(low=include('a/other/other.h'))), 1)

    def test_a_circle_has_a_wrong_side(self):
        self.assertEqual(len(found(low=include('a/high/high.h'), high=include('a/low/low.h'))), 1)

    def test_tests_may_include_all(self):
        files = {
            'a/low/BUILD': library('low', 'low.h') + library('testing', 'fake.h', testonly=True) + 'deut_cc_test(name = "low_test", srcs = ["low_test.cc"])\n',
            'a/low/fake.h': include('a/high/high.h'), 'a/low/low_test.cc': include('a/high/high.h'),
        }
        self.assertEqual(found(files=files), [])

    def test_a_folder_without_a_place_is_found_once(self):
        files = {'a/new/BUILD': library('new', 'x.h', 'y.h'), 'a/new/x.h': '', 'a/new/y.h': ''}
        self.assertEqual(found(files=files), ['a/new/x.h:1: a/new has no place in ORDER of scripts/lib/folders.py'])

    def test_a_place_without_a_folder_is_found(self):
        self.assertEqual(found(files={'a/high/BUILD': ''}), ['scripts/lib/folders.py: ORDER names a/high, which has no code'])

    def test_a_file_below_a_folder_belongs_to_it(self):
        files = {'a/low/deep/BUILD': library('deep', 'x.h'), 'a/low/deep/x.h': include('a/high/high.h')}
        self.assertEqual(len(found(files=files)), 1)
