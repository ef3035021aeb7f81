#!/usr/bin/env python3
"""Reads a report of ctest (JUnit) and prints a line for each of its tests: passed, failed or skipped, its name, and in one
line why it failed or was skipped."""
import re
import sys
import xml.etree.ElementTree as xml

telling = re.compile(r"FAILED|ERROR: |WARNING: ThreadSanitizer|runtime error|terminate called|^SKIPPED|^skipped")


def outcome(test):
    """What a test came to, and what ctest says about it."""
    if (failure := test.find("failure")) is not None:
        return "failed", failure.get("message", "")
    if (skipped := test.find("skipped")) is not None:
        # Only a test itself says that it cannot run. Others that did not run lack their program or a test before them.
        message = skipped.get("message", "")
        return ("skipped", "") if message.startswith("SKIP_") else ("failed", message)
    return ("passed" if test.get("status") == "run" else "failed"), test.get("status", "")


def why(test, message):
    lines = [line.strip() for line in (test.findtext("system-out") or "").splitlines() if line.strip()]
    chosen = next((line for line in lines if telling.search(line)), lines[-1] if lines else "")
    return " ".join(f"{message} {chosen}".split())[:200] or f"said nothing, after {test.get('time')} s"


for test in xml.parse(sys.argv[1]).getroot().iter("testcase"):
    result, message = outcome(test)
    print(result, test.get("name"), "" if result == "passed" else why(test, message))
