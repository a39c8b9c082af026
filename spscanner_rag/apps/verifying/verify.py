"""`verify`, which checks an answer's quotes and claims against documents."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from spscanner_rag.apps.verifying.answer_parts import AnswerPart, parts_of_answer
from spscanner_rag.apps.verifying.checked_documents import (
    CheckedDocument,
    CheckedDocuments,
    Cited,
)
from spscanner_rag.apps.verifying.citation_blocks import CitedQuote, read_answer
from spscanner_rag.apps.verifying.citation_marks import Citation, MarkReader
from spscanner_rag.apps.verifying.quote_search import QuoteMatch, find_quote
from spscanner_rag.apps.verifying.report import (
    Place,
    Statement,
    Status,
    Verification,
)
from spscanner_rag.apps.verifying.source_words import words_of_text
from spscanner_rag.text.languages import language_code

if TYPE_CHECKING:
    from spscanner_rag.apps.verifying.claim_support import ClaimEvidence, ClaimReader
    from spscanner_rag.scanner import Scanner

MOST_CHARACTERS: Final = 200_000
MOST_QUOTES: Final = 1000
MOST_CLAIMS: Final = 200

_MOST_PLACES = 5


def verify(
    answer: Any,  # noqa: ANN401 - what an API returned
    documents: Iterable[CheckedDocument],
    *,
    claims: bool = True,
    scanner: "Scanner | None" = None,
) -> Verification:
    """Check whether an answer's quotes and claims stand in documents.

    Quotes are compared word by word; no model is needed. Claims are looked up with a
    scanner, and their support is a probability.

    Parameters
    ----------
    answer : str or an API's message
        Markdown or plain text; an Anthropic message or its ``content``; an OpenAI
        response or message. Citations such as ``[1]``, ``(report.pdf, page 12)`` and
        the APIs' blocks are read. Of more than 200,000 characters, 1,000 quotes or
        200 claims, the first are checked, and a note says so.
    documents : iterable
        Texts, paths (``pathlib.Path``), what `spscanner_rag.files.read` returned, or
        pairs of a name and a text. A number cites the documents in this order, unless
        the answer lists what its numbers mean. A file that cannot be read is a note.
    claims : bool, default True
        Whether claims are checked too.
    scanner : Scanner, optional
        Looks up claims; it needs an encoder. Default: the bundled one, loaded when
        there is a claim.

    Returns
    -------
    Verification
        Its ``statements``, in the order of the answer, and ``notes``.

    Raises
    ------
    TypeError
        For an answer or a document of another type, or one document for several.
    ValueError
        For a scanner without an encoder.

    Examples
    --------
    >>> from spscanner_rag import verify
    >>> log = ("log.txt", "She ran aground only once, in 1899 on the bar.")
    >>> print(verify('It "ran aground only once, in 1898" (log.txt).', [log]))
    altered    quote  "ran aground only once, in 1898"
               cited: (log.txt)
               number: "1898" for "1899"
               log.txt, characters 4 to 34: ran aground only once, in 1899
    """
    api_answer = read_answer(answer)
    checked = CheckedDocuments(documents)
    notes = list(checked.notes)
    text = api_answer.text[:MOST_CHARACTERS]
    notes += _left_out("characters", len(api_answer.text), MOST_CHARACTERS)
    if not words_of_text(text[:10_000]) and not words_of_text(text):
        notes.append("the answer has no words: there is nothing to check")
    marks = MarkReader(checked.names).marks(text)
    quotes, sentences = parts_of_answer(text, marks)
    quotes += _quotes_of_blocks(api_answer.quotes, checked.names)
    notes += _left_out("quotes", len(quotes), MOST_QUOTES)
    statements = []
    for quote in quotes[:MOST_QUOTES]:
        statements.append(_checked_quote(quote, checked))
    if claims:
        notes += _left_out("claims", len(sentences), MOST_CLAIMS)
        notes += _other_language(text, checked)
        sentences = [
            _with_blocks(sentence, api_answer.quotes, checked.names)
            for sentence in sentences[:MOST_CLAIMS]
        ]
        statements += _checked_claims(sentences, checked, scanner)
    statements.sort(key=lambda statement: (statement.start, statement.end))
    return Verification(text, tuple(statements), tuple(checked.names), tuple(notes))


def _left_out(what: str, number: int, most: int) -> list[str]:
    if number <= most:
        return []
    return [f"{number:,} {what}: only the first {most:,} were checked"]


def _other_language(answer: str, checked: CheckedDocuments) -> list[str]:
    sample = " ".join(file.text[:10_000] for file in checked.files[:20])
    ours = language_code(answer)
    theirs = language_code(sample)
    if ours == theirs or not sample.strip():
        return []
    return [
        f"the answer is in another language ({ours}) than the documents ({theirs}):"
        " translated quotes are not found, and the support of claims is uncertain"
    ]


def _quotes_of_blocks(
    blocks: Sequence[CitedQuote], names: Sequence[str]
) -> list[AnswerPart]:
    """The quotes that an API's citations say they took from a document."""
    quotes = []
    for block in blocks:
        if block.cited_text.strip():
            citation = _citation_of(block, names)
            quotes.append(
                AnswerPart(
                    "quote", block.cited_text, block.start, block.end, (citation,)
                )
            )
    return quotes


