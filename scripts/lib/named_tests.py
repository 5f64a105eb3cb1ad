"""Holds the tests that documents name against the tests that there are. Called by scripts/lint; limits.py uses it, too.

Usage: named_tests.py PAGE...
A page names a test as `FILE:SUITE.CASE`, which has to be in that file, or, outside of a column of tests, as `SUITE.CASE`, which has to be in some file; there
`*` stands for any part of the name. A column whose title is `test` has at least one `FILE:SUITE.CASE` in each row and no other form.
"""

import re
import subprocess
import sys

IN_FILE = re.compile(r'`([^`:\s]+):(\w+)\.(\w+)`')
IN_ANY_FILE = re.compile(r'`(\w+Test)\.([\w*]+)`')
MACRO = re.compile(r'\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)')
ROW = re.compile(r'^\|(.*)\|\s*$')


def has(text, suite, case):
    """Whether the text of a C++ or Python file has the test."""
    return bool(re.search(rf'\bTEST(?:_F|_P)?\(\s*{suite}\s*,\s*{case}\s*\)|\bdef {case}\b', text))


def wrong_in_files(text, read):
    """What is wrong with the tests that a text names with their files. `read` answers a file's text, or raises FileNotFoundError."""
    found = []
    for name, suite, case in IN_FILE.findall(text):
        try:
            if not has(read(name), suite, case):
                found.append(f'{name} has no test {suite}.{case}')
        except FileNotFoundError:
            found.append(f'there is no {name}')
    return found


def wrong(page, text, read, all_tests):
    """What is wrong with a page; `all_tests` are the pairs of suite and case of the whole tree."""
    found = []
    tests_at = None  # the column of tests of the table that is read
    for number, line in enumerate(text.splitlines(), 1):
        here = wrong_in_files(line, read)
        for suite, case in IN_ANY_FILE.findall(line):
            pattern = re.compile(re.escape(case).replace(r'\*', r'\w*'))
            if not any(suite == each and pattern.fullmatch(name) for each, name in all_tests):
                here.append(f'no file has a test {suite}.{case}')
        row = ROW.match(line)
        cells = [cell.strip() for cell in row[1].split('|')] if row else []
        if not row:
            tests_at = None
        elif 'test' in cells:
            tests_at = cells.index('test') if IN_FILE.search(text) else None
        elif tests_at is not None and not set(line) <= set('|-: '):
            cell = cells[tests_at] if tests_at < len(cells) else ''
            if not IN_FILE.search(cell) or '`' in IN_FILE.sub('', cell):
                here.append(f'"{cell}" is not of the form `FILE:SUITE.CASE`')
        found += [f'{page}:{number}: {each}' for each in here]
    return found


def read_file(name):
    with open(name, encoding='utf-8') as file:
        return file.read()


def main(*pages):
    tracked = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '*_test.cc'], check=True, capture_output=True, text=True).stdout.split()
    all_tests = {test for name in tracked for test in MACRO.findall(read_file(name))}
    found = [each for page in pages for each in wrong(page, read_file(page), read_file, all_tests)]
    print('\n'.join(found))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
