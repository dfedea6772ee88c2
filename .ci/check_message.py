#!/usr/bin/env python3
"""Checks messages of commits: hook `commit-msg` of pre-commit, or `check_message.py main..HEAD`.

A subject of at most 72 characters that begins with an imperative and has no full stop; a blank
line; a body that says why. Merges, reverts and fixups are let through.
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 72
LET_THROUGH = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")
NO_IMPERATIVE = re.compile(r"\w+(ed|ing)$")
"""Endings of words that are no imperatives, but for `IMPERATIVES`."""

IMPERATIVES = {"bring", "embed", "exceed", "feed", "need", "proceed", "seed", "speed", "succeed"}


def faults(message: str) -> list[str]:
    """What is wrong with a message; comments and what git cuts off do not count."""
    text = message.split("\n# ------------------------ >8 ------------------------")[0]
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        del lines[0]
    if not lines:
        return ["it is empty"]
    subject, rest = lines[0], lines[1:]
    if subject.startswith(LET_THROUGH):
        return []
    found = []
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters, at most {LONGEST} are allowed")
    first = subject.split()[0]
    if not first[0].isupper() or first.endswith(":"):
        found.append(f"the subject begins with {first!r}, not with a verb such as 'Add'")
    elif NO_IMPERATIVE.match(first.lower()) and first.lower() not in IMPERATIVES:
        found.append(f"the subject begins with {first!r}, not with an imperative such as 'Add'")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    if rest and rest[0]:
        found.append("no blank line after the subject")
    if not any(rest):
        found.append("no body: say why, in a line or more")
    return found


def main(words: list[str]) -> int:
    """Check a file with a message, or all commits of a range; returns the exit code."""
    if len(words) != 1:
        print("usage: check_message FILE | check_message FIRST..LAST", file=sys.stderr)
        return 2
    if ".." in words[0]:
        log = ["git", "log", "--no-merges", "--format=%h%x00%B%x01", words[0]]
        done = subprocess.run(log, capture_output=True, text=True, check=True).stdout
        messages = dict(entry.strip().split("\0") for entry in done.split("\x01") if entry.strip())
    else:
        messages = {"message": Path(words[0]).read_text(encoding="utf-8")}
    wrong = [f"{name}: {fault}" for name, message in messages.items() for fault in faults(message)]
    print("\n".join(wrong), end="\n" * bool(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
