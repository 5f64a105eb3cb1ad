"""What the scripts that measure have in common: programs that are run and answer JSON, and what machine this is."""

import json
import os
import platform
import subprocess
import time


class Failed(Exception):
    """Told without a trace."""


def run(command, what):
    """What it prints."""
    begun = time.monotonic()
    print(f'{what} ...', flush=True)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f'{what}: status {done.returncode}: {(done.stderr or done.stdout)[-2000:]}')
    print(f'{what}: {time.monotonic() - begun:.0f} s', flush=True)
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{')]


def machine():
    with open('/proc/cpuinfo') as info:
        names = [line.split(':', 1)[1].strip() for line in info if line.startswith('model name')]
    with open('/proc/meminfo') as info:
        memory = int(info.readline().split()[1]) // (1 << 20)
    return {'processors': os.cpu_count(), 'processor': names[0] if names else platform.machine(), 'memory_gib': memory,
            'system': f'{platform.system()} {platform.release()}', 'load_average': os.getloadavg()[0]}
