#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a room includes a room it may not:  check_layers.py REPOSITORY

The table is src/CMakeLists.txt: juno_room(NAME USES ...) and juno_program(NAME USES ...). ARCHITECTURE.md shows the same
table to readers and is held to it.
"""
import pathlib
import re
import sys

SOURCES = {".h", ".cc", ".cu", ".inc"}


def read_rooms(cmake_text):
    """{room: rooms it may include}, from the juno_room and juno_program lines."""
    rooms = {}
    for name, rest in re.findall(r"juno_(?:room|program)\(([^\s)]+)([^)]*)\)", cmake_text):
        uses = re.search(r"\bUSES\b(.*?)(?:\bLINKS\b|$)", rest, re.S)
        rooms[name] = uses[1].split() if uses else []
    return rooms


def room_of(path, rooms):
    """The innermost room that holds the path, or None."""
    return next((r for r in sorted(rooms, key=len, reverse=True) if path.startswith(r + "/")), None)


def cycles(rooms):
    done = set()

    def visit(room, path):
        if room in path:
            return [f"rooms in a circle: {' -> '.join((*path[path.index(room):], room))}"]
        if room in done:
            return []
        found = [c for used in rooms.get(room, []) for c in visit(used, (*path, room))]
        done.add(room)
        return found

    return [c for room in rooms for c in visit(room, ())]


def check_table(rooms):
    for room, uses in rooms.items():
        for used in uses:
            if used not in rooms:
                yield f"src/CMakeLists.txt: {room} uses {used}, which is no room"
        if room != "api" and "model" in uses and any(u.split("/")[0] == "backend" for u in uses):
            yield f"src/CMakeLists.txt: {room} uses model and a backend; only api may see both"
    yield from cycles(rooms)


def check_includes(source, rooms):
    for path in sorted(p for p in source.rglob("*") if p.suffix in SOURCES):
        name = path.relative_to(source).as_posix()
        here = room_of(name, rooms)
        if not here:
            yield f"src/{name}: lies in no room of src/CMakeLists.txt"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not include:
                continue
            there = room_of(include[1], rooms)
            if not there:
                yield f'src/{name}:{number}: "{include[1]}" is not a path from src/ into a room'
            elif there != here and there not in rooms[here]:
                yield f"src/{name}:{number}: {here} may not include {there}"


def check_document(text, rooms):
    """The rows | storey | room | holds | may include | of ARCHITECTURE.md say what the build says."""
    rows = {r: m.split() for r, m in re.findall(r"^\| *\d+ *\| *(\S+) *\|[^|]*\| *([^|]*?) *\| *$", text, re.M)}
    for room in sorted(rooms.keys() | rows.keys()):
        told = [] if rows.get(room) == ["–"] else rows.get(room)
        if told is None or room not in rooms:
            yield f"ARCHITECTURE.md: the row of {room} is missing {'there' if told is None else 'in src/CMakeLists.txt'}"
        elif sorted(told) != sorted(rooms[room]):
            yield f"ARCHITECTURE.md: {room} may include '{' '.join(told)}', src/CMakeLists.txt says '{' '.join(rooms[room])}'"


def check(root):
    rooms = read_rooms((root / "src/CMakeLists.txt").read_text())
    if not rooms:
        yield "src/CMakeLists.txt: no juno_room line"
    yield from check_table(rooms)
    yield from check_includes(root / "src", rooms)
    document = root / "ARCHITECTURE.md"
    yield from check_document(document.read_text() if document.exists() else "", rooms)


if __name__ == "__main__":
    faults = list(check(pathlib.Path(sys.argv[1])))
    print("\n".join(faults) or "the rooms keep their doors")
    sys.exit(bool(faults))
