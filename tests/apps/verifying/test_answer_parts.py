from spscanner_rag.apps.verifying.answer_parts import AnswerPart, parts_of_answer
from spscanner_rag.apps.verifying.citation_marks import MarkReader

ANSWER = """# A heading with many words

The mate said "she is lost" [1]. He left, and it's 'a very bad thing' they said. [2]

> She ran aground
> only once.
>
> Second quote here.
(crew.txt, p. 3)

- **Bold claim** was made in 1899 (see log.pdf, page 4).
- “It’s a quote with ‘inner’ marks” [1] and “another one” [2][1].

```
code "not a quote" is no claim either
```
Do you want to hear more?

[1] log.pdf, page 12
[2] crew.txt
"""


def parts() -> tuple[list[AnswerPart], list[AnswerPart]]:
    marks = MarkReader(["a/log.pdf", "crew.txt"]).marks(ANSWER)
    return parts_of_answer(ANSWER, marks)


def test_quotes_and_what_they_cite() -> None:
    quotes, _ = parts()
    cited = {
        quote.text: [(one.document, one.page) for one in quote.citations]
        for quote in quotes
    }
    assert cited == {
        "she is lost": [(0, "12")],
        "a very bad thing": [(1, None)],
        "She ran aground\nonly once.": [(1, "3")],
        "Second quote here.": [(1, "3")],
        "It’s a quote with ‘inner’ marks": [(0, "12")],
        "another one": [(1, None), (0, "12")],
    }
    for quote in quotes:
        first = quote.text.split()[0]
        assert ANSWER[quote.start : quote.end].lstrip("> ").startswith(first)


def test_claims_have_no_code_headings_questions_or_lists() -> None:
    _, claims = parts()
    assert [claim.text for claim in claims] == [
        "He left, and it's 'a very bad thing' they said.",
        "Bold claim was made in 1899 .",
    ]


def test_unpaired_marks_take_little_time() -> None:
    for unit in ("' a", '"a\n', "“", "> ", "[1](", "* "):
        parts_of_answer(unit * 20_000, [])
