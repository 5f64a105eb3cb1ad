"""Keeps common/RULES.md true: its references are generated, and what code and documents cite is in it. Called by scripts/lint.

Usage: rule_book.py --write | --check
--write puts the reference block of each section anew; --check changes nothing, prints what is wrong as FILE:LINE, and fails if anything is.

A section is `## RULE: name`, where RULE is one of RULES or, for steps that belong to no single rule, `FAMILY.*`. Its block lies between BEGIN and END
and lists the steps of the section: from DEUT_STEP("STEP") and DEUT_OMITTED("STEP") in the sources the file, from integration/rules.txt the tests, from
integration/models/models.txt the models, from integration/bugs/bugs.txt whether general instruments find the bug.

Citations, in comments, Markdown and models, are:
  STEP        `X4.refuse_ahead`: a letter of a rule, a number, a dot and a name. The step has to exist.
  after rule  "rule X3", "(rules R1 - R3, P)": each capital letter, with a number or without.
  numbered    "R1, step 5": the section has to have a step of that number.
  bare        `R6`: the letter of a family of rules with a number. T10 is a transaction, C1, N4 and O2 are invariants of a folder or a flag of a
              compiler, D2H is no number: the families and their numbers are RULES, and nothing else is a rule. A number beyond the last of its family
              is a mistake, but for those in NO_RULES.
"""

import collections
import os
import re
import subprocess
import sys
import textwrap

import plain_english

BOOK = 'common/RULES.md'
RULE_TESTS = 'integration/rules.txt'
MODELS = 'integration/models/models.txt'
BUGS = 'integration/bugs/bugs.txt'
BEGIN, END = '<!-- references -->', '<!-- end -->'

# The families of rules and the last number of each. P and V are one rule each.
LAST = {'R': 11, 'L': 2, 'S': 11, 'T': 1, 'D': 5, 'X': 7}
ALONE = ('P', 'V')
RULES = (*(f'R{n}' for n in range(1, 12)), 'L1', 'L2', 'P', *(f'S{n}' for n in range(1, 12)), 'T1', *(f'D{n}' for n in range(1, 6)),
         *(f'X{n}' for n in range(1, 8)), 'V')
# Steps that several rules rest on. rules.txt says which rule a test of theirs counts for.
FAMILIES = ('log', 'outcome', 'bwtree', 'merge', 'evict', 'load', 'flush', 'clean', 'pages', 'checkpoint', 'wire', 'reclamation', 'pool')
# A step that a model leaves out under a name without a rule is one of this family, else of the case's rule.
FAMILY_OF_MODEL = {'lead': 'log', 'durable': 'log', 'reclamation': 'reclamation', 'outcome': 'outcome'}
# Letter and number, and no rule: R20 a reader of timestamp 20, L3 a cache.
NO_RULES = {'R20', 'L3'}
# Where a step is the example of a name.
EXAMPLES = ('common/testing/', 'scripts/lib/rule_book')

OMITTED = re.compile(r'DEUT_(?:OMITTED|STEP)\(\s*"([^"]+)"\s*\)')
STEP = re.compile(r'(?<![\w.])([RLSTDXPV]\d*|' + '|'.join(FAMILIES) + r')\.([a-z][a-z0-9_]*)\b(?!\()')
RULE_WORD = re.compile(r'\b[Rr]ules?\s+((?:[A-Z]\d*\b(?:\s*(?:,|and|or|-|/)\s*)?)+)')
BARE = re.compile(r'(?<![\w.$/])([RLSDX])(\d{1,2})\b(?!\.?\w)')
HEADING = re.compile(r'^## (.*)$')
SECTION = re.compile(r'^([A-Z]\d*|[a-z]+\.\*): \S')
NOT_BUILT = re.compile(r'\bnot built\b', re.I)
NUMBERED = re.compile(r'(?<![\w.])([RLSTDX]\d+|[PV]),? \(?steps? (\d+)')
UNTESTED = re.compile(r'`([\w.]+)` has no rule test')

Case = collections.namedtuple('Case', 'line rule step name')  # of rules.txt, models.txt and bugs.txt


