"""Counts the instructions of the hot paths and compares them with their bounds. Called by scripts/test gate.

The program (integration/costs/hot_paths.cc) runs under valgrind's callgrind, which counts what the calling thread executes inside CountedPath,
with what each path that is called there takes. Counts hardly depend on the machine or on what else it does, so they can be bounded where times cannot.
With DEUT_GATE_RESULTS=FILE each figure is a line of that file, too.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest

COUNTED = '::CountedPath('
COUNTED_AGAIN = 2
LIMIT_S = 600  # half a minute of processor time on a machine that is otherwise idle


class Failed(Exception):
    """Told without a trace."""


def count(program, folder):
    """Instructions an operation, by path."""
    stripped = os.path.join(folder, 'hot_paths')
    # Its symbols are needed, its debug information is of a version that valgrind may not read.
    subprocess.run(['strip', '--strip-debug', '-o', stripped, program], check=True)
    command = ['valgrind', '--tool=callgrind', '--collect-atstart=no', '--toggle-collect=*::CountedPath(*',
               f'--callgrind-out-file={folder}/profile', stripped]
    environment = dict(os.environ, TEST_TMPDIR=folder)
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    except FileNotFoundError as error:
        raise Failed('valgrind is not installed: it is a Debian package of that name') from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f'hot_paths has not ended within {LIMIT_S} s') from error
    if done.returncode != 0:
        raise Failed(f'hot_paths has ended with status {done.returncode}: {done.stderr[-2000:]}')
    with open(f'{folder}/profile') as profile:
        taken = taken_by_callees(profile.read())
    counts = {}
    for line in done.stdout.splitlines():
        name, operations = line.split()
        if not taken.get(name):
            raise Failed(f'nothing was counted of {name}')
        counts[name] = taken[name] / int(operations)
    return counts


def taken_by_callees(profile):
    """Instructions that each function took that CountedPath called, by its bare name. In a profile `(7) name` stands where 7 is first used, `(7)` after."""
    names, taken, counted, callee = {}, {}, False, None
    for line in profile.splitlines():
        function = re.match(r'(c?)fn=\((\d+)\)(?: (.*))?', line)
        if function:
            called, number, name = function.groups()
            if name:
                names[number] = name
            if called:
                callee = number
            else:
                counted, callee = COUNTED in names[number], None
        elif counted and callee and not line.startswith('calls='):
            taken[callee] = taken.get(callee, 0) + int(line.split()[1])
            callee = None
    return {re.sub(r'\(.*', '', names[number].replace('(anonymous namespace)', '')).split('::')[-1]: cost for number, cost in taken.items()}


def value_of(figure, counts):
    """A path's instructions an operation, or the ratio of two: `A` or `A/B`."""
    values = []
    for name in figure.split('/'):
        if name not in counts:
            raise Failed(f'{figure}: no path is called {name!r}')
        values.append(counts[name])
    return values[0] if len(values) == 1 else values[0] / values[1]


def bounds_of(path):
    """[(figure, at most)] of a file with lines FIGURE MOST; # begins a comment."""
    bounds = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split('#')[0].split()
            if not words:
                continue
            if len(words) != 2:
                raise Failed(f'{path}:{number}: not FIGURE MOST')
            bounds.append((words[0], float(words[1])))
    return bounds


def judge(bounds, counts):
    """[(passed, figure, what is to be said)]; what is counted and has no bound is a failure."""
    verdicts = []
    for figure, most in bounds:
        value = value_of(figure, counts)
        told = f'{value:.3f}' if '/' in figure else f'{value:,.0f} instructions'
        verdicts.append((value <= most, figure, f'{told}, {"at most" if value <= most else "more than"} {most:g}'))
    for name in counts:
        if all(name not in figure.split('/') for figure, _ in bounds):
            verdicts.append((False, name, 'has no bound'))
    return verdicts


def least(counts, again):
    """Of two counts of the same paths: others can only add to what a path takes (the collector comes too late with blocks, the caller asks the heap)."""
    return {name: min(taken, again[name]) for name, taken in counts.items()}


def self_test():
    """What judges is judged first."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    suite = unittest.defaultTestLoader.loadTestsFromName('gate_test')
    return unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful()


def main(arguments):
    parser = argparse.ArgumentParser(prog='gate')
    parser.add_argument('--program', required=True)
    parser.add_argument('--bounds', required=True)
    parser.add_argument('--results', default=os.environ.get('DEUT_GATE_RESULTS'), help='a line PASS|FAIL for each figure is added here')
    options = parser.parse_args(arguments)
    if not self_test():
        return 1
    with tempfile.TemporaryDirectory(prefix='gate.') as folder:
        bounds = bounds_of(options.bounds)
        counts = count(options.program, folder)
        verdicts = judge(bounds, counts)
        for _ in range(COUNTED_AGAIN):
            if all(passed for passed, _, _ in verdicts):
                break
            counts = least(counts, count(options.program, folder))
            verdicts = judge(bounds, counts)
    for passed, figure, told in verdicts:
        print(f'{"ok" if passed else "FAILS":<6} {figure}: {told}')
    if options.results:
        with open(options.results, 'a') as results:
            for passed, figure, told in verdicts:
                results.write(f'{"PASS" if passed else "FAIL"}\tgate\t{figure}\t{told}\n')
    return 0 if all(passed for passed, _, _ in verdicts) else 1


if __name__ == '__main__':
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failure:
        sys.exit(f'gate: {failure}')
