"""Measures what the paper's figures 4 to 8 show, and has them drawn. Called by scripts/paper.

Each measurement is a function that answers JSON-like data; paper_plots.py draws from these alone, so what was measured once can be drawn again.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import paper_plots  # noqa: E402  (beside this file)
from measuring import Failed, json_lines, machine, run  # noqa: E402


class Scale:
    """How much is measured."""

    def __init__(self, quick):
        processors = os.cpu_count() or 1
        self.records = 100_000 if quick else 5_000_000
        self.seconds = 2 if quick else 10
        self.rounds = 3 if quick else 5
        self.threads = sorted({n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n < processors} | {processors, 2 * processors})
        # Of figures 7 and 8, as the paper's are with most of its hardware threads.
        self.most_threads = processors
        self.scan_lengths = [10, 100, 1000, 10_000, 100_000] + ([] if quick else [1_000_000])
        self.scan_records_a_round = 200_000 if quick else 2_000_000
        self.turns = 6 if quick else 20
        self.transactions_a_turn = 10_000 if quick else 100_000
        self.range_counts = [1, 16, 256, 4096] if quick else [1, 4, 16, 64, 256, 1024, 4096, 8192]
        self.updates_per_100_scans = [5, 400] if quick else [0, 5, 100, 400]


class Measurements:
    def __init__(self, programs, scale, folder):
        self.programs, self.scale, self.folder = programs, scale, folder

    def program(self, name):
        return os.path.join(self.programs, name)

    def ycsb(self, what, *flags):
        """The result of one run on a store of its own."""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            out = os.path.join(data, 'result.json')
            run([self.program('ycsb/ycsb'), '--target=embedded', f'--data_dir={data}/store', f'--json={out}', f'--records={self.scale.records}',
                 f'--seconds={self.scale.seconds}', '--settle', '--durability=buffered', *flags], what)
            with open(out) as file:
                return json.load(file)

    def figure4(self):
        """YCSB-E by threads."""
        points = []
        for threads in self.scale.threads:
            results = [self.ycsb(f'figure 4: {threads} threads, round {n + 1}', '--workload=e-update', '--theta=0.877', f'--threads={threads}',
                                 f'--seed={n + 1}') for n in range(self.scale.rounds)]
            rates = [r['transactions_per_second'] for r in results]
            points.append({'threads': threads, 'rates': rates, 'rate': statistics.median(rates),
                           'records_per_second': statistics.median(r['records_per_second'] for r in results),
                           'aborted_share': statistics.median(r['aborts_per_second'] / max(r['transactions_per_second'], 1e-9) for r in results)})
        return points

    def figure5(self):
        """Updates and transactions of four operations, with and without range control."""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            return json_lines(run([self.program('costs/range_cost_bench'), f'--dir={data}', f'--records={self.scale.records // 2}',
                                   f'--rounds={self.scale.turns}', f'--transactions={self.scale.transactions_a_turn}'], 'figure 5'))

    def figure6(self):
        """Scans by length: direct, serializable, and validated by a second scan (figure 8)."""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            return json_lines(run([self.program('scans/scan_bench'), '--json', f'--dir={data}', f'--records={max(self.scale.records, self.scale.scan_lengths[-1])}',
                                   f'--rounds={self.scale.rounds + 2}', f'--per_round={self.scale.scan_records_a_round}'] +
                                  [f'--lengths={",".join(str(n) for n in self.scale.scan_lengths)}'], 'figures 6 and 8'))

    def figure7(self):
        """Scans of 10,000 records by the number of ranges and the share of updates."""
        points = []
        for updates in self.scale.updates_per_100_scans:
            for ranges in self.scale.range_counts:
                result = self.ycsb(f'figure 7: {updates} updates to 100 scans, {ranges} ranges', '--workload=e-update', '--theta=0.877', '--scan_min=10000',
                                   '--scan_max=10000', f'--fixed_ranges={ranges}', f'--threads={self.scale.most_threads}',
                                   f'--scan_percent={100 * 100 / (100 + updates):.0f}')
                scans = result['operations'].get('scan', {}).get('count', 0)
                points.append({'ranges': ranges, 'updates_per_100_scans': updates, 'scans_per_second': scans / result['seconds'],
                               'records_per_second': result['records_per_second'],
                               'aborted_share': result['aborts_per_second'] / max(result['transactions_per_second'], 1e-9)})
        return points


def measure(options):
    scale = Scale(options.quick)
    with tempfile.TemporaryDirectory(prefix='paper.', dir=options.dir) as folder:
        measurements = Measurements(options.programs, scale, folder)
        results = {'machine': machine(), 'quick': options.quick, 'records': scale.records, 'measured': time.strftime('%Y-%m-%d')}
        if 4 in options.figures:
            results['figure4'] = measurements.figure4()
        if 5 in options.figures:
            results['figure5'] = measurements.figure5()
        if 6 in options.figures or 8 in options.figures:
            results['figure6'] = measurements.figure6()
        if 7 in options.figures:
            results['figure7'] = measurements.figure7()
        results['machine']['load_average_after'] = os.getloadavg()[0]
    return results


def numbers(text):
    chosen = [int(n) for n in text.split(',')]
    if not set(chosen) <= {4, 5, 6, 7, 8}:
        raise argparse.ArgumentTypeError('the figures are 4, 5, 6, 7 and 8')
    return chosen


def main(arguments):
    parser = argparse.ArgumentParser(prog='scripts/paper')
    parser.add_argument('--programs', help='folder of the instruments')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--out', default='paper')
    parser.add_argument('--figures', type=numbers, default=[4, 5, 6, 7, 8])
    parser.add_argument('--draw', metavar='FILE')
    parser.add_argument('--dir', default='/var/tmp', help='where stores are made, and removed')
    options = parser.parse_args(arguments)
    os.makedirs(options.out, exist_ok=True)
    if options.draw:
        with open(options.draw) as file:
            results = json.load(file)
    else:
        results = measure(options)
        with open(os.path.join(options.out, 'results.json'), 'w') as file:
            json.dump(results, file, indent=1)
    for path in paper_plots.draw_all(results, options.out):
        print(path)


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except Failed as failure:
        sys.exit(f'paper: {failure}')
