"""Measures everything that this project has set itself to reach, and shows it beside the targets. Called by scripts/targets.

Each part is a function that answers rows: what was measured, the target, what was reached, and what it is compared with in the same run. The targets were set
for two processors of another machine at rest: on any other only what is a ratio says something, and the ratio to the rival beside it.
"""

import argparse
import json
import mmap
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_servers  # noqa: E402  (beside this file)
import bench_table  # noqa: E402
from measuring import Failed, json_lines, machine, run  # noqa: E402

BLOCK = 4096


def row(what, target, here, beside='', met=None):
    return {'what': what, 'target': target, 'here': here, 'beside': beside, 'met': met}


def figure(value):
    """Three digits."""
    return bench_table.short(value) if value >= 1000 else f'{value:.3g}'


def at_least(what, target, here, unit='/s', beside=''):
    return row(what, f'≥ {bench_table.short(target)}{unit}', f'{bench_table.short(here)}{unit}', beside, here >= target)


def at_most(what, target, here, unit='', beside=''):
    return row(what, f'≤ {target:g}{unit}', f'{here:.3g}{unit}', beside, here <= target)


def old_reader_row(rounds):
    """The median of rounds, each of which measured without and with the old reader."""
    ratio = statistics.median(r['ratio'] for r in rounds)
    with_reader, without = (statistics.median(r[name] for r in rounds) for name in ('with', 'without'))
    processor = statistics.median(r['processor_ratio'] for r in rounds)
    return row('YCSB-E scans a second, beside one that has been open for 60 s', '≥ 0.8 of those without', f'{ratio:.2f}',
               f'{bench_table.short(with_reader)}/s and {bench_table.short(without)}/s; by processor time {processor:.2f}', ratio >= 0.8)


def worst_case_row(benchmarks):
    """Few records, so that all of them are in the transaction component: no target."""
    with_reader, without = (next(b['scans/s'] for b in benchmarks if ('/age:0/' in b['name']) == absent) for absent in (False, True))
    return row('scans of 50 where every record was updated meanwhile', '', f'{with_reader / without:.2f}',
               f'{bench_table.short(with_reader)}/s and {bench_table.short(without)}/s')


