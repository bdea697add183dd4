#!/usr/bin/env python3
"""Write tests/data/tokenizers/random.txt: how independent libraries tokenise random text.

    make_tokenizer_goldens.py > tests/data/tokenizers/random.txt

`ids NAME`: the ids of 10,000 texts, from Hugging Face's tokenizers (byte-level BPE) or Google's sentencepiece, with the
vocabulary of tests/data/tokenizers/ggml-vocab-NAME.gguf. `cuts NAME`: the words that the published pattern of a
pre-tokenizer finds in the first 2,500, by their lengths in bytes, from the regex module. A result is kept as its 32-bit FNV-1a hash
over little-endian numbers of 32 bits. The texts follow from their number alone: text() here and in
tests/tokenizer/random_text.h. Needs PyPI gguf, tokenizers, sentencepiece, protobuf and regex.
"""
import os
import sys

import regex
import sentencepiece
from gguf import GGUFReader
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

IDS, CUTS = 10_000, 2_500
DATA = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "tokenizers")
M64 = 2 ** 64 - 1
RANGES = [(0x20, 0x7E), (0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x5D0, 0x5EA),
          (0x620, 0x669), (0x904, 0x963), (0x1780, 0x17DD), (0x2000, 0x205F), (0x2150, 0x23FF), (0x3000, 0x30FF), (0x4E00, 0x9FFF),
          (0xAC00, 0xD7A3), (0x1F300, 0x1F6D0), (0x1D400, 0x1D454), (0x20000, 0x2A6DF), (0xE0000, 0x10FFFF)]
PIECES = [" ", "  ", "    ", "\n", "\r\n", "\n\n", "\t", "'s", "'LL", "'re", "the", " the", "...", "==", "/\n", "\u2581", "\ufe0f", "\u200d", "\xa0",
          "\x00", "\ufffd", "123", "aaaa"]

CONTRACTION, LOWER = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"'s|'t|'re|'ve|'m|'ll|'d"
GPT2 = LOWER + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER_CASE, LOWER_CASE = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
LLAMA3 = CONTRACTION + "|" + LEAD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN2 = LLAMA3.replace("{1,3}", "")
SYMBOLS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL
PATTERNS = {
    "gpt-2": [GPT2], "smollm": [r"\p{N}", GPT2], "llama-bpe": [LLAMA3], "qwen2": [QWEN2],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "qwen35": [CONTRACTION + "|" + LEAD + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL],
    "tekken": [f"{LEAD}{UPPER_CASE}*{LOWER_CASE}+|{LEAD}{UPPER_CASE}+{LOWER_CASE}*" + r"|\p{N}" + SYMBOLS],
    "gpt-4o": [f"{LEAD}{UPPER_CASE}*{LOWER_CASE}+{CONTRACTION}?|{LEAD}{UPPER_CASE}+{LOWER_CASE}*{CONTRACTION}?" + r"|\p{N}{1,3}" + SYMBOLS],
}


def numbers(seed):
    """splitmix64"""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & M64
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
        yield z ^ (z >> 31)


def text(index):
    draw = numbers(index)
    out = []
    for _ in range(next(draw) % 40):
        if next(draw) % 3 == 0:
            out.append(PIECES[next(draw) % len(PIECES)])
        else:
            low, high = RANGES[next(draw) % len(RANGES)]
            out.append(chr(low + next(draw) % (high - low + 1)))
    return "".join(out)


def fnv(values):
    h = 0x811C9DC5
    for value in values:
        for byte in value.to_bytes(4, "little"):
            h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    return h


def fields(name):
    found = GGUFReader(os.path.join(DATA, f"ggml-vocab-{name}.gguf")).fields
    return lambda key: found["tokenizer.ggml." + key].contents()


def byte_level(name):
    get = fields(name)
    vocab = {t: i for i, (t, kind) in enumerate(zip(get("tokens"), get("token_type"))) if kind == 1}
    merges = [tuple(m.split(" ")) for m in get("merges")]
    model = models.BPE(vocab=vocab, merges=merges, ignore_merges=name == "llama-bpe")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[name]] + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return lambda s: tokenizer.encode(s, add_special_tokens=False).ids


def sentence_piece(name):
    get = fields(name)
    model = sentencepiece_model_pb2.ModelProto()
    for t, score, kind in zip(get("tokens"), get("scores"), get("token_type")):
        model.pieces.add(piece=t, score=score, type=kind)
    model.trainer_spec.model_type = 2
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = len(model.pieces)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model.SerializeToString())
    return processor.encode


def cuts(name):
    def split(pattern, piece):
        at = 0
        for match in pattern.finditer(piece):
            yield from filter(None, (piece[at:match.start()], match.group()))
            at = match.end()
        if piece[at:]:
            yield piece[at:]

    patterns = [regex.compile(p) for p in PATTERNS[name]]

    def lengths(s):
        pieces = [s]
        for pattern in patterns:
            pieces = [part for piece in pieces for part in split(pattern, piece)]
        return [len(p.encode()) for p in pieces if p]
    return lengths


def write(title, result, count):
    hashes = [f"{fnv(result(text(i))):08x}" for i in range(count)]
    print(title)
    for i in range(0, count, 20):
        print("".join(hashes[i:i + 20]))
    print(title, file=sys.stderr)


def main():
    for name in ("gpt-2", "llama-bpe", "qwen2"):
        write(f"ids {name}", byte_level(name), IDS)
    write("ids llama-spm", sentence_piece("llama-spm"), IDS)
    for name in PATTERNS:
        write(f"cuts {name}", cuts(name), CUTS)


if __name__ == "__main__":
    main()
