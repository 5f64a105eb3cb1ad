"""The result of scripts/bench as tables for people, in Markdown."""

import math


# What this project is to reach, transactions a second (load, l: records), by contender, workload and threads: on two processors that have
# nothing else to do, with 10 million records.
TARGETS = {
    'ours': {('load', 1): 700e3, ('c', 1): 1.2e6, ('c', 2): 2.4e6, ('a', 1): 0.9e6, ('a', 2): 1.6e6, ('t', 1): 350e3, ('t', 2): 650e3,
             ('e', 1): 420e3, ('e', 2): 700e3, ('l', 1): 60e6, ('l', 2): 110e6, ('u', 1): 11e3, ('u', 16): 60e3, ('u', 128): 150e3},
    'ours-sockets': {('c', 16): 100e3, ('a', 16): 90e3, ('t', 16): 60e3, ('e', 16): 50e3, ('u', 16): 35e3},
}

# The same over sockets with 64 transactions under way in each thread, on one connection.
PIPELINED = {('c', 4): 450e3, ('a', 4): 350e3, ('t', 4): 150e3}

# What the rivals did where these targets were set, with 10 million records: how much slower than that they are here says how much of what is missed
# is the machine's.
RIVALS_THERE = {
    'rocksdb': {('load', 1): 361e3, ('c', 1): 391e3, ('c', 2): 658e3, ('a', 1): 172e3, ('a', 2): 289e3, ('e', 1): 72e3, ('e', 2): 140e3,
                ('l', 1): 7.5e6, ('l', 2): 15.5e6, ('u', 1): 7.3e3, ('u', 16): 31.5e3},
    'rocksdb-optimistic': {('c', 1): 209e3, ('c', 2): 381e3, ('a', 1): 148e3, ('a', 2): 204e3, ('t', 1): 51e3, ('t', 2): 112e3, ('e', 1): 65e3,
                           ('e', 2): 117e3, ('l', 1): 7.0e6, ('l', 2): 13.8e6},
    'wiredtiger': {('load', 1): 152e3, ('c', 1): 567e3, ('c', 2): 1.19e6, ('a', 1): 204e3, ('a', 2): 209e3, ('t', 1): 81e3, ('t', 2): 120e3,
                   ('e', 1): 199e3, ('e', 2): 299e3, ('l', 1): 26.2e6, ('l', 2): 50.4e6, ('u', 1): 10.1e3, ('u', 16): 9.2e3},
    'lmdb': {('load', 1): 114e3, ('c', 1): 997e3, ('c', 2): 2.32e6, ('a', 1): 62e3, ('a', 2): 45e3, ('t', 1): 40e3, ('t', 2): 35e3, ('e', 1): 174e3,
             ('e', 2): 302e3, ('l', 1): 17.7e6, ('l', 2): 33.8e6, ('u', 1): 3.4e3, ('u', 16): 3.3e3},
    'redis': {('c', 16): 101e3, ('a', 16): 96e3, ('t', 16): 69e3, ('e', 16): 10.6e3, ('u', 16): 34.5e3},
    'postgres': {('c', 16): 98e3, ('a', 16): 42e3, ('t', 16): 17e3, ('e', 16): 14.4e3, ('u', 16): 15.7e3},
}
PIPELINED_THERE = {
    'redis': {('c', 4): 511e3, ('a', 4): 480e3},
    'postgres': {('c', 4): 139e3, ('a', 4): 96e3, ('t', 4): 30e3},
}


def pace(cells, column, there=None):
    """How fast the rivals are here, of what they were where the targets were set: their geometric mean, or None."""
    there = RIVALS_THERE if there is None else there
    shares = [rate / there[name][column] for name, rate in cells.items() if column in there.get(name, {})]
    return math.exp(sum(map(math.log, shares)) / len(shares)) if shares and min(shares) > 0 else None


def unit(workload):
    return {'load': 'records/s', 'l': 'records/s'}.get(workload, 'transactions/s')


def operations(workload, result):
    return result[{'load': 'records_written', 'l': 'records_read'}.get(workload, 'transactions')]