class Targets:
    """The parts. `size` says how large."""

    def __init__(self, options, folder):
        self.bin, self.folder, self.quick = options.bin, folder, options.quick
        self.have, self.results = options.have, {}

    def program(self, name):
        return os.path.join(self.bin, name)

    def size(self, quick, full):
        return quick if self.quick else full

    def keep(self, name, result):
        """What a part has measured, whole, for the JSON file."""
        self.results[name] = result
        return result

    def machine(self):
        """What the machine gives, beside the one that the targets were set for"""
        lines = self.keep('machine', json_lines(run([self.program('integration/machine/machine_limits')], 'the machine')))
        there = {'random line of memory, one chain': '175 ns', 'random line of memory, 16 chains': '15 ns', 'copying, one thread': '20 GB a second',
                 'gRPC stream between two processes, Unix socket, 16 under way': '202 k/s'}
        rows = [row(line['what'], there.get(line['what'], ''), figure(line['value']) + ('/s' if line['unit'].endswith('/s') else ' ' + line['unit'])) for line in lines]
        return rows + [row('a write of 4 KiB with O_DIRECT and O_DSYNC', '76 us', f'{device_write_us(self.folder):.0f} us')]

    # --- stores side by side

    def bench(self, name, *flags):
        out = os.path.join(self.folder, name + '.json')
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bench.py')
        run([sys.executable, '-B', script, f'--engines={self.program("integration/bench")}', f'--have={self.have}', f'--json={out}', f'--dir={self.folder}',
             *(['--quick'] if self.quick else []), *flags], f'stores side by side: {name}')
        with open(out) as file:
            return self.keep(name, json.load(file))

    def rates(self, result, ours, wanted=None, there=None):
        """A row for each target of which there is a figure, with the fastest rival's beside it."""
        rows = []
        for (workload, threads), target in (wanted or bench_table.TARGETS[ours]).items():
            cells = {r['contender']: r['rate'] for r in result['rows'] if (r['workload'], r['threads']) == (workload, threads)}
            if ours not in cells:
                continue
            best = bench_table.best_rival(cells)
            beside = '' if best is None else f'{best} {bench_table.short(cells[best])}/s: ×{cells[ours] / cells[best]:.2f}'
            pace = bench_table.pace(cells, (workload, threads), there)
            if pace is not None:
                beside += f'; rivals ×{pace:.2f} of where the target was set, which leaves ×{cells[ours] / (target * pace):.2f} of it'
            rows.append(at_least(f'{workload}, {threads} thread{"s" if threads > 1 else ""}', target, cells[ours], beside=beside))
        return rows

    def embedded(self):
        """Embedded, buffered commits"""
        return self.rates(self.bench('embedded', '--workloads=load,c,a,t,e,l'), 'ours')

    def durable(self):
        """Embedded, durable commits"""
        writes = [device_write_us(self.folder)]
        result = self.bench('durable', '--workloads=load,u', '--threads=1,16,128')
        writes.append(device_write_us(self.folder))
        alone = next(r for r in result['rows'] if (r['contender'], r['workload'], r['threads']) == ('ours', 'u', 1))
        p50 = statistics.median(s['p50_us'] for s in alone['samples'])
        return self.rates(result, 'ours')[-3:] + [
            at_most('a lone durable commit, median, in writes of 4 KiB to the device', 1.3, p50 / min(writes),
                    beside=f'{p50:.0f} us; a write with O_DIRECT and O_DSYNC {writes[0]:.0f} us before, {writes[1]:.0f} us after')]

    def sockets(self):
        """Over sockets: client, tcd and dcd, three processes"""
        return self.rates(self.bench('sockets', '--sockets', '--workloads=load,c,a,t,e,u', '--threads=16'), 'ours-sockets')

    def pipelined(self):
        """Over sockets, 64 transactions under way in each of 4 threads"""
        return self.rates(self.bench('pipelined', '--sockets', '--workloads=load,c,a,t', '--threads=4', '--pipeline=64'), 'ours-sockets',
                          bench_table.PIPELINED, bench_table.PIPELINED_THERE)

    # --- the data component alone

    def index(self):
        """The data component's records, no transactions"""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            result = self.keep('index', json.loads(run([self.program('dc/bench/record_ops_bench'), '--json', '--parts=memory', f'--dir={data}',
                                                        f'--records={self.size(1_000_000, 10_000_000)}', f'--rounds={self.size(2, 5)}'], 'the data component in memory')))
        medians = {(r['name'].removeprefix('memory: '), r['unit']): r['median'] for r in result['rows']}
        rows = []
        for what, unit, one, two in (('insert', 'operations/s', 1.4e6, 2.3e6), ('lookup', 'operations/s', 1.6e6, 2.8e6),
                                     ('scan of 1-100 records', 'operations/s', 0.7e6, 1.2e6), ('scan of 10,000 records', 'records/s', 90e6, 150e6)):
            for threads, target in (('1 thread', one), ('2 threads', two)):
                rows.append(at_least(f'{what}, {threads}', target, medians[f'{what}, {threads}', unit]))
        memory = next(value for (name, unit), value in medians.items() if unit == 'ratio')
        return rows + [at_most('memory for a byte of keys and values', 1.4, memory)]

    # --- the paper's ratios

    def scans(self):
        """Serializable scans beside the same ones on the data component, and beside those that are validated by a second scan"""
        lengths = [10, 100, 1000, 10_000, 100_000, 1_000_000]
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            lines = self.keep('scans', json_lines(run([
                self.program('integration/scans/scan_bench'), '--json', f'--dir={data}', '--records=1000000', '--rounds=9',
                f'--per_round={self.size(400_000, 2_000_000)}', f'--lengths={",".join(map(str, lengths))}'], 'scans')))
        rows = [at_most(f'{line["records_a_scan"]:,} records: serializable against direct', 1.1, line['serializable_ratio'],
                        beside=f'{line["serializable_ns"]:.0f} and {line["direct_ns"]:.0f} ns a record') for line in lines]
        long = [line for line in lines if line['records_a_scan'] >= 10_000]
        return rows + [row(f'{line["records_a_scan"]:,} records: validated against serializable', '≥ 1.43',
                           f'{line["validated_ns"] / line["serializable_ns"]:.2f}', '', line['validated_ns'] / line['serializable_ns'] >= 1.43) for line in long]

    def ranges(self):
        """What range control costs transactions that do not scan"""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            lines = self.keep('ranges', json_lines(run([
                self.program('integration/costs/range_cost_bench'), f'--dir={data}', f'--records={self.size(200_000, 2_000_000)}', f'--rounds={self.size(12, 30)}',
                '--transactions=100000'], 'the cost of ranges')))
        ratio = {line['workload']: line for line in lines if line['ranges'] == 'on/off'}
        return [at_most('four operations, 84 % reads: throughput lost', 2, 100 * (1 - ratio['four_operations']['transactions_per_second']), ' %',
                        f'processor time of all threads {100 * (ratio["four_operations"]["processor_us"] - 1):+.1f} %'),
                at_most('one update: median latency gained', 25, 100 * (ratio['update']['latency_p50'] - 1), ' %')]

    def ycsb(self, what, *flags):
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            out = os.path.join(data, 'result.json')
            run([self.program('integration/ycsb/ycsb'), '--target=embedded', f'--data_dir={data}/store', f'--json={out}', '--workload=e-update', '--theta=0.877',
                 f'--records={self.size(200_000, 2_000_000)}', f'--seconds={self.size(4, 20)}', '--settle', '--durability=buffered', *flags], what)
            with open(out) as file:
                return self.keep(what, json.load(file))

    def aborts(self):
        """YCSB-E: aborts as its clients see them, and scaling"""
        results = {n: self.ycsb(f'YCSB-E, {n} threads', f'--threads={n}') for n in (1, 2, 16, 64)}
        def share(result, member):
            return 100 * result.get(member, 0) / max(result['transactions_per_second'], 1e-9)
        rows = [at_most(f'{n} threads: aborted of all', 0.1, share(results[n], 'aborts_per_second'), ' %',
                        f'and {share(results[n], "restarts_per_second"):.2g} % that the TC repeated by itself') for n in (16, 64)]
        def grown(threads, beside):
            return f'{results[threads]["transactions_per_second"] / results[beside]["transactions_per_second"]:.2f}'
        processors = os.cpu_count()
        rows.append(row('2 threads against 1', 'near 2', grown(2, 1), f'on {processors} processors, of which background work takes its part'))
        # More threads than processors: what they cost each other is seen, not what more processors would give.
        return rows + [row(f'{n} threads against 2', 'near 1', grown(n, 2), f'contention of {n} threads, simulated on {processors} processors')
                       for n in (16, 64) if n > processors]

    def old_reader(self):
        """An old reader under 20,000 updates a second"""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            rounds = self.keep('old_reader', json_lines(run([
                self.program('integration/scans/old_reader_bench'), f'--dir={data}', f'--records={self.size(1_000_000, 10_000_000)}',
                f'--rounds={self.size(2, 5)}'], 'an old reader')))
        worst = self.keep('old_reader_worst', json.loads(run([
            self.program('integration/product/embedded/backlog_bench'), '--benchmark_format=json',
            f'--benchmark_filter=updates:20000/age:(0|{self.size(15, 60)})/ranges:16'], 'the worst case')))
        return [old_reader_row(rounds), worst_case_row(worst['benchmarks'])]

    # --- starts

    def dc_start(self):
        """A data component's start"""
        gib = self.size(1, 10)
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            result = self.keep('dc_start', json.loads(run([self.program('dc/bench/record_ops_bench'), '--json', '--parts=recovery', f'--dir={data}',
                                                           f'--recovery_gib={gib}'], f'start of a data component with {gib} GiB')))
        rows, largest = [], f'recovery of {gib:.3g} GiB'
        for r in result['rows']:
            if r['name'] == largest:
                rows.append(at_most(f'{gib} GiB of data: until it answers', 2, r['median'], ' s'))
            elif r['name'].startswith(largest) and r['unit'] == 'updates/s':
                rows.append(at_least(r['name'].removeprefix(largest + ': '), 1e6, r['median']))
        return rows

    def tc_start(self):
        """A transaction component's start with its log behind it, after kill -9"""
        records = self.size(1_000_000, 8_000_000)
        folder = tempfile.mkdtemp(dir=self.folder)
        store = Daemons(self, folder)
        try:
            store.start_dcd()
            store.start_tcd()
            store.seconds_until_read()
            run([self.program('integration/ycsb/ycsb'), f'--target={store.tc}', f'--records={records}', '--seconds=0', '--durability=buffered', '--threads=8'],
                f'load of {records:,} records')
            log = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(f'{folder}/tc') for name in names if name.startswith('log'))
            store.kill('tcd')
            store.start_tcd()
            alone = store.seconds_until_read()
            store.kill('tcd')
            store.kill('dcd')
            store.start_dcd()
            begun = time.monotonic()
            store.start_tcd()
            both = store.seconds_until_read()
            applied = store.seconds_until_applied(begun)
            store.wait(lambda: store.figure('dc.updates_applied') is not None, time.monotonic())
            updates = store.figure('dc.updates_applied')
        finally:
            store.stop()
        self.keep('tc_start', {'log_bytes': log, 'tc': alone, 'both': both, 'redo': applied, 'updates': updates})
        size = f'{log / (1 << 30):.2f} GiB of log'
        return [at_most(f'{size}: until it answers', 8, alone, ' s'),
                at_most(f'{size}, DC restarted with nothing of it: until the first read', 8, both, ' s'),
                at_least('redo over the socket, from the start of the processes on', 1e6, updates / applied, ' updates/s')]


