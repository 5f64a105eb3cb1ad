"""Tests of the machinery behind scripts/models: what it must refuse."""
import os
import tempfile
import unittest

import code_symbols
import models_bind
import models_run

CODE = '''
// A comment with a brace { in it.
namespace deut {
#define UNRELATED {
template <typename T>
class Table final : public Base {
 public:
  explicit Table(int a) : a_(a), b_{a + 1}, c_([] { return 1; }()) { Start(); }
  int size() const { return a_; }
  template <typename F>
  void ForEach(F&& visit) const {
    for (int i = 0; i < a_; ++i) visit("}" + std::string(1, '}'));
  }
  bool operator==(const Table&) const = default;
  struct Slot {
    int word() const { return word_; }
    std::atomic<int> word_{0};
  };
 private:
  std::atomic<int> a_{0};
};
Status Table::Remove(int key) {
  const auto gone = [&](int k) { return k == key; };
  if (gone(1)) { return Ok(); }
  /* raise, then look */
  Raise(key);
  return Look(key);
}
}  // namespace deut
'''

MODEL = 'byte x; active proctype P() { atomic { x = 1 } }  // code: a.cc %s\n'

KEPT = '''byte x;
active proctype Check() { (_nr_pr == 1); assert(x == 2) }
active [2] proctype P() {
  byte seen;
#ifdef OMIT_atomic
  seen = x; x = seen + 1;
#elif defined(OMIT_harmless)
  atomic { x = x + 1 };
#else
  atomic { x = x + 1 };
#endif
  if
  :: x > 7 -> x = 0  MARK
  :: x <= 7
  fi;
#ifdef OMIT_end
  (x == 3);
#endif
}
'''


class CodeSymbols(unittest.TestCase):
    def test_finds_members_and_functions(self):
        found = code_symbols.fingerprints(CODE)
        for symbol in ('Table', 'Table::Table', 'Table::size', 'Table::ForEach', 'Table::Slot::word', 'Table::Remove'):
            self.assertIn(symbol, found)
        self.assertNotIn('Table::Look', found)

    def test_a_body_ends_where_it_ends(self):
        self.assertTrue(code_symbols.definitions(CODE)['Table::Remove'][0].rstrip().endswith('return Look(key);\n}'))
        self.assertIn('Start();', code_symbols.definitions(CODE)['Table::Table'][0])


class Binding(unittest.TestCase):
    def check(self, before, after, symbol='Table::Remove', model=MODEL):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, 'models')
            os.mkdir(folder)

            def write(path, text):
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(text)

            write('a.cc', before)
            write('models/m.pml', model % symbol if '%s' in model else model)
            models_bind.take_down(root, folder, lambda _: None)
            write('a.cc', after)
            said = []
            return models_bind.check(root, folder, said.append), '\n'.join(said)

    def test_the_same_passes(self):
        self.assertTrue(self.check(CODE, CODE)[0])

    def test_a_changed_comment_passes(self):
        self.assertTrue(self.check(CODE, CODE.replace('raise, then look', 'look, then {').replace('  Raise(key);', '  Raise( key ) ; // now'))[0])

    def test_a_changed_body_is_told(self):
        good, said = self.check(CODE, CODE.replace('  Raise(key);\n', ''))
        self.assertFalse(good)
        self.assertIn('models/m.pml:1: a.cc Table::Remove has changed', said)

    def test_a_change_elsewhere_passes(self):
        self.assertTrue(self.check(CODE, CODE.replace('return a_;', 'return 7;'))[0])

    def test_a_symbol_that_is_gone_is_told(self):
        good, said = self.check(CODE, CODE.replace('Table::Remove', 'Table::Erase'))
        self.assertFalse(good)
        self.assertIn('a.cc Table::Remove is not defined there', said)

    def test_a_file_that_is_gone_is_told(self):
        self.assertFalse(self.check(CODE, CODE, model='byte x; // code: b.cc Table\n')[0])

    def test_a_step_that_cites_nothing_is_told(self):
        self.assertFalse(self.check(CODE, CODE, model=MODEL + '\nactive proctype Q() { d_step { x = 2 } }\n')[0])


class Verdicts(unittest.TestCase):
    def run_case(self, omission, expected, mark='// unreached: a test', flags=()):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'm.pml'), 'w', encoding='utf-8') as file:
                file.write(KEPT.replace('MARK', mark))
            return models_run.run_case(folder, models_run.Case('m', 'T1', omission, expected, list(flags), []), False)

    def test_kept_is_ok(self):
        outcome = self.run_case('-', 'ok')
        self.assertTrue(outcome.passed, outcome)
        self.assertGreater(outcome.states, 10)

    def test_an_omission_that_shows_passes(self):
        self.assertTrue(self.run_case('atomic', 'counterexample').passed)
        self.assertTrue(self.run_case('end', 'stuck').passed)

    def test_an_omission_that_does_not_show_fails(self):
        self.assertEqual(self.run_case('harmless', 'counterexample').verdict, 'NO COUNTER-EXAMPLE')

    def test_a_counter_example_where_none_is_expected_fails(self):
        self.assertFalse(self.run_case('atomic', 'ok').passed)
        self.assertFalse(self.run_case('end', 'counterexample').passed)

    def test_a_search_cut_short_fails(self):
        self.assertEqual(self.run_case('-', 'ok', flags=['-m5']).verdict, 'NOT COMPLETE')

    def test_code_never_reached_fails(self):
        self.assertEqual(self.run_case('-', 'ok', mark='').verdict, 'NEVER REACHED')

    def test_a_model_that_spin_refuses_fails(self):
        self.assertEqual(self.run_case('-', 'ok', mark='}').verdict, 'FAILED')
