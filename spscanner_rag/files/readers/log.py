"""Reads logs unchanged, with their entries."""

from itertools import islice

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.block_segmentation import LONGEST_UNIT
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.sentence_starts import DATED
from spscanner_rag.text.turns import LINE


def read_log(data: bytes) -> TextFile:
    """Read a log.

    ``ValueError`` if it is not UTF-8 or UTF-16.

    An entry is a line and the indented lines below it or, if entries begin with a time,
    all lines without one.
    """
    text = decoded(data)
    blocks: list[Block] = []
    timed = len(list(islice(DATED.finditer(text), 2))) == 2 and bool(
        DATED.match(text.lstrip())
    )
    for line in LINE.finditer(text):
        start = line.start()
        end = line.start() + len(line[0].rstrip())
        if end == start or not line[0].strip():
            continue
        goes_on = not DATED.match(line[0]) if timed else line[0][0] in " \t"
        last = blocks[-1] if blocks and goes_on else None
        if last and end - last.start <= LONGEST_UNIT:
            blocks[-1] = last._replace(end=end)
        else:
            blocks.append(
                Block(start + len(line[0]) - len(line[0].lstrip()), end, "row")
            )
    return TextFile("", text, tuple(blocks))