class Daemons:
    """A dcd that takes no checkpoints, and a tcd: so the log stays whole."""

    def __init__(self, targets, folder):
        self.targets, self.folder, self.running = targets, folder, {}
        self.dc, self.tc = f'unix:{folder}/dc.socket', f'unix:{folder}/tc.socket'

    def start(self, name, flags):
        log = open(os.path.join(self.folder, name + '.log'), 'a')
        self.running[name] = bench_servers.start([self.targets.program(f'{name[:2]}/{name}'), f'--data_dir={self.folder}/{name[:2]}', *flags], log)
        log.close()

    def start_dcd(self):
        self.start('dcd', [f'--listen={self.dc}', '--dc_checkpoint_interval=0'])

    def start_tcd(self):
        self.start('tcd', [f'--listen={self.tc}', f'--dc={self.dc}'])

    def kill(self, name):
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self):
        for name in ('tcd', 'dcd'):
            if name in self.running:
                self.running[name].send_signal(signal.SIGTERM)
        for process in self.running.values():
            process.wait()

    def deut(self, *words):
        return subprocess.run([self.targets.program('integration/product/cli/deut'), f'--target={self.tc}', '--deadline=1s', '--table=usertable', *words], check=False, capture_output=True, text=True)

    def seconds_until_read(self):
        """Until it is known that a record (or, at first, the table) is not there."""
        return self.wait(lambda: 'NOT_FOUND' in self.deut('get', 'none').stderr, time.monotonic())

    def figure(self, name):
        for line in self.deut('status').stdout.splitlines():
            if line.split(' ', 1)[0] == name:
                return int(line.split(' ', 1)[1])
        return None

    def seconds_until_applied(self, begun):
        def applied():
            backlog = self.figure('tc.ship.backlog_bytes')
            return backlog is not None and backlog < 4096
        return self.wait(applied, begun)

    def wait(self, ready, begun, limit=600):
        while not ready():
            for name, process in self.running.items():
                if process.poll() is not None:
                    raise Failed(f'{name} has ended with status {process.returncode}')
            if time.monotonic() - begun > limit:
                raise Failed(f'the store does not answer within {limit} s')
            time.sleep(0.01)
        return time.monotonic() - begun


