#!/usr/bin/env python3
"""Checks what the documentation refers to: files and headings that links name, and pages that sources name in comments."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
link = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
page = re.compile(r"\bdocs/[a-z-]+\.md\b")
wrong = []


def anchor(heading):
    """As code forges make it of a heading."""
    words = re.sub(r"[`*]", "", heading.lstrip("#").strip().lower())
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {anchor(line) for line in text.splitlines() if line.startswith("#")}


pages = sorted([*root.glob("*.md"), *(root / "docs").glob("*.md")])
for path in pages:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for target, heading in link.findall(line):
            where = f"{path.relative_to(root)}:{number}"
            if "://" in target:
                continue
            to = (path.parent / target).resolve() if target else path
            if not to.exists():
                wrong.append(f"{where}: there is no {target}")
            elif heading and to.suffix == ".md" and heading not in anchors(to):
                wrong.append(f"{where}: {target or 'this page'} has no heading #{heading}")

files = subprocess.run(["git", "-C", root, "ls-files", "-z", "--", "include", "src", "tests", "benchmarks", "examples",
                        "scripts", "*.md"], capture_output=True, text=True).stdout
for name in filter(None, files.split("\0")):
    path = root / name
    if not path.is_file() or "corpus" in path.parts:
        continue
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        wrong += [f"{name}:{number}: there is no {named}" for named in page.findall(line) if not (root / named).exists()]

print("\n".join(wrong) if wrong else f"{len(pages)} pages refer to what there is")
sys.exit(1 if wrong else 0)
