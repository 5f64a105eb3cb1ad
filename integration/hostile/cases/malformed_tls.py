"""What is no TLS, at a port with it or without: broken records, mutated client hellos, HTTP, garbage behind a handshake, and strangers."""

import os
import random
import ssl

from cases import PATIENCE, await_end, close_hard, rounds, surely, surely_connect
from http2 import PREFACE

SLICE = True
MUTATIONS = 100
RECORDS = [
    b"\x16\x03\x01\xff\xff" + bytes(2000),  # longer than any record may be
    b"\x16\x03\x01\x00\x00" * 50,  # empty
    b"\x15\x03\x03\x00\x02\x02\x28",  # an alert as the first word
    b"\x17\x03\x03\x00\x20" + bytes(32),  # data before the handshake
    b"\x14\x03\x03\x00\x01\x01" * 100,
    b"\x18\x03\x02\x00\x03\x01\x40\x00",  # CVE-2014-0160
    b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + bytes(40),  # SSL 2
    b"\x16\x05\x09\x00\x10" + bytes(16),  # a version that nobody knows
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\0" * 4096,
    b"\xff" * 4096,
]
LEAST = {"records": len(RECORDS), "hellos": MUTATIONS, "after a handshake": 3, "strangers": 1}


def client_hello():
    """A genuine one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def mutated(chance, data):
    data = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        kind, at = chance.randrange(3), chance.randrange(len(data))
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at] = chance.randrange(256)
        else:
            del data[at:at + chance.randint(1, 4)]
    return bytes(data)


def send(target, data):
    """Sends it, and half-closes: a handshake that could still go on is over, too."""
    one = surely_connect(target, handshake=False)
    try:
        one.sendall(data)
        one.shutdown(1)
    except OSError:
        pass  # the daemon was faster
    await_end(one, f"bytes that begin with {data[:16].hex()}")
    close_hard([one])


def after_a_handshake(target, data):
    """Bytes that are no record of the connection they come on."""
    one = surely_connect(target)
    os.write(one.fileno(), data)
    await_end(one, "garbage behind a handshake")
    close_hard([one])


def is_stranger_refused(target):
    """A client without a certificate. TLS 1.3 lets it finish its handshake; it never gets an answer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    raw = surely_connect(target, handshake=False, timeout=PATIENCE)
    try:
        one = context.wrap_socket(raw)
        one.sendall(PREFACE)
        return not one.recv(1)
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        raw.close()


def attack(target, until):
    hello = client_hello()
    counts = dict.fromkeys(LEAST, 0)
    for number in rounds(until):
        chance = random.Random(number)
        for record in RECORDS:
            send(target, record)
            counts["records"] += 1
        for _ in range(MUTATIONS):
            send(target, mutated(chance, hello))
            counts["hellos"] += 1
        for data in (b"\x17\x03\x03\x00\x20" + bytes(32), b"\x17\x03\x03\xff\xff" + bytes(100), bytes(100)):
            after_a_handshake(target, data)
            counts["after a handshake"] += 1
        assert surely(lambda: is_stranger_refused(target), "a stranger"), "a client without a certificate is served"
        counts["strangers"] += 1
    return counts
