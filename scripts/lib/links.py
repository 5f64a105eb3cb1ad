"""Checks the links of Markdown documents. Called by scripts/lint.

Usage: links.py [--from=DOCUMENT] FILE...
Run it in the root of the checkout; FILEs are the documents, relative to it. Prints each finding as FILE:LINE, and fails if there is any:
  - a relative link names a file or folder that is not there, or one outside of the checkout
  - an anchor names no heading of the document that it points to
  - a document of FILE... is not reached from DOCUMENT (default: README.md) by links; not checked if DOCUMENT is none of FILE...
Links to other hosts are not followed. Code, fenced or inline, has no links.
"""

import os
import re
import sys
import urllib.parse

FENCE = re.compile(r'^\s*(```|~~~)')
HEADING = re.compile(r'^(#{1,6})\s+(.*?)\s*#*\s*$')
INLINE_CODE = re.compile(r'(`+)(?!`).*?(?<!`)\1(?!`)')
LINK = re.compile(r'\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+"[^"]*")?\s*\)')
REFERENCE = re.compile(r'^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+"[^"]*")?\s*$')
NAMED = re.compile(r'<a\s+(?:id|name)="([^"]+)"')
ELSEWHERE = re.compile(r'^([a-z][a-z0-9+.-]*:|//)', re.IGNORECASE)


def prose_of(text):
    """(line number, line) of everything outside of fences."""
    fenced = False
    for number, line in enumerate(text.split('\n'), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def slug(heading):
    """The anchor that GitHub gives a heading: letters, digits, '_' and '-' stay, blanks become '-', everything else goes."""
    shown = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', heading).replace('`', '').replace('*', '')
    return re.sub(r'[^\w\- ]', '', shown.lower()).replace(' ', '-')


def anchors_of(text):
    """All anchors of a document; the second heading of a name gets -1, the third -2."""
    anchors, seen = set(), {}
    for _, line in prose_of(text):
        anchors.update(NAMED.findall(line))
        match = HEADING.match(line)
        if match:
            name = slug(match.group(2))
            count = seen.get(name, 0)
            seen[name] = count + 1
            anchors.add(f'{name}-{count}' if count else name)
    return anchors


def links_of(text):
    """(line number, target) of each link, as it is written. The text of a link may be broken over two lines, its target may not."""
    before = ''
    for number, line in prose_of(text):
        plain = INLINE_CODE.sub('', line)
        match = REFERENCE.match(plain)
        if match:
            yield number, match.group(1)
        joined = before + plain
        for match in LINK.finditer(joined):
            if match.end() > len(before):
                yield number, match.group(1)
        # The last open bracket of a link that began in this line, and ends in a later one.
        opened = joined.rfind('[')
        before = joined[opened:] + ' ' if opened >= 0 and plain and ']' not in joined[opened:] else ''


def check(documents, exists, first='README.md'):
    """Findings as text. `documents`: path -> text; exists(path): whether a file or folder is there."""
    findings, next_of = [], {}
    anchors = {path: anchors_of(text) for path, text in documents.items()}
    for path in sorted(documents):
        next_of[path] = set()
        for number, target in links_of(documents[path]):
            if ELSEWHERE.match(target):
                continue
            name, _, anchor = target.partition('#')
            name = urllib.parse.unquote(name)
            place = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if place.startswith('..') or os.path.isabs(place):
                findings.append(f'{path}:{number}: {target} leads out of the checkout')
            elif not exists(place):
                findings.append(f'{path}:{number}: {target} names nothing: there is no {place}')
            elif anchor and place in anchors and anchor not in anchors[place]:
                findings.append(f'{path}:{number}: {target}: {place} has no heading #{anchor}')
            else:
                next_of[path].add(place)
    if first in documents:
        reached, to_visit = {first}, [first]
        while to_visit:
            new = (next_of[to_visit.pop()] & set(documents)) - reached
            reached |= new
            to_visit.extend(new)
        for path in sorted(set(documents) - reached):
            findings.append(f'{path}:1: no link leads here from {first}; add one to the README of its folder')
    return findings


def main(arguments):
    first, files = 'README.md', []
    for argument in arguments:
        if argument.startswith('--from='):
            first = argument.partition('=')[2]
        elif argument.startswith('-'):
            print(__doc__, file=sys.stderr)
            return 2
        else:
            files.append(os.path.normpath(argument))
    documents = {}
    for path in files:
        with open(path, encoding='utf-8') as file:
            documents[path] = file.read()
    findings = check(documents, os.path.exists, first)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
