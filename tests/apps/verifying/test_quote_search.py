import pytest

from spscanner_rag.apps.verifying.quote_search import QuoteMatch, find_quote
from spscanner_rag.apps.verifying.searched_text import SearchedText

TEXT = (
    "She ran aground only once, in 1899 on the bar. It was not possible to refloat"
    " her; the cap-\ntain's 1,200 men were paid £3.50 each. They weren't happy.[12]"
    " Nobody, he said, was impressed by the “gift”. The bell rang. The bell rang."
)
DOCUMENT = SearchedText(TEXT)


def found(quote: str) -> QuoteMatch:
    match = find_quote(quote, DOCUMENT)
    assert match is not None
    return match


def kinds(quote: str) -> list[str]:
    return [difference.kind for difference in found(quote).differences]


@pytest.mark.parametrize(
    "quote",
    [
        "ran aground only once",
        "the captain's 1200 men",
        "impressed by the 'gift'.",
        "THEY WEREN’T HAPPY. Nobody",
        "She ran aground ... on the bar",
        "[The ship] ran aground only once",
        "[s]he ran aground only once",
    ],
)
def test_typography_ellipses_and_brackets_alter_nothing(quote: str) -> None:
    assert not found(quote).is_altered


@pytest.mark.parametrize(
    ("quote", "kind"),
    [
        ("she ran aground only once, in 1898", "number"),
        ("were paid £35.0 each", "number"),
        ("It was possible to refloat her", "negation"),
        ("It was … possible to refloat her", "negation"),
        ("It was [not] possible to refloat her", "editorial"),
        ("They were happy. Nobody, he said", "negation"),
        ("she ran ashore only once, in 1899", "word"),
        ("she ran aground only once, on the bar", "number"),
        ("in 1899 on the bar ... She ran aground", "order"),
    ],
)
def test_what_is_changed_is_named(quote: str, kind: str) -> None:
    expected = kind if kind != "editorial" else "typography"
    assert expected in kinds(quote)


def test_an_exact_quote_has_all_its_places() -> None:
    stretches = found("The bell rang").stretches
    assert [TEXT[slice(*stretch)] for stretch in stretches] == ["The bell rang"] * 2


@pytest.mark.parametrize("quote", ["", "...", "the bar was long in winter", "a ship"])
def test_nothing_is_like_it(quote: str) -> None:
    assert find_quote(quote, DOCUMENT) is None


def test_an_empty_document_has_no_quote() -> None:
    assert find_quote("a ship", SearchedText("")) is None


def test_a_quote_longer_than_a_part_is_found() -> None:
    text = " ".join(f"word{number}" for number in range(1000))
    match = find_quote(text.replace("word700", "word7"), SearchedText(f"One. {text}"))
    assert match is not None
    assert [difference.kind for difference in match.differences] == ["number"]
    assert match.stretches[0].start == len("One. ")
