"""Tests of the check that keeps the rule book true."""

import unittest

import rule_book


def block(lines):
    return '\n'.join([rule_book.BEGIN, *lines, rule_book.END])


class RuleBookTest(unittest.TestCase):
    def setUp(self):
        # One section for each rule and family; only R1 and S11 are looked at.
        self.files = {
            'a/one.cc': '// R1: first. (rule R1) `R1.post`\nif (DEUT_OMITTED("R1.post")) return;\n',
            'a/one_test.cc': 'EXPECT(DEUT_OMITTED("R9.other"));  // a test is no source\n',
            rule_book.RULE_TESTS: '# comment\nR1 R1.post //a:one_test OneTest.Posts\n',
            rule_book.MODELS: 'range R1 - ok\nrange R1 R1_post counterexample\nrange R1 R1_post_ordered counterexample -DX\n',
            rule_book.BUGS: 'R1.post embedded -\n',
        }
        self.texts = {name: 'It is not built.' for name in (*rule_book.RULES, *(f'{family}.*' for family in rule_book.FAMILIES))}
        self.texts['R1'] = '**It is said.**\n\n1. Post (`R1.post`).'

    def book(self):
        return '# Rules\n\n' + '\n\n'.join(f'## {name}: a name\n\n{text}\n\n{block(["old"])}' for name, text in self.texts.items()) + '\n'

    def found(self, book=None):
        cited = rule_book.Cited(self.files)
        return rule_book.check(rule_book.write(self.book(), cited) if book is None else book, cited)

    def assert_found(self, *wanted):
        found = self.found()
        self.assertEqual(len(found), len(wanted), found)
        for each, (where, what) in zip(found, wanted):
            self.assertTrue(each.startswith(where + ': ') and what in each, each)

    def test_a_true_book_has_no_findings(self):
        self.assertEqual(self.found(), [])

    def test_references_name_code_tests_models_and_bugs(self):
        self.assertEqual(rule_book.references(rule_book.Cited(self.files), 'R1'), [
            '| step | code | tests | models, seeded bugs |', '|---|---|---|---|',
            '| `R1.post` | `a/one.cc` | `a:one_test` `OneTest.Posts` | `range`, bug: embedded |', '',
            'Models with all steps: `range`.', '', 'Steps in models alone: `post_ordered` (`range`).'])

    def test_steps_of_families_are_told_in_both_sections(self):
        self.files['a/two.cc'] = 'DEUT_OMITTED("log.look");'
        self.files[rule_book.RULE_TESTS] += 'D2 log.look //a:two_test TwoTest.Looks\n'
        cited = rule_book.Cited(self.files)
        self.assertIn('| `log.look` | `a/two.cc` | `a:two_test` `TwoTest.Looks` | - |', rule_book.references(cited, 'log.*'))
        self.assertEqual(rule_book.references(cited, 'D2'), ['Steps of other sections that count here: `log.look`.'])
        self.assertEqual(rule_book.step_of_model('lead', 'D2', 'look_once'), 'log.look_once')
        self.assertEqual(rule_book.step_of_model('helper_stop', 'S2', 'notify'), 'S2.notify')
        self.assertEqual(rule_book.step_of_model('outcome', 'outcome', 'outcome_lives'), 'outcome.lives')

    def test_writing_twice_changes_nothing(self):
        cited = rule_book.Cited(self.files)
        once = rule_book.write(self.book(), cited)
        self.assertEqual(rule_book.write(once, cited), once)

    def test_stale_references(self):
        cited = rule_book.Cited(self.files)
        book = rule_book.write(self.book(), cited).replace('OneTest.Posts', 'OneTest.Other')
        line = book.split('\n').index(rule_book.BEGIN) + 1
        self.assertEqual(self.found(book), [f'{rule_book.BOOK}:{line}: R1: the references are stale; run scripts/lib/rule_book.py --write'])

    def test_citations_of_what_is_no_rule(self):
        self.files['a/two.h'] = '// fine: T10, C1, N4, O2, U8, D2H, R20, 0xD9, rules R, L and P; rule X3\n// (rule S12)\nint R99;  // as R12 says\n'
        self.files['a/two.md'] = '# X8\n```\nX9 in code\n```\nrules X1 - X9, and `X2.no_such_step`, `R12.post`\n'
        self.assert_found(('a/two.h:2', 'S12 is no rule'), ('a/two.h:3', 'R12 is no rule'),
                          ('a/two.md:1', 'X8 is no rule'), ('a/two.md:5', 'X2.no_such_step: no source'), ('a/two.md:5', 'R12.post: there is no rule R12'),
                          ('a/two.md:5', 'X9 is no rule'))

    def test_numbered_steps(self):
        self.files['a/two.h'] = '// R1 step 1, (R1, step 1), R1 (step 1); T10 step 9\n// R1 step 2\n'
        self.assert_found(('a/two.h:2', 'R1 has no step 2'))

    def test_file_names_are_no_steps(self):
        self.files['a/two.md'] = 'merge.cc, log.h, `checkpoint.before_snapshot`, X2.md\n'
        self.assert_found()

    def test_a_rule_without_section(self):
        del self.texts['X7']
        self.texts['X8'] = 'It is not built.'
        self.assert_found((f'{rule_book.BOOK}:1', '0 sections of X7'), (f'{rule_book.BOOK}:{self.line_of("X8")}', 'X8: is no rule'))

    def line_of(self, name):
        book = rule_book.write(self.book(), rule_book.Cited(self.files))
        return next(n for n, line in enumerate(book.split('\n'), 1) if line.startswith(f'## {name}: '))

    def test_a_rule_without_code_says_so(self):
        self.texts['S11'] = 'It is said.'
        self.assert_found((f'{rule_book.BOOK}:{self.line_of("S11")}', 'does not say "not built"'))

    def test_a_step_that_is_not_described_or_not_tested(self):
        self.files['a/two.cc'] = '\nDEUT_OMITTED("R1.check");\n'
        line = self.line_of('R1')
        self.assert_found((f'{rule_book.BOOK}:{line}', 'does not say what R1.check is'), ('a/two.cc:2', 'R1.check has no test'))
        self.texts['R1'] += ' (`R1.check`)\n`R1.check` has no rule test: why.'
        self.assert_found()
        self.files[rule_book.RULE_TESTS] += 'R1 R1.check //a:two_test TwoTest.Checks\n'
        self.assert_found((f'{rule_book.BOOK}:{line}', 'says that R1.check has no rule test, and it has one'))

    def test_lists_that_name_unknown_rules_or_steps(self):
        self.files['a/two.cc'] = 'DEUT_OMITTED("Z1.step");'
        self.files[rule_book.RULE_TESTS] += 'R12 R1.post //a:one_test OneTest.B\nR1 R1.gone //a:one_test OneTest.C\n'
        self.files[rule_book.MODELS] += 'range X9 - ok\n'
        self.files[rule_book.BUGS] += 'R1.lost embedded -\n'
        # R1.gone is in the table of R1 now, and Z1.step in none.
        self.assert_found((f'{rule_book.RULE_TESTS}:3', 'R12 is no rule'), (f'{rule_book.RULE_TESTS}:4', 'no source leaves out R1.gone'),
                          (f'{rule_book.MODELS}:4', 'X9 is no rule'), (f'{rule_book.BUGS}:2', 'no source leaves out R1.lost'),
                          ('a/two.cc:1', 'Z1.step is a step of no rule'))

    def test_markers_out_of_place(self):
        book = self.book().replace(rule_book.END, '', 1)
        self.assertTrue(any('without' in each for each in self.found(book)), self.found(book))
        self.assertEqual(rule_book.write(book, rule_book.Cited(self.files)), book)


if __name__ == '__main__':
    unittest.main()
