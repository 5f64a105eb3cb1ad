"""Runs the stores under measurement in turns, and says what came of it. Called by scripts/bench.

Each contender is an engine (integration/bench/engine_main.cc), a process of its own that holds one store open and does what it is told; a store in other processes
has its servers beside. For each workload and number of threads the contenders take turns, one after the other, the first another in each round; before each
turn everybody's background work has come to rest. What is told is the median of the rounds, and how far they lie apart.
"""

import argparse
import json
import os
import platform
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_memory  # noqa: E402  (beside this file)
import bench_network  # noqa: E402
import bench_servers  # noqa: E402
import bench_table  # noqa: E402

KEY_BYTES = 24
TICKS = os.sysconf('SC_CLK_TCK')
# A store is at rest when all its processes together take less than this share of a processor for so long; waited for at most so long.
# A store that is larger than its memory may work for minutes on what a load has left for later.
REST_SHARE, REST_SPAN, REST_LIMIT = 0.05, 0.3, 300
SEED = 20
LEAST_LIMIT = 1 << 20  # bytes; no engine's program can begin below it

# name: engine, what it is told when it starts, what starts its servers
CONTENDERS = {
    'ours': ('deut', [], None),
    'rocksdb': ('rocksdb', ['--variant=plain'], None),
    'rocksdb-optimistic': ('rocksdb', ['--variant=optimistic'], None),
    'rocksdb-pessimistic': ('rocksdb', ['--variant=pessimistic'], None),
    'lmdb': ('lmdb', [], None),
    'wiredtiger': ('wiredtiger', [], None),
    'ours-sockets': ('deut', [], bench_servers.ours),
    'redis': ('redis', [], bench_servers.redis),
    'postgres': ('postgres', [], bench_servers.postgres),
}
# workload: threads in process, and over sockets. u is durable, the others are buffered.
WORKLOADS = {
    'load': ([1], [16]), 'c': ([1, 2], [1, 16]), 'a': ([1, 2], [1, 16]), 'b': ([1, 2], [16]), 'd': ([1, 2], [16]),
    'e': ([1, 2], [1, 16]), 'f': ([1, 2], [16]), 't': ([1, 2], [1, 16]), 'l': ([1, 2], [2]), 'u': ([1, 16], [1, 16]),
    'tpcc-np': ([1, 2], [16]), 'tpcc': ([1, 2], [16]), 'tatp': ([1, 2], [16]),
}
# The workloads whose keys --uniform draws uniformly (integration/bench/mix.h).
UNIFORM = ('a', 'b', 'c', 'f', 't')
# Those of whole transactions that follow from what they read (integration/bench/application.h): the option that says how large, and whose records they use.
APPLICATIONS = {'tpcc-np': ('warehouses', 'tpcc'), 'tpcc': ('warehouses', 'tpcc'), 'tatp': ('thousand_subscribers', 'tatp')}


class Failed(Exception):
    """Told without a trace."""


def say(text):
    print(text, flush=True)


def processes_of(roots):
    """These processes and their descendants."""
    parents = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open(f'/proc/{entry}/stat') as stat:
                    parents.setdefault(int(stat.read().rsplit(')', 1)[1].split()[1]), []).append(int(entry))
            except OSError:
                pass  # it has ended meanwhile
    found, unseen = [], list(roots)
    while unseen:
        pid = unseen.pop()
        found.append(pid)
        unseen += parents.get(pid, [])
    return found


def usage_of(roots):
    """Processor seconds, bytes read from the disk and written to it, and memory, of processes and their descendants."""
    usage = {'cpu_seconds': 0.0, 'read_bytes': 0, 'written_bytes': 0, 'resident_bytes': 0, 'resident_private_bytes': 0}
    for pid in processes_of(roots):
        try:
            with open(f'/proc/{pid}/stat') as stat:
                # With the children that have ended.
                usage['cpu_seconds'] += sum(int(n) for n in stat.read().rsplit(')', 1)[1].split()[11:15]) / TICKS
            with open(f'/proc/{pid}/io') as io:
                counts = dict(line.split(': ') for line in io)
            usage['read_bytes'] += int(counts['read_bytes'])
            usage['written_bytes'] += int(counts['write_bytes'])
            with open(f'/proc/{pid}/status') as status:
                fields = dict(line.split(':', 1) for line in status)
            usage['resident_bytes'] += int(fields['VmRSS'].split()[0]) * 1024
            usage['resident_private_bytes'] += int(fields['RssAnon'].split()[0]) * 1024
        except (OSError, KeyError):
            pass  # it has ended meanwhile
    return usage