def known_rule(word):
    return word in RULES


def section_of(step):
    """Where a step stands; None: nowhere."""
    prefix, dot, name = step.partition('.')
    if not dot or not name:
        return None
    if known_rule(prefix):
        return prefix
    return f'{prefix}.*' if prefix in FAMILIES else None


def step_of_model(model, rule, omission):
    """The step that a case of a model leaves out; a name without a dot is no step of the code."""
    prefix, _, name = omission.partition('_')
    if name and (known_rule(prefix) or prefix in FAMILIES):
        return f'{prefix}.{name}'
    family = FAMILY_OF_MODEL.get(model)
    return f'{family}.{omission}' if family else f'{rule}.{omission}'


def is_source(path):
    return path.endswith(('.h', '.cc')) and not path.endswith('_test.cc') and not path.startswith('common/testing/')


def prose_of(path, text):
    """(line number, text) of what a file says to people: comments of C++, all of a document but fenced code."""
    fenced = False
    for number, line in enumerate(text.split('\n'), 1):
        if path.endswith(('.h', '.cc', '.proto')):
            at = plain_english.comment_start(line)
            if at is not None:
                yield number, line[at:]
        elif path.endswith('.md'):
            if line.lstrip().startswith('```'):
                fenced = not fenced
            elif not fenced:
                yield number, line
        elif path.endswith(('.pml', '.inc')):
            at = line.find('//')
            if at >= 0:
                yield number, line[at:]


def fields_of(text):
    """(line number, fields) of a list of cases; # begins a comment."""
    for number, line in enumerate(text.split('\n'), 1):
        fields = line.split('#')[0].split()
        if fields:
            yield number, fields


class Cited:
    """Everything that is said of steps outside of the rule book. `files`: path -> text."""

    def __init__(self, files):
        self.files = files
        self.code = collections.defaultdict(dict)  # step -> {file: line}
        for path in sorted(files):
            if is_source(path):
                for number, line in enumerate(files[path].split('\n'), 1):
                    at = plain_english.comment_start(line)
                    for step in OMITTED.findall(line if at is None else line[:at]):
                        self.code[step].setdefault(path, number)
        self.tests, self.models, self.bugs, self.kept = [], [], [], []
        for number, fields in fields_of(files.get(RULE_TESTS, '')):
            self.tests.append(Case(number, fields[0], fields[1], (fields[2][2:], fields[3])))
        for number, fields in fields_of(files.get(MODELS, '')):
            case = Case(number, fields[1], step_of_model(fields[0], fields[1], fields[2]), fields[0])
            (self.kept if fields[2] == '-' else self.models).append(case)
        for number, fields in fields_of(files.get(BUGS, '')):
            self.bugs.append(Case(number, None, fields[0], fields[1]))

    def steps(self):
        return set(self.code) | {case.step for case in self.tests + self.models}


def home_of_model_step(case):
    # A rule that nobody knows is told of by its line.
    return section_of(case.step) or case.rule


def of_section(cited, section):
    """Steps of a section -> (files, tests, models, found as a seeded bug)."""
    steps = {}

    def at(step):
        return steps.setdefault(step, ([], [], [], []))
    for step in cited.code:
        if section_of(step) == section:
            at(step)[0].extend(sorted(cited.code[step]))
    for kind, cases in ((1, cited.tests), (2, cited.models), (3, cited.bugs)):
        for case in cases:
            if section_of(case.step) == section and case.name not in at(case.step)[kind]:
                at(case.step)[kind].append(case.name)
    return steps


def code_span(text):
    return f'`{text}`'


def tests_of(tests):
    """`folder:target` `Suite.Case`, with each target once."""
    targets = collections.defaultdict(list)
    for target, case in tests:
        targets[target].append(code_span(case))
    return ', '.join(f'{code_span(target)} {" ".join(cases)}' for target, cases in targets.items())


