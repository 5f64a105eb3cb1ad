"""Draws what scripts/paper has measured, beside the paper's values. Called by paper.py.

The paper's values are those that its text states; its machine has 32 cores, 64 hardware threads and 50 million records.
"""

import os

import matplotlib

matplotlib.use('Agg')
from matplotlib import pyplot  # noqa: E402  (after the choice of a backend without a screen)

OURS, OTHER, THIRD, PAPER = '#1f5fa8', '#d1701f', '#3a8f4d', '#888888'
# Of figures 4 to 8, as the text has them: YCSB-E on 64 hardware threads; latency of an update with range support against without; throughput of
# transactions of four operations likewise; serializable against direct scans; against scans validated by a second scan.
PAPER_RATE, PAPER_THREADS = 2.25e6, 64
PAPER_UPDATE_LATENCY = 1.8
PAPER_FOUR_OPERATIONS = 1.25 / 1.28
PAPER_SCAN_SHARE = (0.65, 0.80)
PAPER_OVER_VALIDATION = 1.43


class Figure:
    """One picture, with the machine named below it."""

    def __init__(self, results, name, title, columns=1):
        self.name = name
        self.picture, axes = pyplot.subplots(1, columns, figsize=(6.4 * columns, 4.6), squeeze=False, layout='constrained')
        self.axes = list(axes[0])
        self.picture.suptitle(title, fontsize=12)
        machine = results['machine']
        self.picture.supxlabel(f'{machine["processor"]}, {machine["processors"]} processors, {machine["memory_gib"]} GiB; '
                               f'{results["records"]:,} records of 100 bytes; load average {machine["load_average"]:.1f}; {results["measured"]}'
                               + ('; quick' if results['quick'] else ''), fontsize=7, color=PAPER)

    def save(self, folder):
        paths = []
        for kind in ('svg', 'png'):
            paths.append(os.path.join(folder, f'{self.name}.{kind}'))
            self.picture.savefig(paths[-1], dpi=130)
        pyplot.close(self.picture)
        return paths


def label(axis, x, y, logarithmic=False):
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(True, alpha=0.3)
    if logarithmic:
        axis.set_xscale('log')
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8)


def figure4(results, folder, rows):
    points = results['figure4']
    figure = Figure(results, 'figure4', 'YCSB-E by client threads')
    axis = figure.axes[0]
    threads, rates = [p['threads'] for p in points], [p['rate'] / 1e3 for p in points]
    processors = results['machine']['processors']
    ideal = points[0]['rate'] / 1e3 / points[0]['threads']
    axis.plot(threads, rates, 'o-', color=OURS, label='this project, embedded (median)')
    axis.vlines(threads, [min(p['rates']) / 1e3 for p in points], [max(p['rates']) / 1e3 for p in points], color=OURS, alpha=0.5)
    axis.plot(threads, [ideal * min(n, processors) for n in threads], '--', color=PAPER, label='linear up to the processors there are')
    each = PAPER_RATE / 1e3 / PAPER_THREADS
    axis.plot(threads, [each * n for n in threads], ':', color=OTHER, label='paper: 2.25 M/s on 64 hardware threads, its share of each')
    axis.axvline(processors, color=PAPER, linewidth=0.6)
    label(axis, 'client threads', 'thousand transactions a second')
    whole = [p for p in points if p['threads'] <= processors][-1]
    rows.append(('4', f'YCSB-E, {whole["threads"]} threads against 1', 'near linear', f'{whole["rate"] / points[0]["rate"]:.2f} times'))
    rows.append(('4', 'YCSB-E, a thread', f'{PAPER_RATE / PAPER_THREADS / 1e3:.0f} k/s', f'{points[0]["rate"] / points[0]["threads"] / 1e3:.0f} k/s'))
    rows.append(('4', 'YCSB-E, aborted attempts', 'insignificant', f'{100 * max(p["aborted_share"] for p in points):.3f} % at most'))
    return figure.save(folder)


def figure5(results, folder, rows):
    lines = results['figure5']
    pick = {(line['workload'], line['ranges']): line for line in lines}
    figure = Figure(results, 'figure5', 'Latency of one update, with and without range control', columns=2)
    for axis, logarithmic in zip(figure.axes, (False, True)):
        for ranges, color, name in (('on', OURS, 'with range control'), ('off', OTHER, 'without')):
            line = pick['update', ranges]
            microseconds = [x for x, _ in line['cumulative']]
            axis.plot(microseconds, [y for _, y in line['cumulative']], color=color, label=name)
            mean = line['latency_us']['mean']
            below = max([y for x, y in line['cumulative'] if x <= mean], default=0)
            axis.plot([mean], [below], 'o', color=color, label=f'mean: {mean:.1f} us')
        off = pick['update', 'off']['cumulative']
        axis.plot([PAPER_UPDATE_LATENCY * x for x, _ in off], [y for _, y in off], ':', color=PAPER, label='paper: 80 % above without, on average')
        label(axis, 'microseconds', 'share of updates that took no longer', logarithmic)
        if not logarithmic:
            axis.set_xlim(0, 1.5 * max(x for ranges in ('on', 'off') for x, y in pick['update', ranges]['cumulative'] if y <= 0.95))
    ratio = pick['update', 'on/off']
    rows.append(('5', 'update: latency with ranges against without', f'+{100 * (PAPER_UPDATE_LATENCY - 1):.0f} % (mean)',
                 f'{100 * (ratio["latency_p50"] - 1):+.1f} % (median); processor of its thread {100 * (ratio["client_us"] - 1):+.1f} %'))
    ratio = pick['four_operations', 'on/off']
    rows.append(('5', 'four operations: throughput with ranges against without', f'{100 * (PAPER_FOUR_OPERATIONS - 1):+.1f} %',
                 f'{100 * (ratio["transactions_per_second"] - 1):+.1f} %; processor of all threads {100 * (ratio["processor_us"] - 1):+.1f} %'))
    return figure.save(folder)


