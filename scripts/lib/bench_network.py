"""How the stores that are measured over sockets are reached. Called by bench.py and bench_servers.py.

unix        Unix sockets
tcp         TCP on loopback
namespaces  TCP between three network namespaces, joined as three hosts would be: a client's, a TC's (where a rival's server is, too), a DC's

Servers and engines are started with `inside(where)` before their command, where `where` is client, tc or dc.
"""

import os
import socket
import subprocess
import sys

KINDS = ('unix', 'tcp', 'namespaces')
# The address at which those who have to reach it do, as in integration/harness/network.cc.
ADDRESSES = {'tc': '10.77.1.2', 'dc': '10.77.2.2'}
SUBNETS = '10.77.0.0/16'
ENTERED = 'DEUT_BENCH_NAMESPACES'
SET_UP = '''
set -e
mount -t tmpfs -o mode=755 none /run
for name in client tc dc; do
  ip netns add $name
  ip -n $name link set lo up
done
join() {  # join NAME DEVICE ADDRESS NAME DEVICE ADDRESS
  ip link add $2 netns $1 type veth peer name $5 netns $4
  ip -n $1 address add $3/24 dev $2
  ip -n $4 address add $6/24 dev $5
  ip -n $1 link set $2 up
  ip -n $4 link set $5 up
}
join client veth-tc 10.77.1.1 tc veth-client 10.77.1.2
join tc veth-dc 10.77.2.1 dc veth-tc 10.77.2.2
exec "$@"
'''


def enter(kind):
    """For `namespaces` begins this program again within a network of its own, which goes with it."""
    if kind != 'namespaces' or ENTERED in os.environ:
        return
    if os.getuid() != 0:
        sys.exit('bench: --over=namespaces needs to be root: it makes network namespaces, and PostgreSQL runs as another user')
    os.environ[ENTERED] = '1'
    os.execvp('unshare', ['unshare', '--net', '--mount', 'bash', '-c', SET_UP, 'bench', sys.executable, '-B', *sys.argv])


class Network:
    def __init__(self, kind):
        self.kind = kind

    def inside(self, where):
        """What stands before a command."""
        return ['ip', 'netns', 'exec', where] if self.kind == 'namespaces' else []

    def host(self, where):
        return ADDRESSES[where] if self.kind == 'namespaces' else '127.0.0.1'

    def port(self):
        """One that nobody listens at."""
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            return free.getsockname()[1]

    def flags(self):
        """A namespace's address could be another machine's, for all our daemons know."""
        return ['--insecure'] if self.kind == 'namespaces' else []

    def answers(self, host, port):
        """From where the clients are."""
        connect = f'import socket; socket.create_connection(({host!r}, {port}), 1)'
        return subprocess.run([*self.inside('client'), sys.executable, '-c', connect], check=False, stderr=subprocess.DEVNULL).returncode == 0
