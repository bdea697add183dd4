#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/quant/golden/*.txt: what gguf-py (PyPI `gguf`) makes of rows of blocks.

A file FORMAT.txt holds pairs of lines, `row` (the bytes in hex) and `f32` (the bits of its dequantised values);
a file quantise_FORMAT.txt the same with `f32` first and the quantised `row` second. Scales are finite: a NaN
has no defined bits. Needs: pip install gguf numpy. Usage: make_quant_goldens.py [DIRECTORY]
"""
import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize

# The byte offsets of a block's f16 scales. A scale of another kind has none, and may want blocks of its own in blocks().
SCALES = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "TQ2_0": [64],
}
# Formats that Juno can make.
QUANTISED = ["F32", "F16", "BF16", "Q8_0", "Q4_0"]
# Zeros, least and greatest denormal, least normal, one, largest, and their negatives.
HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0xfbff]
FLOATS = [0.0, -0.0, 1.0, -1.0, 65504.0, 65519.9, 65520.0, -65536.0, 6e-8, 2.98e-8, 2.9802322e-8, 6.1e-5, 1e-40, -1e-45,
          3.4e38, 1.0009765625, 1.00048828125, 1.00146484375, 1.00390625, 1.001953125, 1.005859375, np.inf, -np.inf]


def finite_half(rng):
    while True:
        h = int(rng.integers(0, 1 << 16))
        if h & 0x7C00 != 0x7C00:
            return h


def blocks(name, rng):
    size = GGML_QUANT_SIZES[Type[name]][1]
    bodies = [bytes([b]) * size for b in (0x00, 0xFF, 0x55, 0xAA, 0x80, 0x7F)]
    bodies += [rng.bytes(size) for _ in range(16)]
    for i, body in enumerate(bodies):
        block = bytearray(body)
        for j, at in enumerate(SCALES[name]):
            half = HALVES[(i + 3 * j) % len(HALVES)] if i < 14 else finite_half(rng)
            block[at:at + 2] = half.to_bytes(2, "little")
        yield bytes(block)
    if name == "MXFP4":
        for e in (0, 1, 2, 3, 126, 127, 128, 129, 253, 254, 255):
            yield bytes([e]) + bytes(range(0x0F, 0x100, 0x10)) if e % 2 else bytes([e]) + rng.bytes(16)


def float_rows(name, rng):
    values = np.array(FLOATS + list(rng.normal(size=64)), dtype=np.float32)
    yield quantize(values, Type[name]).tobytes()


def quantise_rows(name, rng):
    n = 32
    rows = [np.zeros(n), -np.zeros(n), np.full(n, 1.0), np.full(n, -1e-36), np.linspace(-127, 127, n), np.full(n, 3e38)]
    halves = np.array([127.0] + [(-1) ** i * (i * 4 + 0.5) for i in range(31)])
    ties = np.array([-8.0, 8.0] * 4 + [i / 2 - 6 for i in range(24)])
    below = np.array([127.0] + [np.nextafter(np.float32(i + 0.5), np.float32(0)) for i in range(31)])
    rows += [halves, -halves, ties, -ties, below, np.where(np.arange(n) == 5, -1e-5, 0.0)]
    rows += [rng.normal(size=n) * 10.0 ** rng.integers(-8, 5) for _ in range(28)]
    if name in ("F16", "BF16"):
        rows = [np.array(FLOATS + [0.1] * (n - len(FLOATS)))] + rows
    blocks_wide = max(1, GGML_QUANT_SIZES[Type[name]][0] // n)
    return [np.tile(np.asarray(r, dtype=np.float32), blocks_wide) for r in rows]


def bits(values):
    return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)


def line(key, words):
    return key + " " + words + "\n"


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/quant/golden")
    out.mkdir(parents=True, exist_ok=True)
    np.seterr(all="ignore")
    hex32 = lambda values: "".join(f"{b:08x}" for b in bits(values).ravel())
    for name in ["F32", "F16", "BF16", *SCALES]:
        rng = np.random.default_rng(7)
        rows = blocks(name, rng) if name in SCALES else float_rows(name, rng)
        with open(out / f"{name}.txt", "w") as f:
            for row in rows:
                f.write(line("row", row.hex()))
                f.write(line("f32", hex32(dequantize(np.frombuffer(row, dtype=np.uint8), Type[name]))))
    for name in QUANTISED:
        rng = np.random.default_rng(8)
        with open(out / f"quantise_{name}.txt", "w") as f:
            for row in quantise_rows(name, rng):
                f.write(line("f32", hex32(row)))
                f.write(line("row", quantize(row, Type[name]).tobytes().hex()))


if __name__ == "__main__":
    main()
