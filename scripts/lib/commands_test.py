"""Tests of the check of commands in documents."""

import unittest

import commands

FILES = {
    'scripts/bench': '#   --quick   short rounds',
    'scripts/lib/tool.py': "'--write'",
    '.bazelrc': 'build:test --features=test_points',
    'BUILD': 'alias(\n    name = "tcd",\n)',
    'dc/bwtree/BUILD': 'deut_cc_test(\n    name = "node_test",\n)\ndeut_cc_binary(\n    name = "tree_bench",\n)',
    'dc/bwtree/node_test.cc': 'TEST(NodeTest, Splits) { getenv("DEUT_SEED"); }',
    'dc/bwtree/bench.bzl': 'name + "_conformance_test"',
    'dc/store/BUILD': 'bench_engine(\n    name = "lmdb",\n)',
    'tc/tcd_main.cc': 'flags.Add("listen", ...)',
}


def found(text):
    return [finding.partition(': ')[2] for finding in commands.check({'a.md': text}, FILES)]


def block(*lines):
    return '\n'.join(['```', *lines, '```'])


class CommandsTest(unittest.TestCase):
    def test_commands_that_are_right(self):
        self.assertEqual(found(block(
            'scripts/bench --quick      # with a --comment',
            'python3 -B scripts/lib/tool.py --write',
            'DEUT_SEED=7 bazel test --config=test --test_env=DEUT_SEED=1 //dc/bwtree:node_test --test_filter=NodeTest.S*',
            'bazel build //dc/bwtree/... && bin/tcd --listen=127.0.0.1:1',
            'bazel test //dc/store:lmdb_conformance_test //TARGET',
            'tree_bench --benchmark_filter=Recover',
        )), [])

    def test_names_of_nothing(self):
        self.assertEqual(found(block('scripts/bunch')), ['there is no scripts/bunch'])
        self.assertEqual(found(block('scripts/bench --quack')), ['scripts/bench has no option --quack'])
        self.assertEqual(found(block('bazel test --config=tast //dc/bwtree:node_test')), ['.bazelrc has no --config=tast'])
        self.assertEqual(found(block('bazel test //dc/bwtree:gnode_test')), ['there is no target //dc/bwtree:gnode_test'])
        self.assertEqual(found(block('bazel build //dc/tree/...')), ['there is no folder dc/tree'])
        self.assertEqual(found(block('bazel test //dc/bwtree:all --test_env=DEUT_SEEDS=1')), ['no source knows DEUT_SEEDS'])
        self.assertEqual(found(block('bazel test //dc/bwtree:all --test_filter=ModeTest.*')), ['no test is named ModeTest'])
        self.assertEqual(found(block('bin/tcd --listens=1')), ['bin/tcd has no option --listens'])
        self.assertEqual(found(block('bin/tcb')), ['there is no program bin/tcb'])

    def test_code_within_a_line(self):
        self.assertEqual(found('Run `scripts/bench --quick`, then `tree_bench --rounds=1`.'), ['tree_bench has no option --rounds'])

    def test_a_command_over_two_lines(self):
        self.assertEqual(found(block('scripts/bench --quick \\', '  --quack')), ['scripts/bench has no option --quack'])

    def test_what_is_no_command(self):
        self.assertEqual(found('```cpp\nscripts/bunch\n```\nscripts/bunch'), [])
        self.assertEqual(found(block('header := magic:u32', 'bazel test //...', 'bazel test //TARGET')), [])


if __name__ == '__main__':
    unittest.main()
