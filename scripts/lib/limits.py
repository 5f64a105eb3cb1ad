"""Holds the limits page against the code. Called by scripts/lint.

Usage: limits.py PAGE HEADER...
Each row of a table in PAGE names what sets the limit and the test that reaches it: a flag (`--name`) has to be bound somewhere, a constant or field has to
exist, and the test (`FILE:SUITE.CASE`) has to be in that file. Each `kMax...` and `kMost...` of the HEADERs has to have a row.
"""

import re
import subprocess
import sys

ROW = re.compile(r'^\|(?P<cells>.*)\|\s*$')
CONSTANT = re.compile(r'constexpr\s+\w+(?:\s+\w+)?\s+(kM(?:ax|ost)\w*)\s*=')
# These bound no peer: they are pauses and sizes of this process's own pace.
NO_LIMIT = {'kMaxBackoffMs'}


def tracked(*patterns):
    return subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', *patterns], check=True, capture_output=True, text=True).stdout.split()


def rows(page):
    with open(page, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            match = ROW.match(line)
            if not match:
                continue
            cells = [cell.strip() for cell in match['cells'].split('|')]
            if cells[0] == 'limit' or set(cells[0]) <= set('-: '):
                continue
            yield number, cells


def main(page, *headers):
    sources = ''
    for name in tracked('*.h', '*.cc'):
        if not name.endswith('_test.cc'):
            with open(name, encoding='utf-8') as file:
                sources += file.read()
    found, named = [], set()
    for number, cells in rows(page):
        where = f'{page}:{number}'
        if len(cells) != 5:
            found.append(f'{where}: {len(cells)} cells, a limit has 5')
            continue
        setters = re.findall(r'`([^`]+)`', cells[2])
        if not setters:
            found.append(f'{where}: nothing in backquotes sets this limit')
        for setter in setters:
            named.add(setter)
            known = f'"{setter[2:]}"' in sources if setter.startswith('--') else re.search(rf'\b{re.escape(setter)}\b', sources)
            if not known:
                found.append(f'{where}: {setter} is not in the code')
        tests = re.findall(r'`([^`:]+):(\w+)\.(\w+)`', cells[4])
        if not tests:
            found.append(f'{where}: no test')
        for name, suite, case in tests:
            try:
                with open(name, encoding='utf-8') as file:
                    text = file.read()
            except FileNotFoundError:
                found.append(f'{where}: there is no {name}')
                continue
            if not re.search(rf'\bTEST(?:_F|_P)?\({suite},\s*{case}\)|def {case}\b', text):
                found.append(f'{where}: {name} has no test {suite}.{case}')
    for header in headers:
        with open(header, encoding='utf-8') as file:
            for constant in CONSTANT.findall(file.read()):
                if constant not in named and constant not in NO_LIMIT:
                    found.append(f'{header}: {constant} has no row in {page}')
    print('\n'.join(found))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