def _with_blocks(
    claim: AnswerPart, blocks: Sequence[CitedQuote], names: Sequence[str]
) -> AnswerPart:
    """A claim with what an API's citations say that it is from."""
    citations = list(claim.citations)
    for block in blocks:
        is_inside = claim.start <= block.end <= claim.end
        if is_inside or (block.start < claim.end and claim.start < block.end):
            citations.append(_citation_of(block, names))
    return claim._replace(citations=tuple(dict.fromkeys(citations)))


def _citation_of(block: CitedQuote, names: Sequence[str]) -> Citation:
    number = block.document
    if number is not None and not 0 <= number < len(names):
        number = None
    if number is None and block.title in names:
        number = names.index(block.title)
    written = block.title or f"document {block.document}"
    return Citation(written, number, block.page)


def _cited(citations: Sequence[Citation]) -> Cited | None:
    """What citations mean.

    None without any.
    """
    if not citations:
        return None
    pages_of: dict[int, set[str]] = {}
    any_page: set[int] = set()
    for citation in citations:
        if citation.document is None:
            continue
        pages = pages_of.setdefault(citation.document, set())
        if citation.page is None:
            any_page.add(citation.document)
        else:
            pages.add(citation.page)
    for number in any_page:
        pages_of[number] = set()
    return Cited(pages_of, any(citation.document is None for citation in citations))


def _checked_quote(quote: AnswerPart, checked: CheckedDocuments) -> Statement:
    cited = _cited(quote.citations)
    matches = _matches(quote.text, checked, near=False)
    unaltered = [pair for pair in matches if not pair[1].is_altered]
    if not unaltered:
        matches = _matches(quote.text, checked, near=True)
        unaltered = [pair for pair in matches if not pair[1].is_altered]
    if unaltered:
        places = _places(unaltered, checked)
        there = places
        if cited is not None:
            there = [
                place for place in places if cited.allows(place.document, place.passage)
            ]
        status: Status = "supported" if there else "elsewhere"
        in_cited = [match for number, match in unaltered if _is_at(there, number)]
        differences = (in_cited or [unaltered[0][1]])[0].differences
        return _statement(quote, status, 1.0, there or places, differences)
    if not matches:
        return _statement(quote, "not found", 0.0, [], ())

    def order(pair: tuple[int, QuoteMatch]) -> tuple[bool, int]:
        number, match = pair
        is_cited = cited is not None and number in cited.pages_of
        return not is_cited, match.changed_words

    number, match = min(matches, key=order)
    n_words = len(words_of_text(quote.text))
    score = max(0.0, 1 - match.changed_words / n_words)
    places = _places([(number, match)], checked)
    return _statement(quote, "altered", score, places, match.differences)


def _matches(
    quote: str, checked: CheckedDocuments, *, near: bool
) -> list[tuple[int, QuoteMatch]]:
    """The documents, by index, in which a quote is found."""
    matches = []
    for number, document in enumerate(checked.searched):
        match = find_quote(quote, document, near=near)
        if match is not None:
            matches.append((number, match))
    return matches


def _is_at(places: Sequence[Place], number: int) -> bool:
    return any(place.document == number for place in places)


def _places(
    matches: Sequence[tuple[int, QuoteMatch]], checked: CheckedDocuments
) -> list[Place]:
    places = []
    for number, match in matches:
        for start, end in match.stretches:
            places.append(Place(number, checked.passage(number, start, end, 1.0)))
    return places


def _statement(
    part: AnswerPart,
    status: Status,
    score: float,
    places: Sequence[Place],
    differences: Sequence[Any] = (),
) -> Statement:
    cited = tuple(dict.fromkeys(citation.written for citation in part.citations))
    return Statement(
        part.kind,
        part.text,
        part.start,
        part.end,
        status,
        score,
        tuple(differences),
        tuple(places[:_MOST_PLACES]),
        cited,
    )


def _checked_claims(
    claims: Sequence[AnswerPart],
    checked: CheckedDocuments,
    scanner: "Scanner | None",
) -> list[Statement]:
    has_text = any(file.text.strip() for file in checked.files)
    if not claims or not has_text:
        return [_statement(claim, "not found", 0.0, []) for claim in claims]
    from spscanner_rag.apps.verifying.claim_support import ClaimReader

    if scanner is None:
        from spscanner_rag.scanner import Scanner

        scanner = Scanner.from_pretrained()
    reader = ClaimReader(scanner, checked.prepared(scanner))
    return [_checked_claim(claim, reader, checked) for claim in claims]


def _checked_claim(
    claim: AnswerPart, reader: "ClaimReader", checked: CheckedDocuments
) -> Statement:
    cited = _cited(claim.citations)
    numbers = [] if cited is None else list(cited.pages_of)
    evidence = reader.evidence(claim.text, numbers)
    there = evidence
    if cited is not None:
        there = [
            document_evidence
            for document_evidence in evidence
            if document_evidence.document in numbers
        ]
    if there and there[0].is_enough:
        return _claim_statement(claim, "supported", there[0], checked)
    if not evidence:
        return _statement(claim, "not found", 0.0, [])
    status: Status = "elsewhere" if evidence[0].is_enough else "not found"
    return _claim_statement(claim, status, evidence[0], checked)


def _claim_statement(
    claim: AnswerPart,
    status: Status,
    evidence: "ClaimEvidence",
    checked: CheckedDocuments,
) -> Statement:
    places = []
    for start, end in evidence.spans:
        passage = checked.passage(evidence.document, start, end, evidence.support)
        places.append(Place(evidence.document, passage))
    return _statement(claim, status, evidence.support, places)
