"""Messages of Protocol Buffers, as far as the daemons' calls need them: numbers, bytes and messages."""


def number(value):
    out = bytearray()
    while value > 127:
        out.append(128 | (value & 127))
        value >>= 7
    out.append(value)
    return bytes(out)


def field(key, value):
    """One field: a number, or bytes (a message, a string)."""
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def message(fields):
    """`fields` is a list of (key, number or bytes)."""
    return b"".join(field(key, value) for key, value in fields)


def _number_at(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if not data[at - 1] & 128:
            return value, at


def parse(data):
    """Key -> the values of a message's field, in order."""
    found, at = {}, 0
    while at < len(data):
        tag, at = _number_at(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number_at(data, at)
        else:
            if kind == 2:
                size, at = _number_at(data, at)
            else:
                size = {1: 8, 5: 4}[kind]
            value, at = data[at:at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found
