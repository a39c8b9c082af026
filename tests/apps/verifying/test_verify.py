"""`verify` on the written cases, with citations, and on bad input."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from spscanner_rag import Scanner, verify
from spscanner_rag.apps.verifying.report import Statement
from spscanner_rag.files.documents import PageStart, TextFile
from tests.apps.verifying.written_cases import (
    QuoteCase,
    claim_cases,
    documents,
    generated_quotes,
    written_quotes,
)

LOG = ("log.txt", "She ran aground only once, in 1899 on the bar. It rained.")
CREW = ("crew.txt", "The mate left in May. Nobody saw him again.")


def quotes_of(
    answer: str, files: Sequence[tuple[str, str]] = (LOG, CREW)
) -> list[Statement]:
    return list(verify(answer, files, claims=False).statements)


def checked(
    cases: Sequence[QuoteCase], texts: Sequence[tuple[str, str]]
) -> list[Statement]:
    quotes = []
    for case in cases:
        quotes.append(f"> {' '.join(case.quote.split())}\n({case.cited})")
    return quotes_of("\n\n".join(quotes), texts)


def wrong(cases: Sequence[QuoteCase], statements: Sequence[Statement]) -> list[str]:
    """The cases without the status or the difference that they should have."""
    wrong = []
    for case, statement in zip(cases, statements, strict=True):
        kinds = {difference.kind for difference in statement.differences}
        has_kind = case.difference is None or case.difference in kinds
        if statement.status != case.status or not has_kind:
            wrong.append(f"{case.quote}: {statement.status}, {sorted(kinds)}")
    return wrong


def test_quotes_written_by_hand() -> None:
    texts = [item for item in documents().items() if item[0] != "persuasion"]
    cases = written_quotes()
    assert wrong(cases, checked(cases, texts)) == []


@pytest.mark.slow
def test_altered_quotes_are_found_and_exact_ones_are_not_called_altered() -> None:
    cases = generated_quotes()
    statements = checked(cases, list(documents().items()))
    statuses = [
        (case.status, one.status) for case, one in zip(cases, statements, strict=True)
    ]
    assert {found for expected, found in statuses if expected == "supported"} == {
        "supported"
    }
    altered = [pair for pair in statuses if pair[0] != "supported"]
    n_found = sum(found == expected for expected, found in altered)
    assert n_found >= 0.98 * len(altered)
    assert len(wrong(cases, statements)) <= 2  # with the kind of each difference
    assert len(cases) + len(written_quotes()) + len(claim_cases()) == 200


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ('"She ran aground only once" [1]', "supported"),
        ('"She ran aground only once" (log.txt)', "supported"),
        ('"She ran aground only once"', "supported"),
        ('"She ran aground only once" [2]', "elsewhere"),
        ('"She ran aground only once" [7]', "elsewhere"),
        ('"She ran aground only twice" [2]', "altered"),
        ('"She was never heard of again by her crew" [2]', "not found"),
    ],
)
def test_a_quote_is_looked_up_where_it_is_cited(answer: str, status: str) -> None:
    assert [quote.status for quote in quotes_of(answer)] == [status]


def test_a_page_must_be_the_cited_one() -> None:
    pages = (PageStart(0, 1, "1"), PageStart(47, 2, "2"))
    report = TextFile("log.pdf", LOG[1], pages=pages)
    answer = '"She ran aground only once" (log.pdf, page {})'
    for page, status in ((1, "supported"), (2, "elsewhere")):
        found = verify(answer.format(page), [report], claims=False)
        assert [quote.status for quote in found.statements] == [status]
        assert found.statements[0].places[0].passage.page == "1"


def test_spans_index_the_answer_and_the_document() -> None:
    answer = 'He said: "ran aground only once".'
    (quote,) = quotes_of(answer)
    assert answer[quote.start : quote.end] == "ran aground only once"
    passage = quote.places[0].passage
    assert LOG[1][passage.start : passage.end] == passage.text == quote.text


@pytest.mark.parametrize("answer", ["", " \n", "...", "```\ncode\n```"])
def test_an_answer_without_anything_to_check(answer: str) -> None:
    found = verify(answer, [LOG])
    assert found.statements == ()
    assert not found.is_supported


def test_an_answer_without_words_is_told() -> None:
    (note,) = verify(" ", [LOG]).notes
    assert "no words" in note


def test_an_answer_in_another_language_is_told(bundled: Scanner) -> None:
    answer = "Der Hund ist auf dem Schiff, und er ist nicht mit der Katze gekommen."
    found = verify(answer, [LOG], scanner=bundled)
    assert any("another language (de)" in note for note in found.notes)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "no.pdf"
    found = verify('"She ran aground only once" [2]', [missing, LOG], claims=False)
    assert [quote.status for quote in found.statements] == ["supported"]
    assert [note for note in found.notes if "no.pdf" in note]


def test_no_documents_are_told() -> None:
    found = verify('"She ran aground"', [], claims=False)
    assert [quote.status for quote in found.statements] == ["not found"]
    assert "no documents" in found.notes[0]


def test_a_megabyte_is_checked_as_far_as_the_bounds() -> None:
    answer = '"She ran aground only once". ' * 40_000
    found = verify(answer, [LOG], claims=False)
    assert len(found.statements) == 1000
    assert [note.split(":")[0] for note in found.notes] == [
        "1,160,000 characters",
        "6,896 quotes",
    ]


@pytest.mark.parametrize(
    ("documents", "message"), [("text", "got one str"), ([7], "got int")]
)
def test_other_documents_are_refused(documents: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        verify("It sank.", documents)  # type: ignore[arg-type]


def test_another_answer_is_refused() -> None:
    with pytest.raises(TypeError, match="without a block of text"):
        verify(7, [LOG])


def test_claims_with_the_bundled(bundled: Scanner) -> None:
    answer = (
        "The ship ran aground once, in 1899 [1]. A whale ate the captain [2]."
        " Nobody saw the mate again [1]."
    )
    found = verify(answer, [LOG, CREW], scanner=bundled)
    statuses = [statement.status for statement in found.statements]
    assert statuses == ["supported", "not found", "elsewhere"]
    assert found.statements[2].places[0].passage.text == "Nobody saw him again."
    assert found.statements[0].score > found.statements[1].score


def test_a_scanner_without_an_encoder_is_refused(tiny_scanner: Scanner) -> None:
    with pytest.raises(ValueError, match="without an encoder"):
        verify("The ship went aground.", [LOG], scanner=tiny_scanner)


def test_of_two_near_quotes_the_cited_one_counts_and_else_the_nearer() -> None:
    files = (
        ("a.txt", "The mate left the island in the spring of 1811 with four ships."),
        ("b.txt", "The mate left the island in the winter of 1811 with three ships."),
    )
    quote = '"The mate left the island in the winter of 1811 with four ships."'
    (cited,) = quotes_of(f"{quote} [1]", files)
    (uncited,) = quotes_of(quote.replace("four", "two"), files)
    assert (cited.status, uncited.status) == ("altered", "altered")
    assert [place.document for place in cited.places] == [0]
    assert [place.document for place in uncited.places] == [1]
