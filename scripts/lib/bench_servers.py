"""Servers of the stores that are measured over sockets: started as options.network says (bench_network.py), each with its data in a folder of its own. Called by bench.py.

Each function starts one store's servers and answers (processes, target of the engine). `within` has the words before each command that is the store's. Options and their reasons: integration/bench/options.md.
"""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_network  # noqa: E402  (beside this file)

START_LIMIT = 60


class NotThere(Exception):
    """A server's program is not installed, or does not start."""


def program(name, *folders):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, name)), reverse=True):
            return path
    path = shutil.which(name)
    if path is None:
        raise NotThere(f'{name} is not installed')
    return path


def start(command, log, **how):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **how)


def wait_until(ready, process, what):
    limit = time.monotonic() + START_LIMIT
    while not ready():
        if process.poll() is not None:
            raise NotThere(f'{what} has ended with status {process.returncode}')
        if time.monotonic() > limit:
            raise NotThere(f'{what} does not answer within {START_LIMIT} s')
        time.sleep(0.05)


def answers(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
            return True
        except OSError:
            return False


def ours(options, engines, folder, log, within):
    """dcd and tcd. The engine waits until they serve."""
    network = options.network
    if network.kind == 'unix':
        dc, tc = (f'unix:{os.path.abspath(folder)}/{name}.socket' for name in ('dc', 'tc'))
    else:
        dc, tc = (f'{network.host(name)}:{network.port()}' for name in ('dc', 'tc'))
    bin_folder = os.path.dirname(os.path.dirname(engines))
    dcd = start([*within, *network.inside('dc'), os.path.join(bin_folder, 'dc', 'dcd'), f'--listen={dc}', f'--data_dir={folder}/dc',
                 f'--memory={options.memory - options.memory // 4}', *network.flags()], log)
    tcd = start([*within, *network.inside('tc'), os.path.join(bin_folder, 'tc', 'tcd'), f'--listen={tc}', f'--dc={dc}', f'--data_dir={folder}/tc',
                 f'--memory={options.memory // 4}', *network.flags()], log)
    return [dcd, tcd], tc


def redis(options, _, folder, log, within):
    network = options.network
    path = os.path.join(folder, 'socket')
    host, port = network.host('tc'), network.port()
    unix = network.kind == 'unix'
    listen = ['--port', '0', '--unixsocket', path] if unix else ['--bind', host, '--port', str(port), '--protected-mode', 'no']
    server = start([*within, *network.inside('tc'), program('redis-server'), *listen, '--dir', folder, '--save', '',
                    '--appendonly', 'yes', '--appendfsync', 'no', '--maxmemory', '0'], log)
    wait_until(lambda: answers(path) if unix else network.answers(host, port), server, 'redis-server')
    return [server], path if unix else f'{host}:{port}'


def postgres(options, _, folder, log, within):
    network = options.network
    as_user = []
    if os.getuid() == 0:  # it refuses to run as root
        try:
            user = pwd.getpwnam('postgres')
        except KeyError as error:
            raise NotThere('there is no user postgres') from error
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = ['setpriv', f'--reuid={user.pw_uid}', f'--regid={user.pw_gid}', '--clear-groups']
    data = os.path.join(folder, 'data')
    subprocess.run([*within, *as_user, program('initdb', '/usr/lib/postgresql/*/bin'), '-D', data, '-A', 'trust', '-U', 'bench', '-E', 'UTF8',
                    '--locale=C'], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    settings = {
        'listen_addresses': '', 'unix_socket_directories': folder, 'max_connections': 200,
        'shared_buffers': f'{options.cache >> 20}MB', 'effective_cache_size': f'{options.cache >> 20}MB',
        'max_wal_size': '8GB', 'checkpoint_timeout': '15min', 'random_page_cost': 1.1, 'jit': 'off',
        # Conflicts are no errors here: to log each would only cost time.
        'log_min_messages': 'fatal', 'log_min_error_statement': 'panic',
        'max_pred_locks_per_transaction': 256,
    }
    host, port = folder, 5432  # as a name of its socket
    if network.kind != 'unix':
        host, port = network.host('tc'), network.port()
        settings.update(listen_addresses=host, port=port)
        with open(os.path.join(data, 'pg_hba.conf'), 'a') as access:
            access.write(f'host all all {bench_network.SUBNETS} trust\n')
    server = start([*within, *network.inside('tc'), *as_user, program('postgres', '/usr/lib/postgresql/*/bin'), '-D', data] +
                   [f'-c{name}={value}' for name, value in settings.items()], log, cwd=folder)
    ready = [*network.inside('client'), program('pg_isready', '/usr/lib/postgresql/*/bin'), '-q', '-h', host, '-p', str(port)]
    wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, server, 'postgres')
    return [server], f'host={host} port={port} user=bench dbname=postgres'
