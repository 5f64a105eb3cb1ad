"""Checks that the commands of Markdown documents name things that are there. Called by scripts/lint.

Usage: commands.py FILE...
Run it in the root of the checkout; FILEs are the documents, relative to it. Prints each finding as FILE:LINE, and fails if there is any. It runs no
command: tests and CI run the scripts and targets. It looks at fenced blocks without a language, and at code within a line, and there at commands
that begin with a script, with bazel, or with a program of ours:
  scripts/NAME --option     the script is there, and it or its helpers know the option
  bazel test //P:T          the target is there; --config is in .bazelrc; DEUT_* of --test_env and a class of --test_filter are in the sources
  bin/PROGRAM, PROGRAM      its flags are in the sources, as "flag" or as part of a script
  DEUT_NAME=... COMMAND     the sources know the variable
Words in capitals, in brackets or with dots stand for others, and are passed over.
"""

import os
import re
import shlex
import subprocess
import sys

FENCE = re.compile(r'^\s*(```|~~~)\s*(\S*)')
INLINE = re.compile(r'(?<!`)`([^`]+)`(?!`)')
BINARY = re.compile(r'_(?:binary|benchmark|engine)\(\s*name = "([^"]+)"')
TARGET = re.compile(r'\bname = "([^"]+)"')
LABEL = re.compile(r'^-?//([A-Za-z0-9_/.-]*?)(?::([A-Za-z0-9_.-]+))?$')
OPTION = re.compile(r'^--(?:no)?([a-z][A-Za-z0-9_-]*)')
VARIABLE = re.compile(r'^(DEUT_[A-Z_]+)=')
# Flags of libraries, which their programs take, too.
OF_LIBRARIES = ('benchmark_', 'gtest_', 'help')
SOURCES = ('.cc', '.h', '.py', '.sh', '.bzl', '.txt')


def commands_of(text):
    """(line number, words) of each command; a block's line may go on in the next one."""
    language = None
    before = ''
    for number, line in enumerate(text.split('\n'), 1):
        match = FENCE.match(line)
        if match:
            language = match.group(2) if language is None else None
            before = ''
            continue
        if language is None:
            pieces = INLINE.findall(line)
        elif language == '':
            if line.rstrip().endswith('\\'):
                before += line.rstrip()[:-1] + ' '
                continue
            pieces, before = [before + line], ''
        else:
            pieces = []
        for piece in pieces:
            for part in re.split(r'&&|\|\||;|(?<!\S)\|(?!\S)', piece):
                try:
                    words = shlex.split(part, comments=True)
                except ValueError:
                    continue
                if words:
                    yield number, words


def is_placeholder(word):
    return bool(re.search(r'\.\.\.|[\[\]<>|*$]', word)) or word.isupper()