def rates_by_length(lines, side):
    return [line['records_a_scan'] for line in lines], [1e3 / line[f'{side}_ns'] for line in lines]


def figure6(results, folder, rows):
    lines = results['figure6']
    figure = Figure(results, 'figure6', 'Scans by length, one thread: serializable against the data component alone')
    axis = figure.axes[0]
    direct = rates_by_length(lines, 'direct')
    axis.plot(*direct, 's-', color=OTHER, label='direct, no isolation')
    axis.plot(*rates_by_length(lines, 'serializable'), 'o-', color=OURS, label='serializable')
    low, high = PAPER_SCAN_SHARE
    axis.fill_between(direct[0], [low * y for y in direct[1]], [high * y for y in direct[1]], color=PAPER, alpha=0.25,
                      label='paper: 20 to 35 % slower than direct')
    label(axis, 'records a scan', 'million records a second of processor time', logarithmic=True)
    slower = [f'{line["records_a_scan"]:,}: {100 * (1 - 1 / line["serializable_ratio"]):.0f} %' for line in lines]
    rows.append(('6', 'serializable scans slower than direct ones, by records', '20 to 35 %', '; '.join(slower)))
    return figure.save(folder)


def figure7(results, folder, rows):
    points = results['figure7']
    figure = Figure(results, 'figure7', 'Scans of 10,000 records by number of logical ranges')
    axis = figure.axes[0]
    best = []
    for color, updates in zip((OURS, OTHER, THIRD, '#8a4fa3', '#444444'), sorted({p['updates_per_100_scans'] for p in points})):
        line = sorted((p for p in points if p['updates_per_100_scans'] == updates), key=lambda p: p['ranges'])
        axis.plot([p['ranges'] for p in line], [p['scans_per_second'] * 10_000 / 1e6 for p in line], 'o-', color=color, label=f'{updates} updates to 100 scans')
        best.append(f'{updates} to 100: {max(line, key=lambda p: p["scans_per_second"])["ranges"]:,}')
    label(axis, 'logical ranges', 'million records scanned a second', logarithmic=True)
    rows.append(('7', 'best number of ranges, by updates to scans', 'rises, then falls (its others have about 2,450)', '; '.join(best)))
    return figure.save(folder)


def figure8(results, folder, rows):
    lines = results['figure6']
    figure = Figure(results, 'figure8', 'Range control against validation by a second scan, one thread')
    axis = figure.axes[0]
    axis.plot(*rates_by_length(lines, 'serializable'), 'o-', color=OURS, label='range control')
    validated = rates_by_length(lines, 'validated')
    axis.plot(*validated, 's-', color=OTHER, label='validated by a second scan')
    axis.plot(validated[0], [PAPER_OVER_VALIDATION * y for y in validated[1]], ':', color=PAPER, label='paper: up to 43 % above validation')
    label(axis, 'records a scan', 'million records a second of processor time', logarithmic=True)
    faster = [f'{line["records_a_scan"]:,}: {100 * (line["validated_ns"] / line["serializable_ns"] - 1):+.0f} %' for line in lines]
    rows.append(('8', 'range control faster than validation, by records', 'up to +43 %', '; '.join(faster)))
    return figure.save(folder)


def draw_all(results, folder):
    """Draws what is there. Answers the files."""
    rows, paths = [], []
    for name, draw in (('figure4', figure4), ('figure5', figure5), ('figure6', figure6), ('figure7', figure7), ('figure6', figure8)):
        if name in results:
            paths += draw(results, folder, rows)
    path = os.path.join(folder, 'paper.md')
    machine = results['machine']
    with open(path, 'w') as file:
        file.write(f'{machine["processor"]}, {machine["processors"]} processors, {machine["memory_gib"]} GiB, {machine["system"]}; load average '
                   f'{machine["load_average"]:.1f} before, {machine.get("load_average_after", 0):.1f} after; {results["records"]:,} records'
                   f'{" (quick)" if results["quick"] else ""}; {results["measured"]}. The paper\'s: 32 cores, 64 hardware threads, 50 million records.\n\n')
        file.write('| figure | what | paper | here |\n|---|---|---|---|\n')
        for row in rows:
            file.write('| ' + ' | '.join(row) + ' |\n')
    return paths + [path]
