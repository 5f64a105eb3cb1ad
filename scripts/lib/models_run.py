"""Runs spin on the models: generates, compiles and runs the search of each case of the table, and judges what it found."""
import concurrent.futures
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

COMPILER = 'clang-19'
# A search that needs more has bounds that are too large for a part of every run.
MEMORY_MIB = 3000
MEMORY_DEEP_MIB = 12000
LIMIT_S = 300  # of wall time, on a machine that may do much else: the largest take half a minute of the processor
LIMIT_DEEP_S = 3600


@dataclasses.dataclass
class Case:
    model: str
    rule: str
    omission: str   # '-': every step kept
    expected: str   # ok, counterexample (an assertion fails), stuck (an invalid end state)
    flags: list
    deep: list      # in place of `flags` with --deep

    def name(self):
        bounds = ''.join(' ' + flag for flag in self.flags)
        return (f'{self.rule} kept' if self.omission == '-' else f'{self.rule} without {self.omission}') + bounds


@dataclasses.dataclass
class Outcome:
    passed: bool
    verdict: str
    states: int = 0
    seconds: float = 0.0
    details: str = ''


class Results:
    def __init__(self, path):
        self.passed = self.failed = self.skipped = 0
        self._path = path

    def add(self, model, case, passed):
        self.passed += bool(passed)
        self.failed += not passed
        if self._path:
            with open(self._path, 'a', encoding='utf-8') as file:
                file.write(f'{"PASS" if passed else "FAIL"}\tmodels\t{model}\t{case}\n')


def require_tools():
    for tool, package in (('spin', 'spin'), (COMPILER, COMPILER)):
        if not shutil.which(tool):
            sys.exit(f'FAILED: {tool} is missing: apt-get install {package}')


def read_table(path):
    """Lines `MODEL RULE OMISSION EXPECTED [FLAGS] [| DEEP FLAGS]`; # begins a comment."""
    table = []
    with open(path, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            usual, _, deep = line.split('#')[0].partition('|')
            fields = usual.split()
            if not fields:
                continue
            if len(fields) < 4 or fields[3] not in ('ok', 'counterexample', 'stuck') or (fields[2] == '-') != (fields[3] == 'ok'):
                sys.exit(f'FAILED: {path}:{number}: not `MODEL RULE OMISSION EXPECTED [FLAGS] [| DEEP FLAGS]`')
            table.append(Case(*fields[:4], fields[4:], deep.split() or fields[4:]))
    return table


def _run(command, folder, seconds):
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                              timeout=seconds, check=False)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b'').decode(errors='replace') + f'\nno end within {seconds} s\n'


def search(folder, case, deep, work):
    """Builds and runs the search in `work`; answers its output, or raises RuntimeError."""
    flags = case.deep if deep else case.flags
    defines = [f for f in flags if f.startswith('-D')]
    if case.omission != '-':
        defines.append('-DOMIT_' + case.omission)
    for name in os.listdir(folder):
        if name.endswith('.inc') or name == case.model + '.pml':
            shutil.copy(os.path.join(folder, name), work)
    status, said = _run(['spin', f'-P{COMPILER} -E -x c', '-a', *defines, case.model + '.pml'], work, 60)
    if status != 0 or re.search(r'^spin:.*Error', said, re.M) or not os.path.exists(os.path.join(work, 'pan.c')):
        raise RuntimeError('spin refuses it:\n' + said)
    build = [f for f in flags if f.startswith('+D')]
    # A counter-example is found soon: there compiling is what takes time.
    level = '-O2' if deep else '-O1' if case.omission == '-' else '-O0'
    memory = MEMORY_DEEP_MIB if deep else MEMORY_MIB
    status, said = _run([COMPILER, level, '-w', '-DSAFETY', '-DCOLLAPSE', f'-DMEMLIM={memory}', *['-' + f[1:] for f in build], '-o', 'pan', 'pan.c'],
                        work, 120)
    if status != 0:
        raise RuntimeError('the search does not compile:\n' + said)
    run = [f for f in flags if not f.startswith(('-D', '+D'))]
    if not any(f.startswith('-m') for f in run):
        run.append('-m200000')
    if not any(f.startswith('-w') for f in run):
        run.append('-w21')
    status, said = _run(['./pan', *run], work, LIMIT_DEEP_S if deep else LIMIT_S)
    if status == 124:
        raise RuntimeError(said)
    return said


