"""Checks that the folders of a component include each other in one direction. Called by scripts/lint.

Usage: folders.py
Run it in the root of the checkout. Prints each finding as FILE:LINE, and fails if there is any. ORDER has the folders of each component from low to high.
The code of a folder includes headers of lower lines only, so there are no circles; folders of one line do not know each other. `.` is the folder of the
component itself. Tests, fixtures, benchmarks and fuzz tests may include any folder: they are the sources of BUILD targets that are for tests.
"""

import ast
import os
import posixpath
import re
import subprocess
import sys

ORDER = {
    'common': (
        'base coding',
        'runtime testing',
        'sync',
        'observe',
        'io',
        'config',
    ),
    'protocol': (
        '.',
        'connections wire',
        'rpc',
        'data transactions',
    ),
    'tc': (
        'client log_format scan spill',
        'redo_log',
        'dc_link outcomes verify',
        'txn',
        'mvcc',
        'catalogue',
        'record_manager',
        'server',
        '.',
    ),
    'dc': (
        'page_store',
        'bwtree',
        'cleaner page_cache scrubber tables',
        'checkpoint record_ops',
        'store',
        'server',
        'verify .',
    ),
}
PRODUCT_RULES = ('deut_cc_library', 'deut_cc_binary')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def product_sources(folder, build):
    """The paths of the sources of a BUILD file's targets that are not for tests."""
    found = set()
    for node in ast.walk(ast.parse(build)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PRODUCT_RULES:
            arguments = {keyword.arg: keyword.value for keyword in node.keywords}
            if 'testonly' in arguments and ast.literal_eval(arguments['testonly']):
                continue
            for name in ('srcs', 'hdrs'):
                for value in ast.walk(arguments[name]) if name in arguments else ():
                    if isinstance(value, ast.Constant):
                        found.add(posixpath.join(folder, value.value))
    return found


def place_of(path, order):
    """(component, folder) of a file; None: of no component of `order`."""
    parts = path.split('/')
    if parts[0] not in order or len(parts) < 2:
        return None
    return parts[0], parts[1] if len(parts) > 2 else '.'


def check(order, files):
    """Findings as text. `files`: path -> text, of BUILD files and sources."""
    line_of = {(component, folder): at for component, lines in order.items() for at, line in enumerate(lines) for folder in line.split()}
    findings, seen = [], set()
    for build in sorted(path for path in files if os.path.basename(path) == 'BUILD'):
        for path in sorted(product_sources(os.path.dirname(build), files[build])):
            here = place_of(path, order)
            if here is None or path not in files:
                continue
            if here not in line_of:
                if here not in seen:
                    findings.append(f'{path}:1: {"/".join(here)} has no place in ORDER of scripts/lib/folders.py')
                seen.add(here)
                continue
            seen.add(here)
            for number, line in enumerate(files[path].split('\n'), 1):
                include = INCLUDE.match(line)
                there = place_of(include[1], order) if include else None
                if there is None or there == here or there[0] != here[0] or there not in line_of:
                    continue
                if line_of[there] >= line_of[here]:
                    findings.append(f'{path}:{number}: {include[1]} is in a folder that is not below {"/".join(here)}; scripts/lib/folders.py has the order')
    for component, folder in sorted(set(line_of) - seen):
        findings.append(f'scripts/lib/folders.py: ORDER names {component}/{folder}, which has no code')
    return findings


def main(arguments):
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    patterns = [f'{component}/{name}' for component in ORDER for name in ('*.h', '*.cc', '*BUILD')]
    listed = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', *patterns], check=True, capture_output=True, text=True).stdout
    files = {}
    for path in listed.splitlines():
        if os.path.isfile(path):
            with open(path, encoding='utf-8') as file:
                files[path] = file.read()
    findings = check(ORDER, files)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
