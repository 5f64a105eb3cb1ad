"""Runs clang-tidy over sources, except those that are recorded as clean. Called by scripts/lint.

Usage: tidy.py [--record] [--also=FLAG...] FILE...
--record takes the keys of all files that are clean into tidy_clean.txt, and out of it those of files that changed or are gone.
--also=FLAG is a flag of the compiler that depends on this machine: a folder of headers.

A key is a hash of the file, of the header of the same name, of the configuration and of clang-tidy's version. It leaves other headers out: otherwise a
change of one header that everybody includes would cost half an hour. The source or the test of the same name finds the mistakes of a header.
"""

import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys

CLEAN = 'scripts/lib/tidy_clean.txt'
CONFIGURATION = '.clang-tidy'
FLAGS = ['-std=c++20', '-stdlib=libc++', '-march=x86-64-v3', '-D_LIBCPP_ENABLE_CXX20_REMOVED_FEATURES', '-DDEUT_TEST_POINTS=1', '-DDEUT_MUTATIONS=1']


def header_of(file):
    """The header of the same name: foo.h of foo.cc and of foo_test.cc."""
    return re.sub(r'(_test|_bench|_fuzz)?\.cc$', '.h', file)


def key_of(file, base, read):
    """`base` stands for everything that is the same for all files; `read` gives the bytes of a file, None of one that is not there."""
    digest = hashlib.sha256(base)
    for part in (file, header_of(file)):
        content = read(part)
        digest.update(b'-' if content is None else b'%d:' % len(content) + content)
    return digest.hexdigest()[:32]


def parse(text):
    """The recorded keys: file -> key."""
    return {file: key for key, file in (line.split(' ', 1) for line in text.splitlines() if line)}


def render(clean):
    return ''.join(f'{clean[file]} {file}\n' for file in sorted(clean))


def merged(recorded, now, verdicts):
    """What is recorded after a run. `now`: the key of each file that is there; `verdicts`: file -> whether it was found clean."""
    kept = {file: key for file, key in recorded.items() if now.get(file) == key}
    kept.update({file: now[file] for file, clean in verdicts.items() if clean})
    return kept


def read_file(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except FileNotFoundError:
        return None


def tidy(file, also):
    """What clang-tidy says of the file; empty if it is clean."""
    done = subprocess.run(['clang-tidy-19', '--quiet', file, '--', *FLAGS, *also], capture_output=True, text=True, check=False)
    return '' if done.returncode == 0 else done.stdout or done.stderr or f'{file}: clang-tidy ended with {done.returncode}\n'


def main(arguments):
    also = [argument.removeprefix('--also=') for argument in arguments if argument.startswith('--also=')]
    files = [argument for argument in arguments if not argument.startswith('--')]
    version = subprocess.run(['clang-tidy-19', '--version'], capture_output=True, check=True).stdout
    version = re.search(rb'LLVM version \S+', version).group()
    base = b'\n'.join([version, ' '.join(FLAGS).encode(), read_file(CONFIGURATION)])
    recorded = parse((read_file(CLEAN) or b'').decode())
    now = {file: key_of(file, base, read_file) for file in {*files, *recorded} if os.path.exists(file)}
    changed = sorted(file for file in set(files) if recorded.get(file) != now[file])
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, found in zip(changed, pool.map(lambda file: tidy(file, also), changed)):
            verdicts[file] = not found
            print(found, end='', flush=True)
    if '--record' in arguments:
        with open(CLEAN, 'w', encoding='utf-8') as file:
            file.write(render(merged(recorded, now, verdicts)))
    return 0 if all(verdicts.values()) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
