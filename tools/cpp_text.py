# SPDX-License-Identifier: Apache-2.0
"""Just enough C++ to measure it: a text without comments and literals, its functions, and their parameters."""
import re
from dataclasses import dataclass

_SKIP = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_NOT_FUNCTION = re.compile(r"\b(namespace|class|struct|union|enum|concept)\b(?![^()]*\()|\bextern *\"")
_INITIALISER = re.compile(r"\)[^()]*[^:]:(?!:)(?:.*[^\w\s])?\s*[\w>]+\s*$", re.S)


@dataclass
class Function:
    name: str
    line: int        # of the line that holds its name
    lines: int       # from there to its closing brace; 0 for a declaration
    parameters: int


def blank(text):
    """The text with comments and the insides of literals replaced by blanks; every line keeps its number."""
    def keep_lines(match):
        return "".join(c if c == "\n" else " " for c in match[0])

    def literal(match):
        return keep_lines(match) if match[0][0] == "/" else '"' + keep_lines(match)[2:] + '"'

    return _SKIP.sub(literal, text)


def parameter_count(inside):
    """Commas outside any bracket, plus one. inside: what stands between a parameter list's parentheses."""
    depth, commas = 0, 0
    for before, c in zip(" " + inside, inside):
        depth += c in "([{<"
        depth -= c in ")]}" or (c == ">" and before != "-")
        commas += c == "," and depth == 0
    return commas + 1 if inside.strip() not in ("", "void") else 0


def _signature(head):
    """(name, parameters) of the first name(...) in a declaration, or None."""
    head = re.sub(r"\b(?:alignas|decltype|noexcept|requires|__attribute__|explicit)\s*\((?:[^()]|\([^()]*\))*\)", " ", head)
    found = re.search(r"([\w:~]+|operator\s*[^\s\w(]+|operator\s*\(\s*\)|\])\s*\(", head)
    if not found:
        return None
    depth = 0
    for at in range(found.end() - 1, len(head)):
        depth += (head[at] == "(") - (head[at] == ")")
        if depth == 0:
            name = "lambda" if found[1] == "]" else found[1]
            return name, parameter_count(head[found.end():at]), found.start()
    return None


def functions(text):
    """Every function defined or declared outside functions; a lambda counts for the function that holds it."""
    code = _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), blank(text))
    at = start = 0          # start: where the declaration now being read begins
    while at < len(code):
        c = code[at]
        head = code[start:at]
        if c == "{" and _INITIALISER.search(head):
            at = _closing(code, at)
        elif c == "{" and "(" in head and not _NOT_FUNCTION.search(re.sub(r"template\s*<[^{}]*?>(?=\s*\w)", "", head)):
            end = _closing(code, at)
            yield from _function(code, start, head, end)
            at, start = end, end + 1
        elif c == "{" and re.search(r"[\w>=]\s*$", head) and not _NOT_FUNCTION.search(head):
            at = _closing(code, at)      # a variable's braces
        elif c in "{};":
            if c == ";" and "=" not in head.split("(")[0]:
                yield from _function(code, start, head, None)
            start = at + 1
        at += 1


def _function(code, start, head, end):
    signature = _signature(head)
    if not signature:
        return
    name, parameters, offset = signature
    line = code.count("\n", 0, start + offset) + 1
    yield Function(name, line, code.count("\n", 0, end) + 2 - line if end is not None else 0, parameters)


def _closing(code, opening):
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == "{") - (code[at] == "}")
        if depth == 0:
            return at
    return len(code) - 1
