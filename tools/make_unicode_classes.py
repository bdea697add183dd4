#!/usr/bin/env python3
"""Write src/tokenizer/unicode_classes.inc: the class of every code point, as pre-tokenizers see them.

    make_unicode_classes.py > src/tokenizer/unicode_classes.inc

Two levels: 128 code points share a page, equal pages are kept once. Needs nothing but Python 3.13 (Unicode 15.1).
"""
import sys
import unicodedata

OTHER, UPPER, LOWER, LETTER, MARK, NUMBER, SPACE, PUNCTUATION = range(8)
CLASSES = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": LETTER, "Lo": LETTER}
MAJOR = {"M": MARK, "N": NUMBER, "P": PUNCTUATION}
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
PAGE = 128


def kind(code):
    if code in WHITE_SPACE:
        return SPACE
    category = unicodedata.category(chr(code))
    return CLASSES.get(category, MAJOR.get(category[0], OTHER))


def rows(name, ctype, values):
    print(f"constexpr {ctype} {name}[] = {{")
    for i in range(0, len(values), 40):
        print("    " + ",".join(map(str, values[i:i + 40])) + ",")
    print("};")


def main():
    pages, index = {}, []
    for first in range(0, 0x110000, PAGE):
        page = tuple(kind(code) for code in range(first, first + PAGE))
        index.append(pages.setdefault(page, len(pages)))
    while index[-1] == index[-2]:  # what lies beyond the end has the class of the last page
        index.pop()
    assert len(pages) <= 256 and set(list(pages)[index[-1]]) == {OTHER}, "the tables no longer fit"
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by tools/make_unicode_classes.py from Unicode {unicodedata.unidata_version}; not to be edited.")
    rows("kPageOf", "uint8_t", index)
    rows("kPages", "uint8_t", [k for page in pages for k in page])
    print(len(pages), "pages,", len(index), "index entries", file=sys.stderr)


if __name__ == "__main__":
    main()
