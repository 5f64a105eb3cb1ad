#!/usr/bin/env python3
"""Turns Bazel's account of a test run into one line per test case.

Usage: test_results.py PART EVENTS.json RC >> RESULTS
A line is `PASS|FAIL|SKIP <tab> part <tab> target <tab> case`. Every case of a googletest program counts; a
program that is no googletest counts as one. What did not build, crashed or ran out of time is a failure.
"""

import json
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree


def cases_of(xml_path):
    """(verdict, name) of each case in one test.xml."""
    try:
        suites = ElementTree.parse(xml_path).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    found = []
    for case in suites.iter("testcase"):
        name = case.get("name", "")
        if case.get("classname"):
            name = case.get("classname") + "." + name
        if case.find("failure") is not None or case.find("error") is not None:
            verdict = "FAIL"
        elif case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed"):
            verdict = "SKIP"
        else:
            verdict = "PASS"
        found.append((verdict, name))
    return found


def read(events_path):
    """Test targets that were to run, their cases, and whether something failed before any test."""
    wanted, results, broken = set(), {}, []
    with open(events_path, encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            identity = event.get("id", {})
            if "targetConfigured" in identity and event.get("configured", {}).get("testSize"):
                wanted.add(identity["targetConfigured"]["label"])
            elif "testResult" in identity and "testResult" in event:
                label = identity["testResult"]["label"]
                status = event["testResult"].get("status", "NO_STATUS")
                cases = []
                for output in event["testResult"].get("testActionOutput", []):
                    if output.get("name") == "test.xml":
                        path = urllib.parse.urlparse(output["uri"]).path
                        cases = cases_of(urllib.request.url2pathname(path))
                if status != "PASSED" and not any(verdict == "FAIL" for verdict, _ in cases):
                    cases.append(("FAIL", "(%s)" % status.lower().replace("_", " ")))
                elif not cases:
                    cases.append(("PASS", "(all)"))
                results.setdefault(label, []).extend(cases)
            elif "aborted" in event and event["aborted"].get("reason") not in ("SKIPPED", "NO_BUILD"):
                for kind in ("pattern", "targetConfigured", "unconfiguredLabel"):
                    if kind in identity:
                        what = identity[kind].get("label") or " ".join(identity[kind].get("pattern", []))
                        broken.append(what or kind)
    return wanted, results, broken


def main():
    part, events_path, exit_status = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        wanted, results, broken = read(events_path)
    except OSError:
        wanted, results, broken = set(), {}, []
    lines = []
    for label in sorted(results):
        lines += [(verdict, label, name) for verdict, name in results[label]]
    lines += [("FAIL", label, "(not built)") for label in sorted(wanted - set(results))]
    lines += [("FAIL", label, "(not analysed)") for label in sorted(set(broken) - wanted)]
    # 4: there was no test to run.
    if exit_status not in (0, 4) and not any(verdict == "FAIL" for verdict, _, _ in lines):
        lines.append(("FAIL", "bazel", "(exit %d)" % exit_status))
    for verdict, label, name in lines:
        print("\t".join((verdict, part, label, name)))


main()
