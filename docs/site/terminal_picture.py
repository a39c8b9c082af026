"""Makes README's moving picture of a terminal.

``python docs/site/terminal_picture.py`` runs the commands in a terminal of its own and
draws what they write. The typing is made up, a character every 40 ms, and a wait of
more than two seconds is shortened to these; README says how long a question takes.
"""

import fcntl
import html
import json
import os
import pty
import select
import struct
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.style import Style
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURE = REPOSITORY / "docs" / "terminal.svg"
COMMANDS: Final = (
    'spscanner scan saltmere.txt "Why did the Kestrel run aground?" -k 2',
    'spscanner scan saltmere.txt "Why did the board decline the loan?" -k 1',
)
PROMPT = "$ "
COLUMNS, ROWS = 96, 40
TYPING, WAIT, PAUSE, END = 0.04, 2.0, 1.2, 7.0  # seconds
LINE, LETTER, MARGIN = 20, 8.43, 18  # pixels
COLOURS: Final = {1: "#ff7b72", 2: "#7ee787", 6: "#79c0ff"}  # by number in a terminal
PAPER, INK, FAINT = "#0d1117", "#e6edf3", "#9aa4af"


@dataclass(frozen=True)
class Line:
    """A line of the terminal."""

    text: Text
    seconds: float  # when it appears
    typed: float = 0.0  # seconds that typing it takes


def main() -> None:
    """Write the picture to ``docs/terminal.svg``."""
    lines: list[Line] = []
    clock = 0.5
    with TemporaryDirectory() as folder:
        _write_document(Path(folder))
        for command in COMMANDS:
            typing = TYPING * len(command)
            lines.append(Line(Text(f"{PROMPT}{command}"), clock, typing))
            clock += typing + 0.3
            written = _recorded(command, Path(folder))
            for line in written:
                lines.append(Line(line.text, clock + min(line.seconds, WAIT)))
            clock = lines[-1].seconds + PAUSE
    PICTURE.write_text(_drawn(lines, clock + END), encoding="utf-8")
    sys.stdout.write(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes\n")


def _write_document(folder: Path) -> None:
    data = REPOSITORY / "examples/data/saltmere.jsonl"
    pages = [json.loads(line)["text"] for line in data.read_text("utf-8").splitlines()]
    (folder / "saltmere.txt").write_text("\n\n".join(pages), encoding="utf-8")


def _recorded(command: str, folder: Path) -> list[Line]:
    """Run a command in a terminal; its lines, and when they were complete."""
    program = f"{sys.executable} -m spscanner_rag.apps.cli"
    shell = command.replace("spscanner", program, 1) + " --no-progress"
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ |= {"TERM": "xterm-256color", "XDG_CACHE_HOME": str(folder)}
        os.environ |= {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        os.execvp("bash", ["bash", "-c", shell])
    size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    lines = []
    for content, seconds in _lines_of(terminal):
        lines.append(Line(Text.from_ansi(content), seconds))
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise SystemExit("\n".join(line.text.plain for line in lines))
    return lines


def _lines_of(terminal: int) -> list[tuple[str, float]]:
    """The lines that are written to a terminal until it is closed."""
    start = time.monotonic()
    lines: list[tuple[str, float]] = []
    rest = b""
    while True:
        select.select([terminal], [], [])
        try:
            rest += os.read(terminal, 65536)
        except OSError:  # closed
            return lines
        *complete, rest = rest.split(b"\n")
        for line in complete:
            text = line.decode("utf-8").rstrip("\r")
            lines.append((text, time.monotonic() - start))


def _drawn(lines: list[Line], length: float) -> str:
    """The picture, which starts again after ``length`` seconds."""
    width = round(2 * MARGIN + COLUMNS * LETTER)
    height = 2 * MARGIN + LINE * len(lines)
    rules = []
    rows = []
    for number, line in enumerate(lines):
        shown = 100 * line.seconds / length
        rules.append(
            f"@keyframes l{number}{{0%,{shown:.3f}%{{opacity:0}}"
            f"{shown + 0.001:.3f}%,100%{{opacity:1}}}}"
            f"#l{number}{{animation:l{number} {length:.2f}s infinite}}"
        )
        y = MARGIN + LINE * number + 15
        # the same width with any font
        reach = f'textLength="{LETTER * len(line.text.plain):.0f}"'
        content = _spans(line)
        rows.append(
            f'<text id="l{number}" x="{MARGIN}" y="{y}" {reach}>{content}</text>'
        )
        if line.typed:
            rows.append(_curtain(number, line, length, rules))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">'
        f"<title>{html.escape(' '.join(COMMANDS))}</title>"
        "<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',"
        f"monospace;white-space:pre;fill:{INK}}}{''.join(rules)}"
        "@media(prefers-reduced-motion:reduce){*{animation:none!important}"
        ".c{display:none}}</style>"
        f'<rect width="100%" height="100%" rx="10" fill="{PAPER}"/>'
        f"{''.join(rows)}</svg>\n"
    )


def _curtain(number: int, line: Line, length: float, rules: list[str]) -> str:
    """What hides the characters that are not typed yet."""
    letters = len(line.text) - len(PROMPT)
    begin = 100 * line.seconds / length
    end = 100 * (line.seconds + line.typed) / length
    reach = LETTER * letters
    rules.append(
        f"@keyframes c{number}{{0%,{begin:.3f}%{{transform:none;"
        f"animation-timing-function:steps({letters})}}"
        f"{end:.3f}%,100%{{transform:translateX({reach:.1f}px)}}}}"
        f"#c{number}{{animation:c{number} {length:.2f}s infinite}}"
    )
    x = MARGIN + len(PROMPT) * LETTER
    y = MARGIN + LINE * number
    return (
        f'<svg x="{x:.1f}" y="{y}" width="{reach:.1f}" height="{LINE}">'
        f'<rect class="c" id="c{number}" width="100%" height="100%" fill="{PAPER}"/>'
        "</svg>"
    )


def _spans(line: Line) -> str:
    """The text of a line with its colours."""
    parts = []
    for text, style in _styled(line.text):
        fill = INK
        if style.color is not None:
            fill = COLOURS.get(style.color.number or 0, INK)
        elif style.dim:
            fill = FAINT
        weight = ' font-weight="700"' if style.bold else ""
        parts.append(f'<tspan fill="{fill}"{weight}>{html.escape(text)}</tspan>')
    return "".join(parts)


def _styled(text: Text) -> list[tuple[str, Style]]:
    """The runs of one style."""
    edges = set()
    for span in text.spans:
        edges |= {span.start, span.end}
    runs = []
    for piece in text.divide(sorted(edges)):
        styles = [Style.parse(str(span.style)) for span in piece.spans]
        if piece.plain:
            runs.append((piece.plain, Style.combine([Style.null(), *styles])))
    return runs


if __name__ == "__main__":
    main()