def bytes_on_disk(folder):
    """What the files of a folder take, holes left out."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except OSError:
                pass  # removed meanwhile
    return total


class Contender:
    """A store in an engine and perhaps servers, perhaps with a limit on their memory."""

    def __init__(self, name, options, folder):
        self.name = name
        self.folder = os.path.join(folder, name)
        self.engine, self.servers = None, []
        self.value_bytes = options.value_bytes
        os.makedirs(self.folder)
        self.log = open(os.path.join(folder, name + '.log'), 'a')
        self.group = options.groups.group(name) if options.groups is not None else None

    def start(self, options):
        engine, arguments, start_servers = CONTENDERS[self.name]
        engines = options.builds.get(self.name, options.engines)
        within = self.group.within() if self.group is not None else []
        target, inside = '', []
        if start_servers is not None:
            self.servers, target = start_servers(options, engines, self.folder, self.log, within)
            inside = options.network.inside('client')
            if engine == 'deut':
                arguments = arguments + options.network.flags()
        command = [*within, *inside, os.path.join(engines, engine + '_engine'), f'--dir={self.folder}',
                   f'--cache={options.memory if engine == "deut" else options.cache}', f'--value_bytes={options.value_bytes}', f'--target={target}'] + arguments
        self.engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        return self.answer()

    def killed(self):
        """Whether the kernel has ended one of its processes because of the limit."""
        return self.group is not None and self.group.kills() > 0

    def answer(self):
        if self.group is not None:
            # An engine may wait forever for a server that the kernel has ended.
            while not select.select([self.engine.stdout], [], [], 1)[0] and not self.killed():
                pass
        line = '' if self.killed() else self.engine.stdout.readline()
        if not line:
            with open(self.log.name) as log:
                raise Failed(f'{self.name} has ended: {log.read()[-2000:]}')
        return json.loads(line)

    def order(self, line):
        self.engine.stdin.write(line + '\n')
        self.engine.stdin.flush()
        return self.answer()

    def roots(self):
        return [self.engine.pid] + [server.pid for server in self.servers]

    def measure(self, workload, line):
        """Has it done, and waits until the work that it left for later is done, too: the processor time and the writes are those of both."""
        before, load = usage_of(self.roots()), os.getloadavg()[0]
        result = self.order(line)
        result['rest_seconds'] = self.rest()
        after = usage_of(self.roots())
        operations = bench_table.operations(workload, result)
        result['cpu_us'] = (after['cpu_seconds'] - before['cpu_seconds']) * 1e6 / max(operations, 1)
        written = result['records_written'] * (KEY_BYTES + self.value_bytes)
        result['read_bytes'] = after['read_bytes'] - before['read_bytes']
        result['written_bytes'] = after['written_bytes'] - before['written_bytes']
        result['write_amplification'] = result['written_bytes'] / written if written else None
        result['resident_bytes'] = after['resident_bytes']
        result['resident_private_bytes'] = after['resident_private_bytes']
        result['disk_bytes'] = bytes_on_disk(self.folder)
        result['load_average'] = load
        return result

    def rest(self):
        """Waits until its processes do next to nothing; answers how long that took."""
        begun = time.monotonic()
        while time.monotonic() - begun < REST_LIMIT:
            before = usage_of(self.roots())['cpu_seconds']
            time.sleep(REST_SPAN)
            if (usage_of(self.roots())['cpu_seconds'] - before) / REST_SPAN <= REST_SHARE:
                break
        return time.monotonic() - begun

    def stop(self):
        if self.engine is not None:
            try:
                self.engine.stdin.close()
                self.engine.wait(timeout=60)
            except (OSError, subprocess.TimeoutExpired):
                self.engine.kill()
                self.engine.wait()
        for server in reversed(self.servers):
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(timeout=60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        self.servers = []
        if self.group is not None:
            self.group.remove()
        self.log.close()


class Run:
    """One run of the whole benchmark: of the stores in this process, or of those over sockets."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.open = {}
        self.facts, self.memory = {}, {}  # contender -> what its engine and its group say
        self.ended = {}  # contender -> why it takes part no longer
        self.samples = {}  # (workload, threads) -> contender -> [result]

    def note(self, workload, threads, name, result):
        self.samples.setdefault((workload, threads), {}).setdefault(name, []).append(result)
        rate = bench_table.rate(workload, result)
        say(f'{workload:>4} {threads:>3} threads  {name:<22} {rate:>12,.0f}/s  p99 {result["p99_us"]:>9,.1f} us'
            f'  cpu {result["cpu_us"]:>8,.2f} us  repeated {result["retries"]}')

    def load(self):
        rounds = self.options.load_rounds
        for number in range(rounds):
            for name in self.turn(number):
                self.open[name] = Contender(name, self.options, self.folder)
                self.attempt(name, self.open_and_load)
                if number + 1 < rounds and name in self.open:
                    contender = self.open.pop(name)
                    contender.stop()
                    shutil.rmtree(contender.folder)

    def open_and_load(self, contender):
        self.facts[contender.name] = contender.start(self.options)
        threads = WORKLOADS['load'][self.options.sockets][0]
        self.note('load', threads, contender.name, contender.measure('load', f'load {self.options.records} {threads}'))
        contender.order('settle')
        contender.rest()

    def attempt(self, name, work):
        """Returns work(contender). Without the memory for it, the contender leaves the run, which goes on with the others; returns None then."""
        contender = self.open[name]
        try:
            return work(contender)
        except (Failed, bench_servers.NotThere, OSError, subprocess.CalledProcessError):
            if not contender.killed():
                raise
        self.ended[name] = f'{name} was ended by the kernel: it needs more than the limit of {contender.group.limit:,} bytes'
        say(self.ended[name])
        self.memory[name] = contender.group.usage()
        contender.group.remove()  # and with it its other processes, which may wait for the one that has ended
        self.open.pop(name).stop()
        return None

    def verify(self):
        """All of them hold the same, byte by byte."""
        answers = {name: self.attempt(name, lambda contender: contender.order(f'verify 2000 {SEED}')) for name in list(self.open)}
        sums = {name: answer['checksum'] for name, answer in answers.items() if answer is not None}
        if len(set(sums.values())) > 1:
            raise Failed(f'the contenders do not hold the same: {sums}')
        if sums:
            say(f'all of them show the same records: checksum {next(iter(sums.values()))}')

    def turn(self, number):
        """The contenders that take part, in the order of this round."""
        names = [name for name in self.options.contenders if name not in self.ended]
        first = number % max(len(names), 1)
        return names[first:] + names[:first]

    def run(self):
        self.load()
        self.verify()
        loaded = set()
        for workload in self.options.workloads:
            if workload == 'load':
                continue
            if workload in APPLICATIONS and APPLICATIONS[workload][1] not in loaded:
                loaded.add(APPLICATIONS[workload][1])
                self.load_application(workload)
            for threads in self.options.threads or WORKLOADS[workload][self.options.sockets]:
                for number in range(self.options.rounds):
                    for name in self.turn(number):
                        if self.runs(name, workload):
                            line = self.order(workload, threads, number)
                            result = self.attempt(name, lambda contender: contender.measure(workload, line))
                            if result is not None:
                                self.note(workload, threads, name, result)
            if workload in APPLICATIONS:
                self.check_application(workload)

    def runs(self, name, workload):
        """Whether this store has the transactions that this workload needs."""
        return workload not in APPLICATIONS or self.facts[name]['interactive']

    def order(self, workload, threads, number):
        time = int(self.options.seconds * 1000)
        if workload in APPLICATIONS:
            return f'run_application {self.application(workload)} {threads} {time} buffered {SEED + number}'
        mix = f'{workload}-uniform' if self.options.uniform and workload in UNIFORM else workload
        line = f'run {mix} {threads} {time} {"durable" if workload == "u" else "buffered"} {SEED + number}'
        return line if self.options.pipeline == 1 else f'{line} {self.options.pipeline}'

    def application(self, workload):
        return f'{workload} {getattr(self.options, APPLICATIONS[workload][0])}'

    def load_application(self, workload):
        """The same records into every store that can run it, byte by byte."""
        sums = {}

        def load(contender):
            contender.order(f'load_application {self.application(workload)} 1')
            sums[contender.name] = contender.order(f'check_application {self.application(workload)}')['checksum']
            contender.order('settle')
            contender.rest()
        for name in list(self.open):
            if self.runs(name, workload):
                self.attempt(name, load)
        if len(set(sums.values())) > 1:
            raise Failed(f'the contenders do not hold the same records of {workload}: {sums}')
        say(f'{workload}: loaded, consistent and the same in all of {", ".join(sums)}')

    def check_application(self, workload):
        """Whether what must hold between the records still does: an engine that finds otherwise ends itself, and says what."""
        for name in list(self.open):
            if self.runs(name, workload):
                self.attempt(name, lambda contender: contender.order(f'check_application {self.application(workload)}'))
        say(f'{workload}: consistent afterwards')

    def memory_of(self, name):
        """How its group stands, and what was read and written in all its turns."""
        usage = self.open[name].group.usage() if name in self.open else self.memory[name]
        samples = [sample for contenders in self.samples.values() for sample in contenders.get(name, [])]
        return {**usage, **{member: sum(sample[member] for sample in samples) for member in ('read_bytes', 'written_bytes')}}

    def result(self):
        rows = []
        for (workload, threads), contenders in self.samples.items():
            for name, samples in contenders.items():
                rates = [bench_table.rate(workload, sample) for sample in samples]
                rows.append({
                    'workload': workload, 'threads': threads, 'contender': name,
                    'unit': bench_table.unit(workload),
                    'durability': self.facts[name]['durable' if workload == 'u' else 'buffered'],
                    'rate': statistics.median(rates), 'lowest': min(rates), 'highest': max(rates),
                    'samples': samples,
                })
        return {
            'machine': {'processors': os.cpu_count(), 'processor': processor(), 'system': platform.release(),
                        'load_average': os.getloadavg()},
            'options': {'records': self.options.records, 'value_bytes': self.options.value_bytes,
                        'cache_bytes': self.options.cache, 'memory_bytes': self.options.memory, 'rounds': self.options.rounds,
                        'seconds': self.options.seconds, 'pipeline': self.options.pipeline, 'over': self.options.over,
                        'uniform': self.options.uniform, 'memory_limit_bytes': self.options.memory_limit},
            'contenders': self.facts,
            'ended': self.ended,
            'memory': {} if self.options.memory_limit is None else {name: self.memory_of(name) for name in self.options.contenders},
            'rows': rows,
        }

    def stop(self):
        for contender in self.open.values():
            contender.stop()


