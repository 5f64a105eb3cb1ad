"""Header fields of HTTP/2 (HPACK, RFC 7541): what hostile peers send, and what a well-behaved client reads. No Huffman code: gRPC sends none."""

STATIC = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"), (":scheme", "http"),
    (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""), ("accept-encoding", "gzip, deflate"),
] + [(name, "") for name in (
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control content-disposition "
    "content-encoding content-language content-length content-location content-range content-type cookie date etag expect expires from "
    "host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards "
    "proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security "
    "transfer-encoding user-agent vary via www-authenticate").split()]


def number(first, bits, value):
    """An integer (5.1) behind the bits of `first`."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out = bytearray([first | most])
    value -= most
    while value >= 128:
        out.append(128 | (value & 127))
        value >>= 7
    out.append(value)
    return bytes(out)


def literal(name, value):
    name, value = name.encode(), value.encode()
    return b"\0" + number(0, 7, len(name)) + name + number(0, 7, len(value)) + value


def call_headers(path):
    return (b"\x83\x86" + literal(":path", path) + literal(":authority", "x") + literal("te", "trailers") +
            literal("content-type", "application/grpc"))


class Decoder:
    """Reads the header blocks of one connection, all of them and in order."""

    def __init__(self):
        self.added = []  # the newest first

    def fields(self, block):
        """Name -> value; of a name that comes twice the last value."""
        found, at = {}, 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = self._number(block, at, 7)
                name, value = self._entry(index)
            elif first & 0xe0 == 0x20:
                _, at = self._number(block, at, 5)
                continue
            else:
                kept = first & 0x40
                index, at = self._number(block, at, 6 if kept else 4)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = self._string(block, at)
                value, at = self._string(block, at)
                if kept:
                    self.added.insert(0, (name, value))
            found[name] = value
        return found

    def _entry(self, index):
        return STATIC[index - 1] if index <= len(STATIC) else self.added[index - 1 - len(STATIC)]

    @staticmethod
    def _number(block, at, bits):
        most = (1 << bits) - 1
        value, at, shift = block[at] & most, at + 1, 0
        if value < most:
            return value, at
        while True:
            value, shift, at = value + ((block[at] & 127) << shift), shift + 7, at + 1
            if not block[at - 1] & 128:
                return value, at

    def _string(self, block, at):
        if block[at] & 0x80:
            raise ValueError("a Huffman code in a header field of the server")
        size, at = self._number(block, at, 7)
        return block[at:at + size].decode(errors="replace"), at + size
