"""The units of a whole text: its sentences, or the turns of a conversation."""

from collections.abc import Sequence

from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.turns import turns_of
from spscanner_rag.text.units import Unit


def units_of_text(text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
    r"""Cut a text into sentences by the rules of its language.

    Parameters
    ----------
    text : str
        The whole document.
    blocks : sequence of Block, optional
        Headings, fences and rows of tables. Without any, the turns of a transcript or a
        chat are found, whose sentences are read after their speaker.

    Examples
    --------
    >>> chat = "[12:01] Ann: Is it shut?\n[12:02] Ben: It is.\n[12:05] Ann: Good.\n"
    >>> [unit.model_text for unit in units_of_text(chat)][1]
    '\n[12:02] Ben: It is.'
    """
    segmenter = SentenceSegmenter().for_text(text)
    blocks = blocks or turns_of(text)
    if blocks:
        return segment_blocks(text, blocks, segmenter.segment)
    return segmenter.segment(text)
