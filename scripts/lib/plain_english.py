#!/usr/bin/env python3
"""Finds sentences that are not written as CONTRIBUTING.md ("How text is written") asks: in comments of C++, and in Markdown.

Usage: plain_english.py [--counts] [--most=N] FILE...
  --counts  one line per folder: findings, sentences, findings per 1,000
  --most=N  fails only where a folder has more than N findings per 1,000 sentences (default 0: any finding fails)

A finding is one of four patterns:
  begins   a statement begins with Who, Whoever, What or Whatever
  of       a sentence begins with Of
  so       "so many", "so long", "so often" or "so much" states a limit, where "at most N" or "up to N" would
  noun     "who VERB" or "what VERB" stands for a noun ("a reader that ...", "the page that ...")
"""

import collections
import os
import re
import sys

# A comment that is no prose: what a tool reads, a rule of lines, commented code.
NO_PROSE = re.compile(r"^\s*(NOLINT|clang-format|IWYU|TODO|namespace\b|[-=*/]{3}|[A-Z]+_H_)")
# Where a sentence ends: punctuation, then white space and a capital, a digit, a quote or a bracket.
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!cf\.)(?<!vs\.)\s+(?=[A-Z0-9\"'`(\[*_])")

BEGINS = re.compile(r"^(Who|Whoever|What|Whatever)\b")
OF = re.compile(r"^Of\b(?! course)")
SO = re.compile(r"\bso (many|long|often|much)\b(?! (as|that)\b)(?!,? that\b)", re.IGNORECASE)
VERBS = (r"(?:is|isn't|was|are|were|has|had|have|can|cannot|could|may|might|must|will|would|shall|should|did|does|do|"
         r"needs?|goes|went|comes|came|takes|took|holds?|held|reads?|writes?|wrote|waits?|waited|sees|saw|begins?|began|ends?|ended|"
         r"[a-z]{3,}(?:es|ed|ns|ts|ds|ks|ps|ls|rs))")
# A question that is asked, told or answered is no noun.
ASKED = (r"(?:say|says|said|tell|tells|told|ask|asks|asked|show|shows|shown|decide|decides|decided|know|knows|known|see|sees|explain|explains|"
         r"state|states|stated|describe|describes|described|name|names|named|report|reports|reported|learn|learns|define|defines|"
         r"determine|determines|find out|finds out|depends on|and|or|of|question|exactly)")
NOUN = re.compile(r"(?<![a-z])(?P<before>[A-Za-z']+ )?(?P<word>who|what|whoever|whatever) " + VERBS + r"\b")
PEOPLE = re.compile(r"(person|people|client|clients|operator|operators|user|users|reader|readers|engineer|engineers|those|anyone|anybody|"
                    r"somebody|someone|everyone|everybody|nobody|one|attacker|attackers|caller|callers|administrator|administrators|"
                    r"newcomer|newcomers|stranger|strangers|researcher|researchers|author|authors),? $")


def comment_blocks(text):
    """(line, prose) of each comment of a C++ source: adjoining lines of // are one."""
    block, first, column = [], 0, None
    for number, line in enumerate(text.split("\n"), 1):
        at = comment_start(line)
        alone = at is not None and line[:at].strip() == ""
        continues = block and alone and (column is None or at == column)
        if block and not continues:
            yield first, " ".join(block)
            block = []
        if at is None:
            continue
        prose = line[at:].lstrip("/").strip()
        if not prose or NO_PROSE.match(prose):
            if block:
                yield first, " ".join(block)
                block = []
            continue
        if not block:
            first, column = number, at if alone else None
        block.append(prose)
        if not alone:
            column = at
    if block:
        yield first, " ".join(block)


def comment_start(line):
    """Where // begins that is in no string; None: nowhere."""
    quote, at = None, 0
    while at < len(line):
        if quote:
            if line[at] == "\\":
                at += 1
            elif line[at] == quote:
                quote = None
        elif line[at] == '"' or (line[at] == "'" and not (at and line[at - 1].isalnum())):
            quote = line[at]
        elif line.startswith("//", at):
            return at
        at += 1
    return None


def markdown_blocks(text):
    """(line, prose) of each paragraph, list item and table cell that is no code."""
    fenced, block, first = False, [], 0
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        fence = stripped.startswith("```")
        starts = re.match(r"(#+|[-*]|\d+\.)\s+", stripped)
        if block and (fence or not stripped or starts or stripped.startswith("|")):
            yield first, " ".join(block)
            block = []
        if fence:
            fenced = not fenced
        if fence or fenced or not stripped:
            continue
        if stripped.startswith("|"):
            for cell in stripped.strip("|").split("|"):
                yield number, cell.strip()
            continue
        if stripped.startswith("#"):
            yield number, stripped.lstrip("# ")
            continue
        if not block:
            first = number
        block.append(stripped[starts.end():] if starts else stripped)
    if block:
        yield first, " ".join(block)


def sentences(prose):
    return [part.strip() for part in SENTENCE_END.split(prose) if re.search("[A-Za-z]", part)]


def findings(sentence):
    """The patterns that the sentence has."""
    # Code and quotations are not ours to write.
    plain = re.sub(r"`[^`]*`|\"[^\"]*\"", "X", sentence)
    bare = re.sub(r"^[\W_]+", "", plain)
    found = []
    if BEGINS.match(bare) and not bare.rstrip(")*_ ").endswith("?"):
        found.append("begins")
    if OF.match(bare):
        found.append("of")
    if SO.search(plain):
        found.append("so")
    for match in NOUN.finditer(plain):
        before = match.group("before") or ""
        if match.start("word") == len(plain) - len(bare):
            continue  # counted by "begins"
        if re.match(ASKED + " $", before) or (match.group("word") == "who" and PEOPLE.search(before)):
            continue
        found.append("noun")
        break
    return found


def folder_of(path):
    parts = os.path.dirname(path).split("/")
    return "/".join(parts[:2]) or "."


def main(arguments):
    counts = "--counts" in arguments
    most = next((float(a.split("=")[1]) for a in arguments if a.startswith("--most=")), 0.0)
    found = collections.Counter()
    total = collections.Counter()
    lines = collections.defaultdict(list)
    for path in (a for a in arguments if not a.startswith("--")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for line, prose in (markdown_blocks if path.endswith(".md") else comment_blocks)(text):
            for sentence in sentences(prose):
                total[folder_of(path)] += 1
                patterns = findings(sentence)
                if patterns:
                    found[folder_of(path)] += 1
                    lines[folder_of(path)].append(f"{path}:{line}: {' '.join(patterns)}: {sentence[:160]}")
    failed = False
    for folder in sorted(total):
        rate = 1000.0 * found[folder] / total[folder]
        if counts:
            print(f"{folder}: {found[folder]} of {total[folder]} sentences, {rate:.1f} per 1,000")
        if rate > most:
            failed = True
            if not counts:
                print("\n".join(lines[folder]))
    if counts:
        all_found, all_total = sum(found.values()), sum(total.values())
        print(f"all: {all_found} of {all_total} sentences, {1000.0 * all_found / max(1, all_total):.1f} per 1,000")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