def references(cited, section):
    """The lines between BEGIN and END."""
    rows, modelled = [], []
    for step, (files, tests, models, bugs) in sorted(of_section(cited, section).items()):
        if files or tests:
            found = [*map(code_span, models), *(f'bug: {layer}' for layer in bugs)]
            cells = (code_span(step), ', '.join(map(code_span, files)), tests_of(tests), ', '.join(found))
            rows.append('| ' + ' | '.join(cell or '-' for cell in cells) + ' |')
        else:
            modelled.append(f'{code_span(step.partition(".")[2])} ({", ".join(map(code_span, models))})')
    lines = ['| step | code | tests | models, seeded bugs |', '|---|---|---|---|', *rows] if rows else []
    kept = dict.fromkeys(case.name for case in cited.kept if section in (case.rule, f'{case.rule}.*'))
    others = dict.fromkeys(case.step for case in cited.tests + cited.models if case.rule == section and section_of(case.step) != section)
    for title, items in (('Models with all steps', list(map(code_span, kept))), ('Steps in models alone', modelled),
                         ('Steps of other sections that count here', list(map(code_span, others)))):
        if items:
            if lines:
                lines.append('')
            lines += textwrap.wrap(f'{title}: {", ".join(items)}.', 100, break_long_words=False, break_on_hyphens=False)
    return lines or ['No code, no test, no model.']


class Section:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.lines = []  # written by hand
        self.begin = self.end = None  # lines of the markers, from 1
        self.block = []


def parse(book):
    """(sections, findings) of the rule book."""
    sections, found, now, inside = [], [], None, False
    for number, line in enumerate(book.split('\n'), 1):
        heading = HEADING.match(line)
        if heading:
            if inside:
                found.append((number, f'{now.name}: {BEGIN} without {END}'))
            named = SECTION.match(heading[1])
            now, inside = (Section(named[1], number) if named else None), False
            if now:
                sections.append(now)
        elif line in (BEGIN, END):
            if now is None or (line == BEGIN) == inside or (line == BEGIN and now.begin):
                found.append((number, f'{line} out of place'))
                continue
            inside = line == BEGIN
            if inside:
                now.begin = number
            else:
                now.end = number
        elif now:
            (now.block if inside else now.lines).append(line)
    return sections, found


def write(book, cited):
    """The book with its blocks as they should be."""
    sections, found = parse(book)
    if found:
        return book
    lines = book.split('\n')
    for section in reversed(sections):
        if section.end:
            lines[section.begin:section.end - 1] = references(cited, section.name)
    return '\n'.join(lines)


def citations(path, text):
    """(line, word, what): 'step', 'rule' or 'bare'."""
    for number, line in prose_of(path, text):
        for step in STEP.finditer(line):
            if step[1] in ALONE or step[1] in FAMILIES or step[1][1:]:
                yield number, f'{step[1]}.{step[2]}', 'step'
        for after in RULE_WORD.finditer(line):
            for word in re.findall(r'[A-Z]\d*', after[1]):
                yield number, word, 'rule'
        for bare in BARE.finditer(line):
            yield number, bare[1] + bare[2], 'bare'


def check_citations(book, cited):
    found = {}  # each once, in order
    steps = cited.steps()
    numbers = {section.name: set(re.findall(r'^(\d+)\. ', '\n'.join(section.lines), re.M)) for section in parse(book)[0]}
    for path in sorted(cited.files):
        if path.startswith(EXAMPLES):
            continue
        for number, line in prose_of(path, cited.files[path]):
            for rule, step in NUMBERED.findall(line):
                if known_rule(rule) and step not in numbers.get(rule, ()):
                    found[f'{path}:{number}: {rule} has no step {step} in {BOOK}'] = None
        for number, word, what in citations(path, cited.files[path]):
            if what == 'step':
                # merge.cc and log.h are files: steps of families are told from them by being known.
                prefix = word.partition('.')[0]
                if prefix in FAMILIES or word in steps:
                    continue
                if not known_rule(prefix):
                    found[f'{path}:{number}: {word}: there is no rule {prefix}'] = None
                elif not re.fullmatch(r'h|cc|md|pml', word.partition('.')[2]):
                    found[f'{path}:{number}: {word}: no source, rule test or model has this step'] = None
            elif not known_rule(word) and word not in NO_RULES and not (what == 'rule' and word in LAST):
                found[f'{path}:{number}: {word} is no rule; the rules are in {BOOK}'] = None
    return list(found)


