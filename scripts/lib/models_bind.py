"""Binds models to code: each step of a model cites the function that it models, and a change of that function is noticed.

In a model:   atomic { ... }  // code: tc/mvcc/range_table.cc Range::Post, Range::RaiseLastRead; tc/txn/write_set.h WriteSet::Publish
              atomic { ... }  // model: a step that has no code (what is around the component; bookkeeping of the property)
The comment stands on the line of `atomic` or `d_step` or, if that is too long, on the line above.
`looked_at.txt` holds a line `path symbol fingerprint` for each cited function, as it was when somebody last compared it with the model.
"""
import os
import re

import code_symbols

_CITE = re.compile(r'//\s*code:\s*(?P<what>.*?)\s*$')
_STEP = re.compile(r'\b(?:atomic|d_step)\b')
_MODEL = re.compile(r'//\s*model:')


def models(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(('.pml', '.inc')))


def citations(folder):
    """Yields (model file, line, path, symbol); problems as (model file, line, None, what is wrong)."""
    for name in models(folder):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            lines = file.read().split('\n')
        any_cited = False
        for number, line in enumerate(lines, 1):
            cite = _CITE.search(line)
            if cite:
                for part in cite.group('what').split(';'):
                    path, _, symbols = part.strip().partition(' ')
                    if not symbols.strip():
                        yield name, number, None, f'`// code:` needs a path and a symbol, not "{part.strip()}"'
                        continue
                    for symbol in symbols.split(','):
                        any_cited = True
                        yield name, number, path, symbol.strip()
            step = _STEP.search(line.split('//')[0])
            if step and not line.lstrip().startswith(('*', '/*', '#define')):
                near = line + (lines[number - 2] if number > 1 else '')
                if not _CITE.search(near) and not _MODEL.search(near):
                    yield name, number, None, 'a step without `// code: path symbol` or `// model: why it has none`'
        if not any_cited and name.endswith('.pml'):
            yield name, 1, None, 'cites no code at all'


class Source:
    """Fingerprints of the symbols of a tree, each file read once."""

    def __init__(self, root):
        self._root = root
        self._files = {}

    def fingerprint(self, path, symbol):
        if path not in self._files:
            try:
                with open(os.path.join(self._root, path), encoding='utf-8') as file:
                    self._files[path] = code_symbols.fingerprints(file.read())
            except OSError:
                self._files[path] = {}
        return self._files[path].get(symbol)


def _looked_at(folder):
    seen = {}
    try:
        with open(os.path.join(folder, 'looked_at.txt'), encoding='utf-8') as file:
            for line in file:
                fields = line.split('#')[0].split()
                if len(fields) == 3:
                    seen[fields[0], fields[1]] = fields[2]
    except OSError:
        pass
    return seen


def check(root, folder, say=print):
    """True if every cited function is there and is what somebody has looked at."""
    source, seen, good, cited = Source(root), _looked_at(folder), True, {}
    for name, line, path, symbol in citations(folder):
        where = f'{os.path.relpath(os.path.join(folder, name), root)}:{line}'
        if path is None:
            good = False
            say(f'{where}: {symbol}')
        else:
            places = cited.setdefault((path, symbol), {})
            places.setdefault(where.rsplit(':', 1)[0], []).append(str(line))
    for (path, symbol), places in sorted(cited.items()):
        now = source.fingerprint(path, symbol)
        if now is None:
            wrong = 'is not defined there: find where the step is now, and change the model'
        elif (path, symbol) not in seen:
            wrong = 'is cited for the first time: compare it with the model, then scripts/models --looked'
        elif seen[path, symbol] != now:
            wrong = 'has changed: compare it with the model, change that if need be, then scripts/models --looked'
        else:
            continue
        good = False
        where = ', '.join(file + ':' + ','.join(lines) for file, lines in places.items())
        say(f'{where}: {path} {symbol} {wrong}')
    if good:
        say(f'{len(cited)} functions cited by {len(models(folder))} models are as they were when last looked at')
    return good


def take_down(root, folder, say=print):
    source, seen, now = Source(root), _looked_at(folder), {}
    for name, line, path, symbol in citations(folder):
        fingerprint = path and source.fingerprint(path, symbol)
        if fingerprint is None:
            say(f'{name}:{line}: {path or ""} {symbol}: left out')
        else:
            now[path, symbol] = fingerprint
    for key in sorted(now):
        if seen.get(key) != now[key]:
            say(f'{"changed" if key in seen else "new"}: {" ".join(key)}')
    with open(os.path.join(folder, 'looked_at.txt'), 'w', encoding='utf-8') as file:
        file.write('# The functions that the models cite, as they were when somebody last compared them with the models: path symbol fingerprint.\n'
                   '# Written by `scripts/models --looked`, after looking; compared by `scripts/models --check`.\n')
        for (path, symbol), fingerprint in sorted(now.items()):
            file.write(f'{path} {symbol} {fingerprint}\n')
