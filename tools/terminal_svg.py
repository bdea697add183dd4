#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a terminal session and draws it:  tools/terminal_svg.py [PROGRAM_FOLDER]  ->  docs/session.svg

Runs the commands below with the juno of PROGRAM_FOLDER (build/release) and draws what they print: stdout bright, stderr dim.
"""
import html
import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = [
    'juno local --prompt "Who are you?" --temperature 0',
    "juno logits --ids 1,2,3,4,5,6,7,8 --positions all --hash --threads 1",
    "juno logits --ids 1,2,3,4,5,6,7,8 --positions all --hash --threads 2 --chunk 3",
    "juno inspect models/juno-demo-23m.Q8_0.gguf | head -8",
]
COLUMNS, ADVANCE, HEIGHT, MARGIN = 100, 8.43, 19, 20
COLOURS = {"typed": "#7ee787", "out": "#e6edf3", "err": "#8b949e"}


def record(programs):
    """[(kind, line)], lines wrapped as a terminal of COLUMNS would."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUNO_")}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    lines = []
    for command in COMMANDS:
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=True)
        for kind, text in (("typed", f"$ {command}"), ("out", done.stdout), ("err", done.stderr)):
            for line in text.splitlines():
                lines += [(kind, part) for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""]]
        lines.append(("out", ""))
    return lines[:-1]


def draw(lines):
    width, height = COLUMNS * ADVANCE + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
           'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
           '<title>A terminal session with Juno</title>',
           f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>']
    for row, (kind, line) in enumerate(lines):
        if line:
            out.append(f'<text x="{MARGIN}" y="{MARGIN + row * HEIGHT + 14}" fill="{COLOURS[kind]}" xml:space="preserve">'
                       f'{html.escape(line, quote=False)}</text>')
    return "\n".join(out + ["</svg>", ""])


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    (ROOT / "docs/session.svg").write_text(draw(record(folder)))
