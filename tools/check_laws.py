#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the code to the laws of CONTRIBUTING.md:  check_laws.py LAW REPOSITORY [BUILD_DIR]

LAW is a name in LAWS below. Prints each fault as FILE:LINE: sentence; exit 1 when there is one.
"""
import json
import pathlib
import re
import subprocess
import sys

from cpp_text import blank, functions

MAX_FILE, MAX_FUNCTION, HARD_FUNCTION, MAX_PARAMETERS = 600, 60, 100, 6
CODE = {".h", ".cc", ".cu"}
PROGRAMS = {"cli", "server"}  # rooms that talk to a person


def files(root, *folders):
    """(name from the repository's root, text) of the C++ files in the folders."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CODE:
                yield path.relative_to(root).as_posix(), path.read_text()


def everything(root):
    return files(root, "src", "tests", "fuzz", "bench", "bindings")


def matches(name, text, pattern, sentence):
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(pattern, line)
        if found:
            yield f"{name}:{number}: {sentence.format(found[0].strip())}"


def file_size(root):
    for name, text in everything(root):
        lines = text.count("\n")
        if lines > MAX_FILE:
            yield f"{name}:1: {lines} lines, the limit is {MAX_FILE}"


def function_size(root):
    """tools/long_functions lists functions of 61 to 100 lines that are better whole, one 'FILE NAME' a line."""
    listed = root / "tools/long_functions"
    allowed = set(listed.read_text().splitlines()) if listed.exists() else set()
    for name, text in everything(root):
        for f in functions(text):
            limit = HARD_FUNCTION if f"{name} {f.name}" in allowed else MAX_FUNCTION
            if f.lines > limit:
                yield f"{name}:{f.line}: {f.name} has {f.lines} lines, the limit is {limit}"


def parameters(root):
    for name, text in files(root, "src"):
        for f in functions(text):
            if f.parameters > MAX_PARAMETERS:
                yield f"{name}:{f.line}: {f.name} takes {f.parameters} parameters, the limit is {MAX_PARAMETERS}; pass a struct"


def instruction_sets(root):
    """Words of an instruction set or a GPU vendor stand only where the vocabularies are."""
    home = re.compile(r"src/backend/(cpu/vec/|gpu/[^/]+/(gpu|tiles)\.h$)")
    words = r"^\s*#.*(__(AVX|SSE|FMA|F16C|ARM|aarch64|x86_64|i386|riscv|CUDA|NVCC|HIP)|_M_X64|(imm|x86|arm_neon|arm_sve|xmm)\w*\.h\b|<cuda|<hip)"
    for name, text in files(root, "src"):
        if not home.match(name):
            yield from matches(name, text, words, "'{0}' belongs in backend/cpu/vec/ or backend/gpu/<vendor>/gpu.h")


def spdx(root):
    for name, text in everything(root):
        if not text.startswith("// SPDX-License-Identifier: Apache-2.0\n"):
            yield f"{name}:1: must begin with the SPDX line"
        elif name.endswith(".h") and not text.split("\n")[1].startswith("// "):
            yield f"{name}:2: a header says here what it is for"


def unfinished(root):
    for name, text in everything(root):
        yield from matches(name, text, r"\b(TO" r"DO|FIX" r"ME|XXX)\b|#\s*if 0|\bDISABLED_", "'{0}': finish it or leave it out")


def switches(root):
    """What can grow is a list with one line an entry, never a switch."""
    for name, text in files(root, "src"):
        code = blank(text)
        yield from matches(name, code, r"switch *\(.*(format|arch|backend|vendor|dtype).*\)", "'{0}': use the list")
        yield from matches(name, code, r"\bcase\b.*\bk(I?Q\d|BF16|F16|F32|Mxfp|Llama|Qwen|Gemma|Cuda|Rocm)\w*", "'{0}': use the list")


def regex(root):
    for name, text in files(root, "src"):
        yield from matches(name, blank(text), r"std::w?regex\b|<regex>", "'{0}' recurses on its input; scan by hand or use PCRE2")


def quiet(root):
    """A library room returns errors: it never prints and never ends the process."""
    words = r"(?<![\w.>])(std::)?(abort|exit|_Exit|_exit|quick_exit|terminate|printf|fprintf|puts|fputs|putchar|perror)\s*\(|std::(cout|cerr|clog)\b|\bfmt::print"
    for name, text in files(root, "src"):
        if name.split("/")[1] not in PROGRAMS:
            yield from matches(name, blank(text), words, "'{0}' in a library room")


def weak_symbols(root, build):
    """An object built with instruction-set flags must not offer the linker a copy of a shared inline function."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        # Exceptions' personality pointer is data, the same in every object.
        if not re.search(r" -m(avx|fma|f16c|sse4|arch=|cpu=|amx)", entry["command"]):
            continue
        output = re.search(r" -o (\S+)", entry["command"])[1]  # CMake 3.25 has no "output" beside it
        listing = subprocess.run(["nm", "-C", "--defined-only", output], cwd=entry["directory"],
                                 capture_output=True, text=True, check=True).stdout
        for symbol in re.findall(r"^\S+ [WVu] (?!DW\.ref\.__gxx_personality)(.+)$", listing, re.M):
            yield f"{pathlib.Path(entry['file']).relative_to(root)}:1: leaks the weak symbol {symbol}"


LAWS = {law.__name__: law for law in (file_size, function_size, parameters, instruction_sets, spdx, unfinished, switches,
                                      regex, quiet, weak_symbols)}

if __name__ == "__main__":
    faults = list(LAWS[sys.argv[1]](*map(pathlib.Path, sys.argv[2:])))
    print("\n".join(faults) or "kept")
    sys.exit(bool(faults))
