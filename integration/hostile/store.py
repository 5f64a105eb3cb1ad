"""A client of a transaction component (protocol/wire/transaction_service.proto): tables, sessions, one-shot transactions."""

from client import CallError
from protobuf import field, message, parse

SERVICE = "/deuteronomy.v1.TransactionService/"
DATA_SERVICE = "/deuteronomy.v1.DataComponent/"
VERSION = 2  # kProtocolVersion of protocol/data_component.h
GET, PUT, SCAN = 1, 2, 6
OPEN, BEGIN, EXECUTE, COMMIT, ONE_SHOT = 2, 3, 4, 5, 7  # fields of SessionRequest
NOT_FOUND = 2


def first(found, key, default=0):
    return found.get(key, [default])[0]


def code_of(found, key=1):
    """The code of the message Status in that field."""
    return first(parse(first(found, key, b"")), 1)


def check(found, what, key=1):
    """CallError if the message Status in that field is not OK."""
    if code_of(found, key):
        status = parse(first(found, key))
        raise CallError(f"{what}: error {first(status, 1)}, {first(status, 2, b'').decode(errors='replace')}")


def get(table, key):
    return message([(1, GET), (2, table), (3, key)])


def put(table, key, value):
    return message([(1, PUT), (2, table), (3, key), (4, value)])


def scan(table, low, records):
    return message([(1, SCAN), (2, table), (5, low), (8, records), (9, 1 << 16)])


def execute(operations):
    return message([(1, operation) for operation in operations])


def requests(*each):
    """SessionRequests of (field of SessionRequest, message)."""
    return b"".join(field(1, field(kind, body)) for kind, body in each)


OPEN_SESSION = requests((OPEN, field(1, VERSION)))


def table(connection, name):
    """The id of a table, which is made if it is not there."""
    request = message([(1, VERSION), (2, name)])
    answer = parse(connection.call(SERVICE + "OpenTable", request))
    if code_of(answer) == NOT_FOUND:
        answer = parse(connection.call(SERVICE + "CreateTable", request))
    check(answer, "opening a table")
    return first(answer, 2)


def answers(data):
    """The parsed answers of a message SessionAnswers. CallError if a request or one of its operations has failed."""
    found = [parse(answer) for answer in parse(data).get(1, [])]
    for answer in found:
        check(answer, "a request of a session")
        for result in answer.get(4, []):
            check(parse(result), "an operation")
    return found


def ended(found):
    """How many requests these answers complete: one request may have several answers."""
    return sum(not first(answer, 5) for answer in found)


def records_of(found):
    return [first(parse(result), 2, b"") for answer in found for result in answer.get(4, [])]


class Session:
    """One interactive session: a stream."""

    def __init__(self, connection):
        self.connection = connection
        self.stream = connection.open(SERVICE + "Session")
        self.ask((OPEN, field(1, VERSION)))

    def ask(self, *each):
        """Sends requests in one message. Returns the parsed answers."""
        self.connection.send(self.stream, requests(*each))
        found = []
        while ended(found) < len(each):
            found += answers(self.connection.receive(self.stream))
        return found

    def transaction(self, operations):
        """Interactive: each step is a round trip. Returns the records of the operations."""
        self.ask((BEGIN, b""))
        found = self.ask((EXECUTE, execute(operations)))
        self.ask((COMMIT, b""))
        return records_of(found)

    def one_shot(self, operations):
        return records_of(self.ask((ONE_SHOT, message([(1, b"")] + [(2, operation) for operation in operations]))))