def _unreached(said, folder, model):
    """The statements that the search never came to, save those on lines marked `// unreached: why`."""
    found = []
    files = {}
    for match in re.finditer(r'^\t(?P<file>[^:\n]+):(?P<line>\d+), state \d+, "(?P<what>.*)"$', said, re.M):
        name = os.path.basename(match['file'])
        if name not in files:
            try:
                with open(os.path.join(folder, name), encoding='utf-8') as file:
                    files[name] = file.read().split('\n')
            except OSError:
                files[name] = []
        number = int(match['line'])
        text = files[name][number - 1] if number <= len(files[name]) else ''
        if '// unreached:' not in text:
            found.append(f'{name}:{number}: {match["what"]}')
    return found


def judge(said, case, folder):
    def fail(verdict, details=''):
        return Outcome(False, verdict, states, seconds, details)

    states_line = re.search(r'^\s*([0-9.e+]+) states, stored', said, re.M)
    states = int(float(states_line[1])) if states_line else 0
    time_line = re.search(r'elapsed time ([0-9.e+-]+) seconds', said)
    seconds = float(time_line[1]) if time_line else 0.0
    errors = re.search(r'errors: (\d+)', said)
    if not errors or states == 0:
        return fail('NO SEARCH', said)
    what = re.search(r'^pan:\d+: (.*)$', said, re.M)
    if int(errors[1]) > 0:
        kind = what[1] if what else ''
        found = {'assertion violated': 'counterexample', 'invalid end state': 'stuck'}
        verdict = next((v for k, v in found.items() if k in kind), 'error')
        passed = verdict == case.expected
        text = {'counterexample': 'counter-example', 'stuck': 'stuck'}.get(verdict, 'ERROR')
        return Outcome(passed, text if passed else text.upper() + ' NOT EXPECTED', states, seconds, '' if passed else kind)
    for sign in ('max search depth too small', 'Search not completed', 'out of memory', 'reached -DMEMLIM'):
        if sign in said:
            return fail('NOT COMPLETE', sign)
    if case.expected != 'ok':
        return fail('NO COUNTER-EXAMPLE')
    unreached = _unreached(said, folder, case.model)
    if unreached:
        return fail('NEVER REACHED', '\n'.join(unreached))
    return Outcome(True, 'ok', states, seconds)


def run_case(folder, case, deep):
    work = tempfile.mkdtemp(prefix='deut-model-')
    begun = time.monotonic()
    try:
        outcome = judge(search(folder, case, deep, work), case, folder)
    except RuntimeError as error:
        outcome = Outcome(False, 'FAILED', details=str(error))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    outcome.seconds = time.monotonic() - begun
    return outcome


def run_all(folder, cases, deep, results):
    jobs = int(os.environ.get('DEUT_MODELS_JOBS') or os.cpu_count() or 2)
    lock, begun = threading.Lock(), time.monotonic()
    total = 0
    print(f'{"model":<18} {"rule":<6} {"step left out":<22} {"verdict":<18} {"states":>10} {"s":>6}')
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # Longest first is not known; kept ones are the long ones.
        order = sorted(cases, key=lambda case: case.omission != '-')
        running = {id(case): pool.submit(run_case, folder, case, deep) for case in order}
        for case in cases:
            outcome = running[id(case)].result()
            with lock:
                total += outcome.states
                print(f'{case.model:<18} {case.rule:<6} {case.omission:<22} {outcome.verdict:<18} {outcome.states:>10} {outcome.seconds:>6.1f}',
                      flush=True)
                if not outcome.passed and outcome.details:
                    print('    ' + '\n    '.join(outcome.details.strip().split('\n')[-25:]))
                results.add(case.model, case.name(), outcome.passed)
    print(f'{total} states, {time.monotonic() - begun:.0f} s')


def trace(folder, table, model, omission, deep):
    case = next((c for c in table if c.model == model and c.omission == omission), None)
    if case is None:
        sys.exit(f'FAILED: the table has no line for {model} with omission {omission}')
    work = tempfile.mkdtemp(prefix='deut-model-')
    try:
        # The shortest one that a bounded search finds in reasonable time is easier to read than the first.
        flags = [f for f in (case.deep if deep else case.flags) if f.startswith(('-D', '+D'))]
        shorter = dataclasses.replace(case, flags=flags + ['-i', '+DREACH'], deep=flags + ['-i', '+DREACH'])
        print(judge(search(folder, shorter, deep, work), case, folder).verdict)
        if os.path.exists(os.path.join(work, model + '.pml.trail')):
            defines = [f for f in flags if f.startswith('-D')] + ([] if omission == '-' else ['-DOMIT_' + omission])
            print(_run(['spin', f'-P{COMPILER} -E -x c', *defines, '-t', '-p', '-g', '-l', model + '.pml'], work, 60)[1])
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0
