"""Baselines read the headings of a unit and the header of its table, as the scanner does."""

from spscanner_rag.baselines import BM25, Dense
from spscanner_rag.files.readers.plain_text import read_markdown
from spscanner_rag.scorers import segment
from spscanner_rag.text.units import Unit
from tests.baselines.conftest import letters

TABLES = read_markdown(
    "tables.md",
    b"""# Prices

It rained in the harbour.

| town | toll |
|------|------|
| Lyme | 7    |
| Bath | 9    |

## Guests

He came in spring.

| town | guests |
|------|--------|
| Lyme | 8      |
""",
)
UNITS = segment(BM25(), TABLES.text, TABLES.blocks)
READ = [
    "# Prices It rained in the harbour.",
    "| town | toll | |------|------| | Lyme | 7 |",
    "| town | toll | | Bath | 9 |",
    "## Guests He came in spring.",
    "| town | guests | |--------| | Lyme | 8 |",
]


def words(text: str) -> list[str]:
    return [word for word in text.replace("-", " ").split() if any(map(str.isalnum, word))]


def test_a_unit_has_its_headings_and_its_header() -> None:
    assert [words(unit.own_text(TABLES.text)) for unit in UNITS] == list(map(words, READ))
    assert Unit(0, 1, "").own_text("ab") == "a"


def test_rows_are_found_by_the_header_of_their_table() -> None:
    scores = BM25().score_units("Which toll is paid?", TABLES.text, UNITS)
    assert (scores > -1).tolist() == [False, True, True, False, False]
    assert list(map(words, Dense(letters).passages_of(TABLES.text, UNITS))) == list(map(words, READ))
