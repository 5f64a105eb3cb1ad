"""Reads llvm-cov's export; prints how many lines of one file there are, and how many of them were reached.

Usage: covered_lines.py FILE[:NAME,NAME...]   with names: of the functions alone whose name begins with one of them.
"""

import json
import re
import sys


def short_name(mangled):
    """The function's own name, without namespaces and parameters: of _ZN4deut8FromWireE... it is FromWire."""
    mangled = mangled.split(":")[-1]
    names, at = [], re.match(r"_Z(N[KVRO]*)?", mangled)
    at = at.end() if at else 0
    while True:
        length = re.match(r"(?:St|12_GLOBAL__N_1)?(\d+)", mangled[at:])
        if not length:
            break
        begin = at + length.end()
        at = begin + int(length.group(1))
        names.append(mangled[begin:at])
    return names[-1] if names else mangled


def main():
    path, _, names = sys.argv[1].partition(":")
    names = tuple(name for name in names.split(",") if name)
    reached = {}
    for function in json.load(sys.stdin)["data"][0]["functions"]:
        if path not in function["filenames"]:
            continue
        if names and not short_name(function["name"]).startswith(names):
            continue
        file = function["filenames"].index(path)
        lines = {}
        # Regions come from the outside in; a line is reached if the innermost that holds its beginning, or any that begins on it, is.
        for first, _, last, _, count, region_file, _, kind in function["regions"]:
            if kind != 0 or region_file != file:
                continue
            for line in range(first, last + 1):
                lines[line] = max(lines[line], count) if line == first and line in lines else count
        for line, count in lines.items():
            reached[line] = max(reached.get(line, 0), count)
    print(len(reached), sum(1 for count in reached.values() if count))


main()
