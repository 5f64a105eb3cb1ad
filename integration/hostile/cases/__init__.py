"""One attack in each file. A module has

  attack(target, until)  goes on until then (until.py), and does at least one whole round. Returns what it has done, name -> number.
                         AssertionError: the daemon bears it in a way that it must not
  SLICE                  True: part of the short run in CI
  LEAST                  name -> the least number that `attack` must have returned for it. One round suffices for it
  MOST                   optional: name -> the highest number allowed. Sanitizers are let off
  MOST_TIMED             optional: the same of times. Judged where latencies are
  TARGETS                optional: the daemons that it attacks, of ("tcd", "dcd")
  TLS                    optional: with and without it, (False, True)
  TRANSACTIONS           optional: False where no transaction can succeed meanwhile; the clients beside it then ask for health alone
  LIMITS                 optional: limits of the daemons' processes, a Limits of daemons.py
  FRESH                  optional: True for daemons that no other case has used
  FEW_CONNECTIONS        optional: True if the daemons may have few connections. The client beside the attack then connects twice a second, not ten times
  TWIN                   optional: True for a second pair of daemons that nobody attacks, `target.twin`. No clients work beside such a case
"""

import select
import socket
import ssl
import struct
import time

from client import Connection
from http2 import SETTINGS, connect, frame
import store

# Attacks come from another address than the well-behaved clients, so that the cap of one peer holds for them alone.
SOURCE = "127.0.0.2"
# An attacker that makes no progress for this time gives up: the daemon hangs.
PATIENCE = 30.0


def rounds(until):
    """Yields once, and again until then. The numbers are those of the rounds."""
    yield 0
    count = 1
    while until.going():
        yield count
        count += 1


def await_that(condition, what):
    """Waits for `condition()`. AssertionError if it does not come."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE:g} s"
        time.sleep(0.01)


def surely(action, what):
    """`action()`, again and again while it fails for want of a connection: the daemon may turn some of an attacker's away."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except OSError as error:
            assert time.monotonic() < end, f"{what}: not within {PATIENCE:g} s, {error!r}"
            time.sleep(0.001)


def surely_connect(target, source=SOURCE, handshake=True, timeout=10.0):
    return surely(lambda: connect(target, source, timeout, handshake), "a connection")


def surely_open(target, source=SOURCE, settings=frame(SETTINGS, 0, 0)):
    """A connection that does what HTTP/2 asks of it."""
    return surely(lambda: Connection(target, source, PATIENCE, settings), "a connection")


def is_closed(connection):
    """Whether the daemon has closed a connection. Takes what has come meanwhile."""
    connection.setblocking(False)
    try:
        while True:
            if not connection.recv(65536):
                return True
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def await_end(connection, what):
    """Waits until the daemon ends a connection, by closing or resetting it."""
    end = time.monotonic() + PATIENCE
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    while not is_closed(connection):
        left = end - time.monotonic()
        assert left > 0, f"{what}: the daemon keeps the connection"
        poll.poll(left * 1000)


def send_until_ended(connection, pieces):
    """Sends pieces until the daemon ends the connection. Returns (how many were sent, whether it ended)."""
    sent = 0
    connection.settimeout(PATIENCE)
    try:
        for piece in pieces:
            connection.sendall(piece)
            sent += 1
    except TimeoutError:
        return sent, False
    except OSError:
        return sent, True
    return sent, False


def ends_or_answers(connection, what):
    """What a daemon may do after a mistake of its peer: end the connection (False), or go on with it (True)."""
    try:
        connection.ping()
        return True
    except TimeoutError as error:
        raise AssertionError(f"{what}: the daemon neither answers nor ends the connection") from error
    except OSError:
        return False


def others_are_served(target):
    """Other clients than the attacker and those of the judge: a transaction that needs both daemons, and the health of the target."""
    connections = []
    try:
        connections.append(Connection(target.for_client(), "127.0.0.3", PATIENCE))
        connections[0].health()
        tcd = target if target.name == "tcd" else target.other
        connections.append(Connection(tcd.for_client(), "127.0.0.3", PATIENCE))
        table = store.table(connections[1], b"others")
        store.Session(connections[1]).transaction([store.put(table, b"key", b"value"), store.scan(table, b"", 10)])
    except OSError as error:
        raise AssertionError(f"while the attack is at its height, another client: {error!r}") from error
    finally:
        for each in connections:
            each.close()


def close_hard(connections):
    """Closes with a reset: no port stays in TIME_WAIT."""
    for each in connections:
        try:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        each.close()
