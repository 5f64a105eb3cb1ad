"""Servers of the stores that are measured over sockets: started on loopback or a Unix socket, each with its data in a folder of its own, and stopped. Called by bench.py.

Each function starts one store's servers and answers (processes, target of the engine). Options and their reasons: integration/bench/options.md.
"""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import time

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


def answers(family, address):
    with socket.socket(family) as client:
        try:
            client.connect(address)
            return True
        except OSError:
            return False


def ours(options, folder, log):
    """dcd and tcd, on Unix sockets. The engine waits until they serve."""
    dc, tc = (f'unix:{os.path.abspath(folder)}/{name}.socket' for name in ('dc', 'tc'))
    bin_folder = os.path.dirname(os.path.dirname(options.engines))
    dcd = start([os.path.join(bin_folder, 'dc', 'dcd'), f'--listen={dc}', f'--data_dir={folder}/dc',
                 f'--dc_memory={options.cache - options.cache // 4}'], log)
    tcd = start([os.path.join(bin_folder, 'tc', 'tcd'), f'--listen={tc}', f'--dc={dc}', f'--data_dir={folder}/tc',
                 f'--version_budget={options.cache // 4}'], log)
    return [dcd, tcd], tc


def redis(options, folder, log):
    path = os.path.join(folder, 'socket')
    server = start([program('redis-server'), '--port', '0', '--unixsocket', path, '--dir', folder, '--save', '',
                    '--appendonly', 'yes', '--appendfsync', 'no', '--maxmemory', '0'], log)
    wait_until(lambda: answers(socket.AF_UNIX, path), server, 'redis-server')
    return [server], path


def postgres(options, folder, log):
    how = {}
    if os.getuid() == 0:  # it refuses to run as root
        try:
            user = pwd.getpwnam('postgres')
        except KeyError as error:
            raise NotThere('there is no user postgres') from error
        os.chown(folder, user.pw_uid, user.pw_gid)
        how = {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}
    data = os.path.join(folder, 'data')
    subprocess.run([program('initdb', '/usr/lib/postgresql/*/bin'), '-D', data, '-A', 'trust', '-U', 'bench', '-E', 'UTF8',
                    '--locale=C'], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, **how)
    settings = {
        'listen_addresses': '', 'unix_socket_directories': folder, 'max_connections': 200,
        'shared_buffers': f'{options.cache >> 20}MB', 'effective_cache_size': f'{options.cache >> 20}MB',
        'max_wal_size': '8GB', 'checkpoint_timeout': '15min', 'random_page_cost': 1.1, 'jit': 'off',
        # Conflicts are no errors here: to log each would only cost time.
        'log_min_messages': 'fatal', 'log_min_error_statement': 'panic',
        'max_pred_locks_per_transaction': 256,
    }
    server = start([program('postgres', '/usr/lib/postgresql/*/bin'), '-D', data] +
                   [f'-c{name}={value}' for name, value in settings.items()], log, cwd=folder, **how)
    path = os.path.join(folder, '.s.PGSQL.5432')
    ready = program('pg_isready', '/usr/lib/postgresql/*/bin')
    wait_until(lambda: os.path.exists(path) and subprocess.run([ready, '-q', '-h', folder], check=False).returncode == 0,
               server, 'postgres')
    return [server], f'host={folder} user=bench dbname=postgres'
