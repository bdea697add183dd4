#!/usr/bin/env python3
"""Character classes and case mappings of Python's str, as tables for src/tokenizer/jinja_text.cc.

  make_jinja_unicode.py > src/tokenizer/jinja_unicode.inc
"""
import sys

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def spans(test):
    out = []
    for c in range(0x110000):
        if not test(chr(c)):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def case_spans(mapping):
    """Runs of one distance: neighbours, or every second character (upper and lower alternating)."""
    out = []
    for c in ALL:
        to = mapping(chr(c))
        if len(to) != 1 or ord(to) == c:
            continue
        delta = ord(to) - c
        for run in reversed(out[-2:]):
            step = c - run[1]
            if run[3] == delta and step in (1, 2) and (run[0] == run[1] or step == run[2]):
                run[1], run[2] = c, step
                break
        else:
            out.append([c, c, 1, delta])
    return sorted(out)


def table(kind, name, rows):
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(str(x) for x in row) + "},"
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by tools/make_jinja_unicode.py with Python {sys.version.split()[0]}.")
table("Span", "kSpace", spans(str.isspace))
table("Span", "kNotPrintable", spans(lambda c: not c.isprintable()))
table("Span", "kUpper", spans(str.isupper))
table("Span", "kLower", spans(str.islower))
table("Span", "kAlpha", spans(str.isalpha))
table("CaseSpan", "kToUpper", case_spans(str.upper))
table("CaseSpan", "kToLower", case_spans(str.lower))