def processor():
    with open('/proc/cpuinfo') as info:
        for line in info:
            if line.startswith('model name'):
                return line.split(':', 1)[1].strip()
    return platform.machine()


def words(known):
    def parse(text):
        chosen = text.split(',')
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f'{word!r} is none of {", ".join(known)}')
        return chosen
    return parse


def builds(text):
    """NAME=FOLDER,...: other builds of this project, each with bazel-bin's places of the engine and the daemons."""
    named = {}
    for word in text.split(','):
        name, _, folder = word.partition('=')
        engines = os.path.join(folder, 'integration', 'bench')
        if not name or name in CONTENDERS or not os.path.exists(os.path.join(engines, 'deut_engine')):
            raise argparse.ArgumentTypeError(f'{word!r} is not NAME=FOLDER with a new name and FOLDER/integration/bench/deut_engine')
        named[name] = engines
    return named


def memory_limit(text):
    limit = int(text) if text.isdigit() else 0
    if limit < LEAST_LIMIT:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of bytes from {LEAST_LIMIT:,}')
    return limit


def over_sockets(name):
    return CONTENDERS[name][2] is not None


def options_of(arguments):
    parser = argparse.ArgumentParser(prog='scripts/bench')
    parser.add_argument('--engines', required=True, help='folder of the engines')
    parser.add_argument('--have', type=lambda text: text.split(','), required=True, help='engines that are built')
    parser.add_argument('--contenders', type=words(CONTENDERS))
    parser.add_argument('--builds', type=builds, default={})
    parser.add_argument('--workloads', type=words(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument('--threads', type=lambda text: [int(n) for n in text.split(',')])
    parser.add_argument('--records', type=int)
    parser.add_argument('--value_bytes', type=int, default=100)
    parser.add_argument('--warehouses', type=int)
    parser.add_argument('--thousand_subscribers', type=int)
    parser.add_argument('--cache', type=int, help='bytes')
    parser.add_argument('--memory', type=int, help='bytes')
    parser.add_argument('--memory_limit', type=memory_limit, help='bytes')
    parser.add_argument('--uniform', action='store_true')
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--load_rounds', type=int, default=1)
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--pipeline', type=int, default=1)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--sockets', action='store_true')
    parser.add_argument('--over', choices=bench_network.KINDS)
    parser.add_argument('--dir', default='/var/tmp')
    parser.add_argument('--json')
    parser.add_argument('--table')
    options = parser.parse_args(arguments)
    options.records = options.records or (1_000_000 if options.quick else 10_000_000)
    if options.memory_limit is not None:
        # The other stores need memory beside their cache, and the page cache for their files. This project's budget is for the whole
        # process, and its files do not go through the page cache.
        options.memory = options.memory or options.cache or options.memory_limit // 8 * 7
        options.cache = options.cache or options.memory_limit // 2
    options.cache = options.cache or (1 << 30 if options.quick else 4 << 30)
    options.memory = options.memory or options.cache
    options.warehouses = options.warehouses or (1 if options.quick else 4)
    options.thousand_subscribers = options.thousand_subscribers or (20 if options.quick else 100)
    options.rounds = options.rounds or 3
    options.seconds = options.seconds or (1.5 if options.quick else 10)
    options.sockets = options.sockets or options.over is not None
    options.over = options.over or 'unix'
    options.network = bench_network.Network(options.over)
    for name in options.builds:
        CONTENDERS[name] = CONTENDERS['ours-sockets' if options.sockets else 'ours']
    if options.builds:
        options.contenders = (options.contenders or ['ours-sockets' if options.sockets else 'ours']) + list(options.builds)
    there = [name for name, (engine, _, _) in CONTENDERS.items() if engine in options.have]
    options.contenders = options.contenders or [name for name in there if over_sockets(name) == options.sockets]
    # Those that are measured together are of one kind, by whose threads the workloads go.
    options.sockets = any(over_sockets(name) for name in options.contenders)
    for name in options.contenders:
        if name not in there:
            raise Failed(f'{name} is not installed; scripts/bench --rivals installs it')
    return options


def main(arguments):
    options = options_of(arguments)
    bench_network.enter(options.over)
    options.groups = None
    if options.memory_limit is not None:
        options.groups = bench_memory.Groups(options.memory_limit)
    try:
        measure(options)
    finally:
        if options.groups is not None:
            options.groups.close()


def measure(options):
    if options.groups is not None:
        options.groups.check_room(len(options.contenders))
    folder = tempfile.mkdtemp(prefix='bench.', dir=options.dir)
    os.chmod(folder, 0o711)  # a server of another user has its folder there
    run = Run(options, folder)
    try:
        run.run()
        result = run.result()
    finally:
        run.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        with open(options.json, 'w') as file:
            json.dump(result, file, indent=1)
    table = bench_table.tables(result)
    if options.table:
        with open(options.table, 'w') as file:
            file.write(table)
    say('\n' + table)


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main(sys.argv[1:])
    except (Failed, bench_memory.Unavailable, bench_servers.NotThere) as failure:
        sys.exit(f'bench: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)