def rate(workload, result):
    return operations(workload, result) / max(result['seconds'], 1e-9)


def short(number):
    """Three digits, with k or M."""
    for size, letter in ((1e9, ' G'), (1e6, ' M'), (1e3, ' k')):
        if number >= size:
            number /= size
            return f'{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f}{letter}'
    return f'{number:.0f}'


def table(header, rows):
    lines = ['| ' + ' | '.join(header) + ' |', '|' + '---|' * len(header)]
    return '\n'.join(lines + ['| ' + ' | '.join(row) + ' |' for row in rows]) + '\n'


def last_sample(result, name):
    """None for a contender that has finished no turn."""
    return next((row['samples'][-1] for row in reversed(result['rows']) if row['contender'] == name), None)


def middle(samples, member):
    values = sorted(sample[member] for sample in samples if sample[member] is not None)
    return values[len(values) // 2] if values else None


def rates_table(result, names, columns):
    """A line a contender; beside its rate how many times as many ours does, and half of how far its rounds lie apart."""
    first = 'ours' if 'ours' in names else 'ours-sockets'
    cells = {(row['contender'], row['workload'], row['threads']): row for row in result['rows']}
    rows = []
    for name in names:
        line = [name]
        for column in columns:
            row, ours = cells.get((name,) + column), cells.get((first,) + column)
            if row is None:
                line.append('–')
                continue
            text = short(row['rate'])
            if name != first and ours is not None:
                text += f' (×{ours["rate"] / max(row["rate"], 1e-9):.2f})'
            spread = (row['highest'] - row['lowest']) / 2 / max(row['rate'], 1e-9)
            if len(row['samples']) > 1:
                text += f' ±{100 * spread:.0f} %'
            line.append(text)
        rows.append(line)
    return table([''] + [f'{workload.upper() if len(workload) == 1 else workload}, {threads}' for workload, threads in columns], rows)


def costs_table(result, names, columns):
    """Processor time a transaction (load, l: record), in microseconds, with what is done afterwards; all threads and processes."""
    return cells_table(result, names, columns, lambda _, samples: f'{middle(samples, "cpu_us"):.3g}')


def cells_table(result, names, columns, cell):
    """A line a contender; cell(workload, samples) for each column."""
    cells = {(row['contender'], row['workload'], row['threads']): row['samples'] for row in result['rows']}
    rows = []
    for name in names:
        rows.append([name] + ['–' if (name,) + column not in cells else cell(column[0], cells[(name,) + column]) for column in columns])
    return table([''] + [f'{workload.upper() if len(workload) == 1 else workload}, {threads}' for workload, threads in columns], rows)


def figure(number):
    return f'{number:,.0f}' if number >= 100 else f'{number:.3g}'


def latencies(_, samples):
    values = [middle(samples, member) for member in ('p50_us', 'p99_us', 'p999_us') if member in samples[0]]
    return ' / '.join(figure(value) for value in values)


def reads(workload, samples):
    values = sorted(sample['read_bytes'] / max(operations(workload, sample), 1) for sample in samples)
    return figure(values[len(values) // 2])


def memory_table(result):
    rows = []
    for name, memory in result['memory'].items():
        sizes = [memory[member] for member in ('peak_bytes', 'file_bytes', 'read_bytes', 'written_bytes')]
        counts = [memory[member] for member in ('limit_hits', 'kills')]
        rows.append([name] + ['–' if size is None else short(size) + 'B' for size in sizes] + ['–' if count is None else f'{count:,}' for count in counts])
    return table(['', 'peak', 'pages of files at the end', 'read from the disk', 'written to it', 'limit was hit', 'processes ended by the kernel'], rows)


def memory_tables(result, names, columns):
    """How the contenders did within their limit; nothing without one."""
    if not result['memory']:
        return []
    return ['Each contender alone in its group; times the limit was hit: the kernel had to reclaim memory first.\n', memory_table(result),
            'Bytes read from the disk for each transaction (load and L: record).\n', cells_table(result, names, columns, reads),
            'Microseconds of a transaction with its retries (load: of a batch): p50 / p99 / p99.9.\n', cells_table(result, names, columns, latencies)]


def sizes_table(result, names):
    def value_of(name, workload, member, digits):
        for row in result['rows']:
            if row['contender'] == name and row['workload'] == workload:
                value = middle(row['samples'], member)
                return '–' if value is None else f'{value:.{digits}f}'
        return '–'

    def amplification(name, workload):
        return value_of(name, workload, 'write_amplification', 2)

    rows = []
    for name in names:
        last = last_sample(result, name)
        if last is None:
            continue
        rows.append([name, short(last['resident_bytes']) + 'B', short(last['resident_private_bytes']) + 'B',
                     short(last['disk_bytes']) + 'B', amplification(name, 'load'), amplification(name, 'a'),
                     amplification(name, 'u'), value_of(name, 'load', 'rest_seconds', 0)])
    return table(['', 'resident', 'of it private', 'on disk', 'writes: load', 'A', 'U', 'busy after the load, s'], rows)


def best_rival(rates):
    """The fastest of those that are not this project, of {contender: rate}."""
    return max((name for name in rates if name not in TARGETS), key=rates.get, default=None)


def targets_table(result, names):
    """Of what was measured: the target, what was reached of it, and the best rival's rate in the same run."""
    rows = []
    for name in names:
        for (workload, threads), target in TARGETS.get(name, {}).items():
            cells = {row['contender']: row['rate'] for row in result['rows'] if (row['workload'], row['threads']) == (workload, threads)}
            if name not in cells:
                continue
            best = best_rival(cells)
            rows.append([f'{workload.upper() if len(workload) == 1 else workload}, {threads}', short(target), short(cells[name]),
                         f'{cells[name] / target:.2f}',
                         '–' if best is None else f'{best}: {short(cells[best])} (×{cells[name] / max(cells[best], 1e-9):.2f})'])
    return table(['', 'target', 'here', 'of it', 'best rival here'], rows) if rows else ''


def facts_table(result, names):
    rows = []
    for name in names:
        facts = result['contenders'][name]
        rows.append([name, facts['name'], facts['isolation'], facts['buffered'], facts['durable']])
    return table(['', 'store', 'isolation', 'all but U: acknowledged when', 'U: acknowledged when'], rows)


def tables(result):
    names = list(result['contenders'])
    columns = []
    for row in result['rows']:
        if (row['workload'], row['threads']) not in columns:
            columns.append((row['workload'], row['threads']))
    options, machine = result['options'], result['machine']
    head = (f'{options["records"]:,} records of {options["value_bytes"]} bytes, {short(options["cache_bytes"])}B of cache; '
            f'{options["rounds"]} rounds of {options["seconds"]:g} s; {machine["processors"]} processors '
            f'({machine["processor"]}); load average {machine["load_average"][0]:.1f}.')
    # The targets are for keys by Zipf and for as much memory as the machine has.
    comparable = not options['uniform'] and not result['memory']
    if options['uniform']:
        head += ' Uniform keys in A, B, C, F and T.'
    if options.get('memory_bytes', options['cache_bytes']) != options['cache_bytes']:
        head += f' {short(options["memory_bytes"])}B for the whole process of this project.'
    if result['memory']:
        head += f' At most {options["memory_limit_bytes"]:,} bytes of memory for each contender, page cache included.'
    return '\n'.join([
        head + '\n',
        *[text + '\n' for text in result['ended'].values()],
        'Transactions a second (load and L: records), by workload and threads; (×N): ours is N times as fast; ±: half of the range of the rounds.\n',
        rates_table(result, names, columns),
        'Processor microseconds a transaction (load and L: a record), background work included.\n',
        costs_table(result, names, columns),
        'Memory and disk at the end; bytes written to the disk for each byte of key and value written; how long a contender went on working by itself '
        'when the load had returned.\n',
        sizes_table(result, names),
        *memory_tables(result, names, columns),
        *(['The targets (for an idle machine with two processors and 10 million records; on another only the ratio to the rival says something).\n',
           targets_table(result, names)] if comparable else []),
        facts_table(result, names),
    ])
