#!/usr/bin/env python3
"""Checks what is referred to of the documentation: files and headings that links name, and those that comments name."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
link = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
page = re.compile(r'\b(docs/[a-z-]+\.md)\b(?:, "([^"]+)")?')
next_line = re.compile(r"\s*\n\s*(?://|#|\*)?\s*")  # of a comment, or of a text
wrong = []


def anchor(heading):
    """As code forges make it of a heading."""
    words = re.sub(r"[`*]", "", heading.lstrip("#").strip().lower())
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {anchor(line) for line in text.splitlines() if line.startswith("#")}


def titles(path):
    """Headings, and what stands in bold in front of a paragraph."""
    return anchors(path) | {anchor(bold) for bold in re.findall(r"\*\*(.+?)\*\*", path.read_text(), re.DOTALL)}


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

# An archive of the sources has no git, and no need of this.
files = []
if (root / ".git").exists():
    folders = ["include", "src", "tests", "benchmarks", "examples", "scripts", "*.md"]
    command = ["git", "-C", root, "ls-files", "-z", "--", *folders]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
for name in filter(None, files):
    path = root / name
    if not path.is_file() or "corpus" in path.parts:
        continue
    for named, heading in page.findall(next_line.sub(" ", path.read_text(errors="replace"))):
        if not (root / named).exists():
            wrong.append(f"{name}: there is no {named}")
        elif heading and anchor(heading) not in titles(root / named):
            wrong.append(f'{name}: {named} has no heading "{heading}"')

print("\n".join(wrong) if wrong else f"{len(pages)} pages refer to what there is")
sys.exit(1 if wrong else 0)
