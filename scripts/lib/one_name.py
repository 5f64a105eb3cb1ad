"""Finds classes that have one name in one namespace and are defined in several files. Called by scripts/lint.

No compiler sees both, and the linker takes either one's functions for the other's: a destructor that is implicit in one file is the one that is written in the other.
Reads the files that are named on its standard input, a line each.
"""

import collections
import re
import sys

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
NAMESPACE = re.compile(r'(?:inline\s+)?namespace\s*([\w:]*)\s*$')
CLASS = re.compile(r'\b(?:class|struct|union|enum)\s+(?:class\s+)?(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*([A-Za-z]\w*)\s*(?:final\s*)?(?::[^:].*)?$', re.S)
UNNAMED = '(unnamed)'


def classes_of(text):
    """Those that other files could mean, with their namespace."""
    text = NOT_CODE.sub('""', text)
    found, around, begin = [], [], 0  # around: for each open brace the namespace it opens, or None
    for brace in re.finditer(r'[{};]', text):
        head, begin = text[begin:brace.start()], brace.end()
        if brace.group() == '}':
            if around:
                around.pop()
        elif brace.group() == '{':
            namespace, named = NAMESPACE.search(head), CLASS.search(head)
            if namespace:
                around.append(namespace.group(1) or UNNAMED)
                continue
            if named and None not in around and UNNAMED not in around and 'template' not in head:
                found.append('::'.join([*around, named.group(1)]))
            around.append(None)
    return found


def shared(files):
    """name -> files, of the names that several files define. `files`: name -> text."""
    names = collections.defaultdict(set)
    for file, text in files.items():
        for name in classes_of(text):
            names[name].add(file)
    return {name: sorted(where) for name, where in names.items() if len(where) > 1}


def main():
    texts = {}
    for file in sys.stdin.read().split():
        with open(file) as opened:
            texts[file] = opened.read()
    found = shared(texts)
    for name, where in sorted(found.items()):
        print(f'{name} is defined in {" and in ".join(where)}: name one of them otherwise')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
