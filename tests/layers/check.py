#!/usr/bin/env python3
"""Checks the #include lines: a layer includes only what stands below it, transports never each other, and public headers
nothing but the standard library and each other."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# layer -> what it may include besides itself
below = {
    "base": [],
    "bootstrap": ["base"],
    "transports": ["base"],
    "progress": ["base"],
    "model": ["base"],
    "sched": ["base"],
    "trace": ["base", "sched"],
    "rails": ["base", "transports", "sched", "model", "progress", "trace"],
    "messaging": ["base", "bootstrap", "transports", "progress", "sched", "model", "trace", "rails"],
    "tools": ["base", "bootstrap", "model", "trace"],
}
include = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
wrong = []


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := include.match(line):
            yield number, match.group(1), match.group(2)


for path in sorted((root / "src").rglob("*.[hc]pp")):
    parts = path.relative_to(root / "src").parts
    layer = parts[0]
    for number, kind, target in includes(path):
        if kind != '"':
            continue
        other = target.split("/")
        where = f"{path.relative_to(root)}:{number}"
        if len(other) < 2 and layer != "tools":
            wrong.append(f"{where}: {target}: name the layer")
        elif len(other) >= 2 and other[0] != layer and other[0] not in below[layer]:
            wrong.append(f"{where}: {layer} must not include {target}")
        elif layer == "transports" and len(parts) > 2 and len(other) > 2 and other[0] == "transports" and other[1] != parts[1]:
            wrong.append(f"{where}: transport {parts[1]} must not include {target}")
        elif layer not in ("transports",) and len(other) > 2 and other[0] == "transports":
            wrong.append(f"{where}: {layer} must not know the transport {other[1]}")

for path in sorted((root / "include").rglob("*.hpp")):
    for number, kind, target in includes(path):
        standard = "/" not in target and "." not in target
        if not standard and not target.startswith("railmux/"):
            wrong.append(f"{path.relative_to(root)}:{number}: public headers must not include {target}")

print("\n".join(wrong) if wrong else "every include points downwards")
sys.exit(1 if wrong else 0)