def check_cases(cited):
    found = []
    for path, cases in ((RULE_TESTS, cited.tests), (MODELS, cited.models + cited.kept), (BUGS, cited.bugs)):
        for case in sorted(cases):
            families = FAMILIES if path == MODELS else (*FAMILIES, None)
            if case.rule not in families and not known_rule(case.rule):
                found.append(f'{path}:{case.line}: {case.rule} is no rule; the rules are in {BOOK}')
            elif not case.step.endswith('.-') and section_of(case.step) is None:
                found.append(f'{path}:{case.line}: {case.step} is a step of no rule and of no family in {BOOK}')
            elif path != MODELS and case.step not in cited.code:
                found.append(f'{path}:{case.line}: no source leaves out {case.step}')
    for step, files in sorted(cited.code.items()):
        if section_of(step) is None:
            for path, line in files.items():
                found.append(f'{path}:{line}: {step} is a step of no rule and of no family in {BOOK}')
    return found


def check_book(book, cited):
    sections, broken = parse(book)
    found = [f'{BOOK}:{number}: {what}' for number, what in broken]
    names = [section.name for section in sections]
    tested = {case.step for case in cited.tests}
    seeded = {case.step for case in cited.bugs}
    for name in (*RULES, *(f'{family}.*' for family in FAMILIES)):
        if names.count(name) != 1:
            found.append(f'{BOOK}:1: {names.count(name)} sections of {name}')
    for section in sections:
        where = f'{BOOK}:{section.line}: {section.name}'
        if section.name not in RULES and section.name[:-2] not in FAMILIES:
            found.append(f'{where}: is no rule and no family of steps; they are listed in scripts/lib/rule_book.py')
            continue
        text = '\n'.join(section.lines)
        if section.end is None:
            found.append(f'{where}: has no references; give it lines {BEGIN} and {END}')
        elif section.block != references(cited, section.name):
            found.append(f'{BOOK}:{section.begin}: {section.name}: the references are stale; run scripts/lib/rule_book.py --write')
        steps = of_section(cited, section.name)
        others = any(case.rule == section.name for case in cited.tests)
        if not others and not any(files or tests for files, tests, _, _ in steps.values()) and not NOT_BUILT.search(text):
            found.append(f'{where}: neither code nor test has it, and it does not say "not built"')
        untested = set(UNTESTED.findall(' '.join(text.split())))
        for step, (files, _, _, _) in sorted(steps.items()):
            if not files:
                continue
            if code_span(step) not in text:
                found.append(f'{where}: does not say what {step} is')
            if step not in tested and step not in seeded and step not in untested:
                line = cited.code[step][files[0]]
                found.append(f'{files[0]}:{line}: {step} has no test in {RULE_TESTS}; add one, or say why not in {BOOK}: "{code_span(step)} has no rule test"')
        for step in sorted(untested & (tested | seeded)):
            found.append(f'{where}: says that {step} has no rule test, and it has one')
    return found


def check(book, cited):
    return check_book(book, cited) + check_cases(cited) + check_citations(book, cited)


def read_files():
    names = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '*.h', '*.cc', '*.proto', '*.md', '*.pml', '*.inc',
                            RULE_TESTS, MODELS, BUGS], check=True, capture_output=True, text=True).stdout.split('\n')
    files = {}
    for name in names:
        if name and os.path.isfile(name):
            with open(name, encoding='utf-8') as file:
                files[name] = file.read()
    return files


def main(arguments):
    if arguments not in (['--write'], ['--check']):
        print(__doc__)
        return 2
    files = read_files()
    book, cited = files.get(BOOK, ''), Cited(files)
    if arguments == ['--write']:
        with open(BOOK, 'w', encoding='utf-8') as file:
            file.write(write(book, cited))
        return 0
    found = check(book, cited)
    print('\n'.join(found), end='\n' if found else '')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
