"""Many clients that connect at the same time, each with a health check as its first call. One whose connection is closed connects again."""

import select
import ssl
import time

from client import HEALTH
from hpack import call_headers
from http2 import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, connect, frame, grpc_message

ASK = (PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0) + frame(HEADERS, END_HEADERS, 1, call_headers(HEALTH)) +
       frame(DATA, END_STREAM, 1, grpc_message()))
# How the head of the answer's last frame goes on behind its length: trailers of the call.
LAST = frame(HEADERS, END_STREAM | END_HEADERS, 1)[3:]


class Client:
    """One step at a time, none of which waits."""

    def __init__(self, target, source, patience):
        raw = connect(target, source, patience, handshake=False)
        raw.setblocking(False)
        self.socket = target.tls.wrap_socket(raw, do_handshake_on_connect=False) if target.tls else raw
        self.shaken, self.asked, self.read = not target.tls, False, b""

    def step(self):
        """Goes on. Returns the event of poll that it waits for, 0 once it has its answer. OSError if the daemon has closed the connection."""
        try:
            if not self.shaken:
                self.socket.do_handshake()
                self.shaken = True
            if not self.asked:
                self.socket.sendall(ASK)
                self.asked = True
            while LAST not in self.read:
                got = self.socket.recv(4096)
                if not got:
                    raise ConnectionError("the daemon has closed the connection of a client in good order")
                self.read += got
            return 0
        except (BlockingIOError, ssl.SSLWantReadError):
            return select.POLLIN
        except ssl.SSLWantWriteError:
            return select.POLLOUT


def connect_all(target, source, number, patience):
    """(their sockets, each of which has had an answer; how often one had to connect again). TimeoutError if some are not served in time."""
    poll, waiting, served, again = select.poll(), {}, [], 0
    end = time.monotonic() + patience

    def go_on(client):
        nonlocal again
        try:
            client = client or Client(target, source, patience)
            events = client.step()
        except OSError:
            if client:
                client.socket.close()
            again += 1
            return False
        if events:
            poll.register(client.socket, events)
            waiting[client.socket.fileno()] = client
        else:
            served.append(client.socket)
        return True

    missing = number
    while len(served) < number:
        if time.monotonic() > end:
            raise TimeoutError(f"{number - len(served)} of {number} clients that have connected at once are not served within {patience:g} s")
        missing -= sum(go_on(None) for _ in range(missing))
        for descriptor, _ in poll.poll(100):
            poll.unregister(descriptor)
            missing += not go_on(waiting.pop(descriptor))
    return served, again