class Checkout:
    """All that commands may name. `files`: path -> text."""

    def __init__(self, files):
        self.files = files
        self.folders = {''}
        self.programs, self.targets, self.macros = set(), {}, ''
        sources = []
        for path, text in files.items():
            folder = os.path.dirname(path)
            while folder and folder not in self.folders:
                self.folders.add(folder)
                folder = os.path.dirname(folder)
            if os.path.basename(path) == 'BUILD':
                self.targets[os.path.dirname(path)] = set(TARGET.findall(text))
                self.programs.update(BINARY.findall(text))
                if path == 'BUILD':
                    self.programs.update(TARGET.findall(text))
            if path.endswith('.bzl'):
                self.macros += text
            if path.endswith(SOURCES) or path.startswith('scripts/'):
                sources.append(text)
        self.sources = '\n'.join(sources)
        self.scripts = '\n'.join(text for path, text in files.items() if path.startswith('scripts/') or path.endswith('.py'))
        self.known = {}

    def has(self, word, text):
        key = (word, len(text))
        if key not in self.known:
            self.known[key] = re.search(r'(?<![A-Za-z0-9_])' + re.escape(word) + r'(?![A-Za-z0-9])', text) is not None
        return self.known[key]

    def has_target(self, package, name):
        targets = self.targets.get(package, set())
        if name in targets or name == 'all':
            return package in self.targets
        # A macro makes names of another name and a part of its own.
        return any(name.startswith(each) and f'"{name[len(each):]}"' in self.macros for each in targets)

    def problems(self, words):
        while words and VARIABLE.match(words[0]):
            name = VARIABLE.match(words[0]).group(1)
            if not self.has(name, self.sources):
                yield f'no source knows {name}'
            words = words[1:]
        while words and re.match(r'^[A-Z_]+=', words[0]):
            words = words[1:]
        if not words:
            return
        if words[0].startswith('python3'):
            words = [word for word in words[1:] if not re.match(r'^-[A-Za-z]$', word)] or ['']
        program, rest = words[0], words[1:]
        if program == 'bazel':
            yield from self.problems_of_bazel(rest)
        elif re.match(r'^(scripts|\.ci)/[a-z]', program) and not is_placeholder(program):
            if program not in self.files:
                if program not in self.folders:
                    yield f'there is no {program}'
            else:
                yield from self.unknown_options(rest, lambda option: f'--{option}' in self.files[program] or self.has(option, self.scripts), program)
        elif (program[4:] if program.startswith('bin/') else program) in self.programs:
            yield from self.unknown_options(rest, lambda option: f'"{option}"' in self.sources or f'--{option}' in self.sources, program)
        elif program.startswith('bin/') and program != 'bin/' and not is_placeholder(program):
            yield f'there is no program {program}'

    def unknown_options(self, words, known, program):
        for word in words:
            match = OPTION.match(word)
            if not match or match.group(1).startswith(OF_LIBRARIES):
                continue
            whole = word[2:].partition('=')[0]
            if not known(whole) and not known(match.group(1)):
                yield f'{program} has no option --{whole}'

    def problems_of_bazel(self, words):
        for word in words:
            if word == '--':
                break  # what follows is for the program
            label = LABEL.match(word)
            if label and not is_placeholder(word.replace('...', '')) and not label.group(1).isupper():
                package, name = label.group(1), label.group(2)
                if package.endswith('...'):
                    package, name = package[:-3].rstrip('/'), None
                    if package not in self.folders:
                        yield f'there is no folder {package}'
                elif not self.has_target(package, name or os.path.basename(package)):
                    yield f'there is no target {word}'
            elif word.startswith('--config='):
                if not re.search(r'^\w+:' + re.escape(word[9:]) + r'\b', self.files.get('.bazelrc', ''), re.M):
                    yield f'.bazelrc has no {word}'
            elif word.startswith('--test_env='):
                name = word[11:].partition('=')[0]
                if not self.has(name, self.sources):
                    yield f'no source knows {name}'
            elif word.startswith('--test_filter='):
                for name in re.findall(r'[A-Z][A-Za-z0-9]{3,}', word[14:].partition('.')[0]):
                    if not is_placeholder(name) and name not in self.sources:
                        yield f'no test is named {name}'


def check(documents, files):
    """Findings as text."""
    checkout = Checkout(files)
    return [f'{path}:{number}: {problem}' for path in sorted(documents) for number, words in commands_of(documents[path])
            for problem in checkout.problems(words)]


def main(arguments):
    if not arguments or any(argument.startswith('-') for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    listed = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], check=True, capture_output=True, text=True).stdout
    files = {}
    for path in listed.splitlines():
        if (path.endswith(SOURCES) or os.path.basename(path) == 'BUILD' or path.startswith(('scripts/', '.ci/')) or path == '.bazelrc') and os.path.isfile(path):
            with open(path, encoding='utf-8', errors='replace') as file:
                files[path] = file.read()
    documents = {}
    for path in arguments:
        with open(path, encoding='utf-8') as file:
            documents[os.path.normpath(path)] = file.read()
    findings = check(documents, files)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
