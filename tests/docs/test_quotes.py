"""Quotes of papers in the pages: one list of places, words and numbers.

A place is a section, an appendix, a figure, a table or an equation. A page may name
only places of this list, and must have what the list says of them; numbers that the
code also has must be the same there.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from spscanner_lab.answers.contexts import WINDOW_TOKENS
from spscanner_lab.evaluation.ablations import CONTEXTS
from spscanner_lab.evaluation.aggregation import DOCUMENT_FORMS
from spscanner_lab.evaluation.rows import LENGTH_EDGES
from spscanner_lab.in_context.block_search import PUBLISHED_DIGITS_AFTER
from spscanner_lab.in_context.prompt import MOST_DOCUMENTS
from spscanner_lab.in_context.training import PUBLISHED
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.baselines.mamba_reranker import FIRST_P_TOKENS, LONG_P_TOKENS
from spscanner_rag.baselines.unit_kinds import CHUNK_WORDS

DOCS = Path(__file__).parents[2] / "docs"

SCANNER = "Single-Pass Scanner (COLM 2025)"
SURVEY = "A Survey of Long-Document Retrieval (2025)"
BLOCKS = "BlockSearch (2026)"
MAMBA = "State Space Models are Strong Text Rerankers (2024)"
DENSE_X = "Dense X Retrieval (2024)"


class Quote(NamedTuple):
    """What a page says of a place in a paper; the words are in the same block."""

    page: str
    paper: str
    place: str
    words: str


QUOTES = (
    Quote("answers", SCANNER, "appendix E.3", "120,000"),
    Quote("answers", SCANNER, "table 1", "mean over all questions first"),
    Quote("answers", SCANNER, "figure 3", "1-8k, 8-16k, 16-32k, 32-64k, 64-128k"),
    Quote("evaluation", SCANNER, "section 5.6", "without tokenizing"),
    Quote("evaluation", SCANNER, "table 2", "documents in batches of 8"),
    Quote("evaluation", SCANNER, "figure 4", "chunks of 1,024 tokens"),
    Quote("reproduce", SCANNER, "table 1", "accuracy, then token F1"),
    Quote("reproduce", SCANNER, "figure 3", "seven bins of length"),
    Quote("reproduce", SCANNER, "table 2", "TFLOPs and TFLOPs with padding"),
    Quote("reproduce", SCANNER, "section 5.6", "without tokenizing"),
    Quote("reproduce", SCANNER, "table 5", "recall and precision at 1, 5, 10 and 50"),
    Quote("reproduce", SCANNER, "figure 4", "chunks of 1,024 tokens"),
    Quote("reproduce", SCANNER, "section 8", "language models label it first"),
    Quote("reproduce", SCANNER, "appendix C.3", "language models label it first"),
    Quote("reproduce", BLOCKS, "table 1", "GoldShare and |a|"),
    Quote("reproduce", BLOCKS, "figure 3", "R_any and R_sum"),
    Quote("reproduce", MAMBA, "table 2", "first 512 and 1,536 tokens"),
    Quote("reproduce", DENSE_X, "table 3", "EM@100 and EM@500"),
    Quote("synthesis", SCANNER, "figure 8", "connection alone"),
    Quote("synthesis", SCANNER, "appendix B.1", "the model's reason"),
    Quote("synthesis", SCANNER, "section 8", "windows of 20 sentences"),
    Quote("synthesis", SCANNER, "appendix C.3", "windows of 20 sentences"),
    Quote("systems", SCANNER, "appendix E.2", "sentences by number"),
    Quote("systems", SURVEY, "equation 1", "share of the unit"),
    Quote("systems", BLOCKS, "section 3.3", "filled at random"),
    Quote("reproduce", BLOCKS, "table 9", "gold score, noise gap and gold mass"),
    Quote("systems", BLOCKS, "figure 2", "last norm and head"),
    Quote("systems", BLOCKS, "table 7", "16 documents a query"),
    Quote("systems", BLOCKS, "table 9", "median head"),
    Quote("systems", SURVEY, "figure 2", "by how they treat length"),
    Quote("training", SCANNER, "section 5.5", "irrelevant sentences"),
    Quote("training", SCANNER, "appendix D", "optimizer, schedule and batch"),
    Quote("training", SCANNER, "section 4.2", "those for lengths"),
    Quote("training", SCANNER, "appendix E.5", "those for lengths"),
)


class Number(NamedTuple):
    """A number of a paper: the block of a page that has it, and the code's."""

    page: str
    paper: str
    words: str  # the number among them, as in the page
    number: float
    in_code: float


