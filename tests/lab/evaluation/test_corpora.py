"""Corpora: their questions, their units, the documents that are read, and documents cut to a length."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.evaluation.corpora import (
    Corpus,
    asked_of,
    corpora_of,
    read_of,
    shortened,
)
from spscanner_lab.evaluation.run import Ask
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines import BM25, Cascade, Hybrid
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.coverage import Spans
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.conftest import SMALL_TEXT
from tests.fakes import ScoredBy, words
from tests.lab.evaluation.tiny_study import Counting

TEXT = "The otter swims. A heron flies. Rain fell all day."


def asked(
    doc_id: str, *questions: str, source: str = "wild", text: str = TEXT
) -> Document:
    own = (
        Question(f"{doc_id}-{number}", query, ((4, 9),))
        for number, query in enumerate(questions)
    )
    return Document(doc_id, source, "", text, tuple(own))


def corpus_of(texts: Sequence[str]) -> Corpus:
    return Corpus(
        "wild",
        [
            Document(str(number), "wild", "", text, ())
            for number, text in enumerate(texts)
        ],
    )


# Which questions


def test_sources_are_apart_and_in_order() -> None:
    given = [
        asked("b", "B?"),
        asked("a", "A?"),
        asked("y", "A?", source="a"),
        asked("x", source="a"),
    ]
    corpora = corpora_of(given)
    assert [
        (corpus.source, [d.doc_id for d in corpus.documents]) for corpus in corpora
    ] == [
        ("a", ["x", "y"]),
        ("wild", ["a", "b"]),
    ]
    assert {q.text for _, q in corpora[1].asked} == {"A?", "B?"}
    assert all(d in corpora[1].documents for d, _ in corpora[1].asked)


def test_a_question_of_two_documents_is_not_asked() -> None:
    absent = Question("absent", "who  LEFT?", (), answerable=False)
    other = asked("b", "who signed? ")
    given = [
        asked("a", "Who signed?", "Who left?", "Who swims?"),
        replace(other, questions=(*other.questions, absent)),
        asked("c", "Who swims twice?", "Who swims twice?"),
    ]
    (corpus,) = corpora_of(given)
    assert sorted(q.text for _, q in corpus.asked) == [
        "Who swims twice?",
        "Who swims twice?",
        "Who swims?",
    ]
    assert corpus.left_out == 3


def test_the_sample_is_of_what_can_be_asked() -> None:
    given = [
        asked("a", "Who signed?", *(f"Question {n}?" for n in range(20))),
        asked("b", "Who signed?"),
    ]
    without = [
        asked("c", "A?", source="x"),
        asked("d", "A?", source="x"),
    ]  # it has no question of its own
    (few,), (more,) = (corpora_of([*given, *without], n) for n in (3, 10))
    assert len(few.asked) == 3
    assert list(more.asked[:3]) == list(few.asked)


def test_questions_whose_evidence_is_cut_off() -> None:
    long = " ".join(f"On day {n} an otter crossed the road." for n in range(50))
    far = Question("far", "When?", ((0, 5), (len(long) - 5, len(long))))
    near = Question("near", "Where?", ((len(long) - 5, len(long)),))
    (corpus,) = corpora_of(
        [Document("a", "wild", "", long, (far, near)), asked("b")], characters=200
    )
    assert all(len(d.text) <= 200 for d in corpus.documents)
    ((right, question),) = corpus.asked
    (span,) = question.evidence
    assert (right.text[slice(*span)], question.qid, corpus.left_out) == (
        "road.",
        "near",
        1,
    )


@pytest.mark.parametrize(
    ("documents", "least", "message"),
    [
        (
            [asked("a", "A?"), asked("b")],
            3,
            "has 2 documents; expected at least 3: .* or a smaller --among",
        ),
        ([asked("a", "A?"), asked("a", "B?")], 2, "two documents with the id 'a'"),
        (
            [asked("a", "A?"), asked("b", "A?")],
            2,
            r"expected at least one \(2 have the same words as",
        ),
        ([asked("a"), asked("b")], 2, "no answerable question with evidence"),
    ],
)
def test_refusals(documents: list[Document], least: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corpora_of(documents, least=least)


# Units

PLACES = [
    "The otter swims. A heron flies.",
    "",
    "Rain fell. Otters rest. The end came.",
]


def test_a_pool_lies_end_to_end() -> None:
    units = corpus_of(PLACES).units("sentence")
    pool, joined = units.pool([0, 1, 2], words), "".join(PLACES)
    texts = [joined[start:end] for start, end in zip(*pool.spans, strict=True)]
    assert texts == [
        "The otter swims.",
        "A heron flies.",
        "Rain fell.",
        "Otters rest.",
        "The end came.",
    ]
    assert pool.tokens.tolist() == [3, 3, 2, 2, 3]
    assert (
        units.pool([2], words).spans.starts.tolist() == pool.spans.starts[2:].tolist()
    )
    place = units.place(2, Spans.of(units.units(2)[1:2]))
    assert joined[place.starts[0] : place.ends[0]] == "Otters rest."
    for numbers in ([], [1]):
        empty = units.pool(numbers, words)
        assert (
            len(empty.spans.starts) == len(empty.spans.ends) == len(empty.tokens) == 0
        )
        assert empty.tokens.dtype == np.int64


def test_scores_know_the_collection() -> None:
    units, scorer = corpus_of(PLACES).units("sentence"), Counting()
    scores = units.scores(scorer, ["Which otter?", "Which heron?"], [0, 1], units.every)  # type: ignore[arg-type]
    assert [[len(values) for values in own] for own in scores] == [[2, 0], [2, 0]]
    units.scores(scorer, ["Which otter?"], [0], [0, 1])  # type: ignore[arg-type]
    units.scores(scorer, ["Which otter?"], [0])  # type: ignore[arg-type]
    assert scorer.asked == [
        (2, 5),
        (1, 2),
        (1, None),
    ]  # texts without units are not passed on


@pytest.mark.parametrize("wrapped", ["alone", "hybrid", "cascade", "first of a hybrid"])
@pytest.mark.parametrize("layout", ["published_checkpoint", "windowed_checkpoint"])
def test_a_scanner_has_its_own_units(
    layout: str, wrapped: str, request: pytest.FixtureRequest
) -> None:
    scanner = Scanner.from_pretrained(
        request.getfixturevalue(layout), device="cpu", dtype="float32"
    )
    scorer = {
        "alone": scanner,
        "hybrid": Hybrid([BM25(), scanner]),
        "cascade": Cascade(BM25(), scanner, unit="sentence"),
        "first of a hybrid": Hybrid([scanner, BM25()]),
    }[wrapped]
    corpus = corpus_of([SMALL_TEXT + TEXT])
    setting = Setting("scanner:any")
    ask = Ask(setting, setting, lambda: [corpus])
    (scored,) = ask.score({setting: scorer}, corpus, ["Who signed it?"])
    result = scanner.scan("Who signed it?", SMALL_TEXT + TEXT)
    units = corpus.units("sentence", scorer)
    assert [unit[:2] for unit in units.units(0)] == [
        (s.start, s.end) for s in result.sentences
    ]
    assert (
        len(scored.logits[0])
        == len(result.logits)
        != len(corpus.units("sentence").units(0))
    )
    if wrapped == "alone":
        np.testing.assert_allclose(scored.logits[0], result.logits, atol=1e-5)
    assert (
        corpus.units("sentence", scorer)
        is units
        is not corpus.units("sentence", BM25())
    )
    assert corpus.units("chunk", scorer) is corpus.units("chunk")


# Which documents are read

CREATURES = corpus_of(
    [
        "A heron flies. Nothing else moves.",
        "The otter swims in the river.",
        "An otter sleeps. The otter swims where an otter swam.",
        "Rain fell all day.",
        "Snow fell all night.",
        "An otter rests.",
    ]
)
QUERY = "Which otter swims?"


SNOW = ScoredBy(
    lambda query, text, units: [100 * ("Snow" in text) + len(text)] * len(units)
)
"""Prefers long texts about snow."""


@pytest.mark.parametrize(
    ("right", "among", "expected"),
    [
        (3, None, [0, 1, 2, 3, 4, 5]),
        (1, 2, [1, 2]),
        (1, 3, [1, 2, 5]),
        (3, 3, [1, 2, 3]),  # the right one need not be near
        (1, 5, [0, 1, 2, 3, 5]),  # if words do not decide, the order of the corpus does
        (1, 6, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_hardest(right: int, among: int | None, expected: list[int]) -> None:
    assert list(asked_of(CREATURES, QUERY, right, among)) == expected


@pytest.mark.parametrize(
    ("stage", "most", "asked", "expected"),
    [
        (None, 1, [1, 3, 4], [1, 3, 4]),
        ("bm25", 3, [1, 3, 4], [1, 3, 4]),  # no more than may be read
        (SNOW, 10, [1, 3, 4], [1, 3, 4]),
        ("bm25", 1, range(6), [2]),
        ("bm25", 2, range(6), [1, 2]),
        ("bm25", 4, range(6), [1, 2, 5]),  # no other document shares a word
        ("bm25", 1, [0, 1, 3, 5], [1]),
        ("bm25", 1, [0, 3, 4], []),
        (SNOW, 2, range(6), [2, 4]),
        (SNOW, 2, [0, 1, 3], [0, 1]),
    ],
)
def test_reading(
    stage: ScoredBy | str | None, most: int, asked: Sequence[int], expected: list[int]
) -> None:
    assert read_of(CREATURES, QUERY, asked, stage, most) == expected


# Documents cut to a length

SENTENCES = [
    f"On day {number} of the walk an otter crossed the road." for number in range(30)
]
WALK = " ".join(SENTENCES)


def about(*sentences: int, qid: str = "q") -> Question:
    spans = (
        (WALK.index(SENTENCES[number]), len(SENTENCES[number])) for number in sentences
    )
    return Question(
        qid, "Which day?", tuple((start, start + length) for start, length in spans)
    )


def walk(*questions: Question) -> Document:
    return Document("d", "walks", "", WALK, questions)


def quoted(cut: Document) -> list[list[str]]:
    return [
        [cut.text[start:end] for start, end in question.evidence]
        for question in cut.questions
    ]


def test_the_first_stretch_with_the_evidence_of_the_most_questions() -> None:
    cut = shortened(walk(about(20)), 160)
    assert cut.text == " ".join(SENTENCES[18:21])
    assert quoted(cut) == [[SENTENCES[20]]]
    assert shortened(walk(), 160).text == " ".join(SENTENCES[:3])
    assert (
        shortened(walk(about(5)), 10).text == SENTENCES[5]
    )  # a long sentence stays whole
    cut = shortened(
        walk(about(2, qid="one"), about(10, qid="two"), about(11, qid="three")), 160
    )
    assert [q.qid for q in cut.questions] == ["two", "three"]
    assert quoted(cut) == [[SENTENCES[10]], [SENTENCES[11]]]
    absent = Question("absent", "Who paid?", (), answerable=False)
    assert shortened(walk(about(0, 29), absent), 160).questions == (
        absent,
    )  # too far apart


@given(
    st.lists(
        st.sampled_from(
            ["It rained.", "Herons rest, and otters swim! ", "Why?", "\n\n", "One. "]
        ),
        max_size=30,
    ),
    st.data(),
)
def test_whole_sentences_and_exact_evidence(
    parts: list[str], data: st.DataObject
) -> None:
    text = " ".join(parts)
    spans = [(unit.start, unit.end) for unit in SentenceSegmenter().segment(text)]
    picks = data.draw(st.lists(st.sampled_from(spans), max_size=5)) if spans else []
    questions = tuple(
        Question(str(number), "?", (span,)) for number, span in enumerate(picks)
    )
    characters = data.draw(st.integers(1, 200))
    whole = Document("d", "s", "", text, questions)
    cut = shortened(whole, characters)
    if len(text) <= characters or not spans:  # short, or only white space
        assert cut is whole
        return
    assert len(cut.text) <= max([characters, *(end - start for start, end in spans)])
    assert any(text[start:].startswith(cut.text) for start, _ in spans)
    by_id = {q.qid: q for q in questions}
    for kept in cut.questions:
        before = by_id[kept.qid].evidence
        assert [cut.text[s:e] for s, e in kept.evidence] == [
            text[s:e] for s, e in before
        ]
