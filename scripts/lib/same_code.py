#!/usr/bin/env python3
"""Proves that a commit that is about comments changes comments alone.

Usage: same_code.py [OLD [NEW]]   (default: HEAD and the working tree)
Compares every .h and .cc that differs between the two, with comments removed. Prints the files whose code differs, and fails if there are any.
"""

import re
import subprocess
import sys

# A string, a character, a raw string, or a comment; whichever begins first.
TOKEN = re.compile(r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def code_of(text):
    """The source without comments, and without white space outside of strings: a formatter may break lines elsewhere."""
    code, last = [], 0
    for match in TOKEN.finditer(text):
        code.append("".join(text[last:match.start()].split()))
        if not match.group().startswith(("//", "/*")):
            code.append(match.group())
        last = match.end()
    code.append("".join(text[last:].split()))
    return "".join(code)


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def content(revision, path):
    if revision is None:
        with open(path, encoding="utf-8") as file:
            return file.read()
    return git("show", f"{revision}:{path}")


def main(arguments):
    old = arguments[0] if arguments else "HEAD"
    new = arguments[1] if len(arguments) > 1 else None
    changed = git("diff", "--name-status", "--no-renames", old, *([new] if new else []), "--", "*.h", "*.cc").splitlines()
    differ = []
    for line in changed:
        status, path = line.split("\t")
        if status != "M" or code_of(content(old, path)) != code_of(content(new, path)):
            differ.append(path)
    for path in differ:
        print(f"{path}: the code differs, not only comments")
    print(f"{len(changed) - len(differ)} of {len(changed)} changed sources differ in comments alone")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