NUMBERS = (
    Number("evaluation", MAMBA, "first 512 tokens", 512, FIRST_P_TOKENS),
    Number("evaluation", MAMBA, "first 1,536 tokens", 1536, LONG_P_TOKENS),
    Number(
        "evaluation",
        SCANNER,
        "chunks of 1,024 tokens",
        1024,
        CONTEXTS["chunk of 1,024 tokens alone"],
    ),
    Number("evaluation", SCANNER, "`chunk` (300 words", 300, CHUNK_WORDS),
    Number("answers", SCANNER, "beyond 120,000", 120_000, WINDOW_TOKENS),
    Number(
        "training",
        SCANNER,
        "[2048, 5120, 10240]",
        10240,
        max(Recipe().sequence_tokens),
    ),
    Number("systems", BLOCKS, "`k_step` 5", 5, PUBLISHED_DIGITS_AFTER),
    Number("systems", BLOCKS, "at most 10,000", 10_000, MOST_DOCUMENTS),
    Number("training", BLOCKS, "128 and 4,082", 4082, PUBLISHED.steps),
    Number("training", BLOCKS, "128 and 4,082", 128, PUBLISHED.sequences_per_step),
)

TOLD = (
    ("systems", BLOCKS, "0.439 on LIMIT's 46 documents"),
    ("systems", BLOCKS, "with 5,000 documents 0.149, against 0.035"),
    ("training", SCANNER, "15,625, its 1.3b model for 6,250"),
    ("synthesis", SCANNER, "$1,076 for `link`, $71 for `chunk` and $167 for `pair`"),
)
"""Results that pages quote without a place, and whose."""

PLACE = re.compile(
    r"(?<![\w.])(section|appendix|appendices|figure|table|equation)s?\s+"
    r"([A-E](?:\.\d)?|\d(?:\.\d)?)(?![\w])",
    re.IGNORECASE,
)


def blocks_of(page: str) -> list[str]:
    """The paragraphs, list items and tables of a page, each with single spaces."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=- )", text)]


def places_in(block: str) -> Iterator[str]:
    for kind, number in PLACE.findall(block):
        name = kind.lower().replace("appendices", "appendix")
        yield f"{name} {number.upper()}"


@pytest.mark.parametrize("page", sorted(path.stem for path in DOCS.glob("*.md")))
def test_a_page_names_only_places_of_the_list(page: str) -> None:
    listed = {quote.place for quote in QUOTES if quote.page == page}
    named = set()
    for block in blocks_of(page):
        named.update(places_in(block))
    assert named == listed, "change QUOTES and the page together"


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: " ".join(quote[::2]))
def test_what_a_page_says_of_a_place(quote: Quote) -> None:
    saying = []
    for block in blocks_of(quote.page):
        if quote.place in places_in(block):
            saying.append(block)
    assert any(quote.words in block for block in saying), saying


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.words)
def test_a_number_of_a_paper_is_that_of_the_code(number: Number) -> None:
    assert number.in_code == number.number
    assert any(number.words in block for block in blocks_of(number.page))
    assert f"{number.number:,}" in number.words or str(number.number) in number.words


@pytest.mark.parametrize(("page", "paper", "words"), TOLD)
def test_a_result_that_is_quoted(page: str, paper: str, words: str) -> None:
    assert any(words in block for block in blocks_of(page)), paper


def test_numbers_of_several_kinds() -> None:
    assert Recipe().sequence_tokens == (2048, 5120, 10240)
    assert DOCUMENT_FORMS["FirstP-512"].unit == f"document:{FIRST_P_TOKENS}"
    assert DOCUMENT_FORMS["LongP-1536"].unit == f"document:{LONG_P_TOKENS}"
    assert [edge // 1000 for edge in LENGTH_EDGES[-3:]] == [64, 128, 256]
