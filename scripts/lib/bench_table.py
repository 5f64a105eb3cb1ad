"""The result of scripts/bench as tables for people, in Markdown."""


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
    return [row for row in result['rows'] if row['contender'] == name][-1]['samples'][-1]


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
    cells = {(row['contender'], row['workload'], row['threads']): row for row in result['rows']}
    rows = []
    for name in names:
        line = [name]
        for column in columns:
            row = cells.get((name,) + column)
            line.append('–' if row is None else f'{middle(row["samples"], "cpu_us"):.3g}')
        rows.append(line)
    return table([''] + [f'{workload.upper() if len(workload) == 1 else workload}, {threads}' for workload, threads in columns], rows)


def sizes_table(result, names):
    def amplification(name, workload):
        for row in result['rows']:
            if row['contender'] == name and row['workload'] == workload:
                value = middle(row['samples'], 'write_amplification')
                return '–' if value is None else f'{value:.2f}'
        return '–'
    rows = []
    for name in names:
        last = last_sample(result, name)
        rows.append([name, short(last['resident_bytes']) + 'B', short(last['resident_private_bytes']) + 'B',
                     short(last['disk_bytes']) + 'B', amplification(name, 'load'), amplification(name, 'a'),
                     amplification(name, 'u')])
    return table(['', 'resident', 'of it private', 'on disk', 'writes: load', 'A', 'U'], rows)


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
            f'({machine["processor"]}); load average {machine["load_average"][0]:.1f}.\n')
    return '\n'.join([
        head,
        'Transactions a second (load and L: records), by workload and threads; (×N): ours is N times as fast; ±: half of the range of the rounds.\n',
        rates_table(result, names, columns),
        'Processor microseconds a transaction (load and L: a record), background work included.\n',
        costs_table(result, names, columns),
        'Memory and disk at the end; bytes written to the disk for each byte of key and value written.\n',
        sizes_table(result, names),
        facts_table(result, names),
    ])
