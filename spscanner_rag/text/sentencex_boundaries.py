"""Where ``sentencex`` cuts a text, and what it gets in the text's place.

It gets the text with some characters replaced, one for one, so that the positions that
it finds are positions in the text.
"""

import re

from spscanner_rag.text.pages import sentence_goes_on
from spscanner_rag.text.sentence_ends import correct_ends

# Characters that are replaced for sentencex, one for one: its Rust code accepts no lone
# surrogate, and version 1.0.32 panics on white-space characters longer than one byte.
_SPACES = (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_LINE_ENDS = (0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029)
_REPLACED: dict[int, str] = {
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **dict.fromkeys(_SPACES, " "),
    **dict.fromkeys(_LINE_ENDS, "\n"),
}
# The end of a page in a text, as pdftotext and others write it.
_PAGE_BREAK = re.compile(r"\s*\f\s*")
# A line of white space, or of the marks of a quotation in a mail.
_BLANK_LINE = re.compile(r"\n(?:[^\S\n]+|>[>\t ]*)(?=\n)")

# sentencex does not cut inside quotation marks and brackets, so one that is never
# closed gives a sentence of thousands of characters. Long sentences are cut again with
# these marks masked. A closing mark after a full stop becomes another full stop, so
# that it stays with its sentence.
_PAIRED = "\"'`“”„‟‘’‚‛«»‹›「」『』()[]{}<>（）【】《》〈〉"  # noqa: RUF001
_PAIRED_MARKS = dict.fromkeys(map(ord, _PAIRED), "_")
_CLOSING_MARKS = re.compile("([.!?…。！？])[\"'”’»›」』)\\]}>）】》〉]+")  # noqa: RUF001

_FALLBACK_SENTENCE_END = re.compile(r"[.!?…。！？]+\s+")  # noqa: RUF001


def for_sentencex(text: str, language: str) -> str:
    """The text in the form that ``sentencex`` gets, with the same length."""
    replaced = _join_pages(text) if "\f" in text else text
    replaced = replaced.translate(_REPLACED)
    replaced = _BLANK_LINE.sub(lambda match: "\n" * len(match[0]), replaced)
    return correct_ends(replaced, language)


def _join_pages(text: str) -> str:
    """Replace the page breaks that are within a sentence by spaces."""
    parts = []
    end_of_last = 0
    breaks = list(_PAGE_BREAK.finditer(text))
    ends_of_pages = [page_break.start() for page_break in breaks[1:]]
    ends_of_pages.append(len(text))
    for page_break, end_of_next in zip(breaks, ends_of_pages, strict=True):
        page = text[end_of_last : page_break.start()]
        next_page = text[page_break.end() : end_of_next]
        space = page_break[0]
        if sentence_goes_on(page, next_page):
            space = " " * len(space)
        parts += [page, space]
        end_of_last = page_break.end()
    return "".join([*parts, text[end_of_last:]])


def mask_paired_marks(text: str) -> str:
    """Replace quotation marks and brackets, so that ``sentencex`` cuts inside them."""
    masked = _CLOSING_MARKS.sub(lambda match: match[1] * len(match[0]), text)
    return masked.translate(_PAIRED_MARKS)


def boundaries(text: str, language: str) -> list[int]:
    """Starts of the sentences that ``sentencex`` finds."""
    import sentencex

    try:
        sentences = sentencex.get_sentence_boundaries(language, text)
        return [sentence["start_index"] for sentence in sentences]
    except BaseException as error:
        # A panic of the Rust library is a BaseException that cannot be imported by
        # name.
        if type(error).__name__ != "PanicException":
            raise
        return [match.end() for match in _FALLBACK_SENTENCE_END.finditer(text)]
