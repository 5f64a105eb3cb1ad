"""Holds the limits page against the code. Called by scripts/lint.

Usage: limits.py PAGE HEADER...
Each row of a table in PAGE names what sets the limit and the test that reaches it: a flag (`--name`) has to be bound somewhere, a constant or field has to
exist, and the test (`FILE:SUITE.CASE`) has to be in that file. Each `kMax...` and `kMost...` of the HEADERs has to have a row, and so has each flag of
the daemons that is not in NO_LIMIT_FLAGS.
"""

import re
import subprocess
import sys

import named_tests

ROW = re.compile(r'^\|(?P<cells>.*)\|\s*$')
CONSTANT = re.compile(r'constexpr\s+\w+(?:\s+\w+)?\s+(kM(?:ax|ost)\w*)\s*=')
# These bound no peer: they are pauses and sizes of this process's own pace.
NO_LIMIT = {'kMaxBackoffMs'}

# Where the flags of the two daemons are, and those of them that limit nothing which a peer, a client or an operator could reach. A new flag is a limit
# unless it is added here, below the reason why it is none.
FLAG_SOURCES = ('protocol/rpc/daemon.cc', 'tc/tcd_main.cc', 'tc/server/tc_flags.cc', 'dc/dcd_main.cc', 'dc/server/dc_flags.h')
FLAG = re.compile(r'\bflags(?:->|\.)Add(?:Bytes|Enum)?\(\s*"(\w+)"')
NO_LIMIT_FLAGS = {
    # Names, addresses and files.
    'listen', 'data_dir', 'log_file', 'dc', 'spill_dir', 'tls_cert', 'tls_key', 'tls_ca', 'tls_rights', 'tls_admins', 'tls_clients', 'tls_readers',
    'tls_dc', 'tls_tc', 'tls_allow',
    # A choice between ways.
    'io', 'insecure', 'huge_pages', 'dc_fetch_hot_pages', 'dc_compression', 'over_budget', 'cache_written', 'range_precision',
    # Sizes and paces of mechanisms: nothing is refused, ended or forgotten at them.
    'dc_streams', 'record_buckets_log2', 'records_per_range', 'fixed_ranges', 'log_segment', 'log_buffer', 'dc_leaf_page', 'dc_inner_page',
    'dc_segment', 'dc_max_segment', 'dc_apply_threads', 'dc_reads_in_flight', 'dc_merge_interval', 'dc_clean_interval', 'dc_checkpoint_interval',
    'dc_checkpoint_log', 'dc_scrub_rate',
}
UNITS = ('bytes', 'count', 'time')


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
    for name in tracked('*.h', '*.cc', 'bazel/patches/*.patch'):
        if not name.endswith('_test.cc'):
            with open(name, encoding='utf-8') as file:
                sources += file.read()
    found, named = [], set()
    for number, cells in rows(page):
        where = f'{page}:{number}'
        if len(cells) != 6:
            found.append(f'{where}: {len(cells)} cells, a limit has 6')
            continue
        if cells[1] not in UNITS:
            found.append(f'{where}: "{cells[1]}" is no unit; the units are {", ".join(UNITS)}')
        if not cells[2] or '--help' in cells[2]:
            found.append(f'{where}: the default is not said')
        setters = re.findall(r'`([^`]+)`', cells[3])
        if not setters:
            found.append(f'{where}: nothing in backquotes sets this limit')
        for setter in setters:
            named.add(setter)
            known = f'"{setter[2:]}"' in sources if setter.startswith('--') else re.search(rf'\b{re.escape(setter)}\b', sources)
            if not known:
                found.append(f'{where}: {setter} is not in the code')
        if not named_tests.IN_FILE.search(cells[5]):
            found.append(f'{where}: no test')
        found += [f'{where}: {wrong}' for wrong in named_tests.wrong_in_files(cells[5], named_tests.read_file)]
    for header in headers:
        with open(header, encoding='utf-8') as file:
            for constant in CONSTANT.findall(file.read()):
                if constant not in named and constant not in NO_LIMIT:
                    found.append(f'{header}: {constant} has no row in {page}')
    flags = set()
    for source in FLAG_SOURCES:
        with open(source, encoding='utf-8') as file:
            flags.update(FLAG.findall(file.read()))
    for flag in sorted(flags):
        if flag not in NO_LIMIT_FLAGS and f'--{flag}' not in named:
            found.append(f'--{flag} has no row in {page}; if it is no limit, say so in {__file__}')
    for flag in sorted(NO_LIMIT_FLAGS):
        if flag not in flags:
            found.append(f'{__file__}: no daemon has the flag --{flag}')
        elif f'--{flag}' in named:
            found.append(f'--{flag} has a row in {page}, and {__file__} says that it is no limit')
    print('\n'.join(found))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
