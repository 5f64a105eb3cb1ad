"""1,024 status reports for which the connection gives no window: the daemon holds their answers, and serves others meanwhile."""

from cases import streams_never_read

SLICE = True
PATHS = {"tcd": "/deuteronomy.v1.TransactionService/GetStatus", "dcd": "/deuteronomy.v1.DataComponent/Counters"}
CALLS = 1024
LEAST = {"calls": CALLS * streams_never_read.CONNECTIONS}


def attack(target, until):
    return streams_never_read.attack(target, until, (PATHS[target.name],), CALLS)