def device_write_us(folder, blocks=1024):
    """Median of one write of 4 KiB that is on the device when it returns."""
    descriptor, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, 'wb') as file:
        file.write(bytes(blocks * BLOCK))
        os.fsync(file.fileno())
    descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    buffer = mmap.mmap(-1, BLOCK)
    times = []
    for n in range(blocks):
        begun = time.perf_counter_ns()
        os.pwrite(descriptor, buffer, n * BLOCK)
        times.append(time.perf_counter_ns() - begun)
    os.close(descriptor)
    os.remove(path)
    return statistics.median(times) / 1000


PARTS = ['machine', 'embedded', 'index', 'durable', 'sockets', 'pipelined', 'scans', 'ranges', 'aborts', 'old_reader', 'dc_start', 'tc_start']


def table_of(machine_facts, sections):
    lines = [f'{machine_facts["processors"]} processors ({machine_facts["processor"]}), {machine_facts["memory_gib"]} GiB, {machine_facts["system"]}; '
             f'load average {machine_facts["load_average"]:.1f} at the beginning.\n']
    for title, rows in sections:
        lines.append(f'**{title}**\n')
        lines.append(bench_table.table(['', 'target', 'here', '', 'beside it'], [
            [r['what'], r['target'], r['here'], {True: 'met', False: 'missed', None: ''}[r['met']], r['beside']] for r in rows]))
    return '\n'.join(lines)


def parts(text):
    chosen = text.split(',')
    for name in chosen:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f'{name!r} is none of {", ".join(PARTS)}')
    return chosen


def main(arguments):
    parser = argparse.ArgumentParser(prog='scripts/targets')
    parser.add_argument('--bin', required=True, help='folder of the programs')
    parser.add_argument('--have', required=True, help='engines that are built')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--parts', type=parts, default=PARTS)
    parser.add_argument('--dir', default='/var/tmp')
    parser.add_argument('--json')
    parser.add_argument('--table')
    options = parser.parse_args(arguments)
    facts, sections = machine(), []
    with tempfile.TemporaryDirectory(prefix='targets.', dir=options.dir) as folder:
        os.chmod(folder, 0o711)  # a server of another user has its folder there
        targets = Targets(options, folder)
        for name in options.parts:
            part = getattr(targets, name)
            sections.append((part.__doc__, part()))
            # A run that is cut off has said what it knew.
            print(table_of(facts, sections[-1:]), flush=True)
            if options.json:
                with open(options.json, 'w') as file:
                    json.dump({'machine': facts, 'quick': options.quick, 'sections': sections, 'results': targets.results}, file, indent=1)
    text = table_of(facts, sections)
    if options.table:
        with open(options.table, 'w') as file:
            file.write(text)
    print(text)


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main(sys.argv[1:])
    except Failed as failure:
        sys.exit(f'targets: {failure}')
    except KeyboardInterrupt:
        sys.exit(130)
