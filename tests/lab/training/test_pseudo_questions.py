"""Pseudo-questions: every kind, with evidence that is exactly what it says."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.evidence.questions import Document, read_documents
from spscanner_rag.lab.training.pseudo_questions import (
    HEADINGS,
    MASKED,
    NEGATIVES,
    PHRASES,
    SECTION_SENTENCES,
    WordRarity,
    heading_questions,
    masked_questions,
    phrase_questions,
    pseudo_documents,
    pseudo_question_file,
    text_pieces,
)
from spscanner_rag.text.segmentation import SentenceSegmenter

HARBOUR = """The harbour of Saltmoor

1.2 The lighthouse
The keeper of the lighthouse wrote the date in his book every evening, whatever the weather was like \
outside. He lit the great lamp at six. It burned for nine hours.

Widening of the harbour
In 1908 the council of Saltmoor ordered a report about the harbour, which was four hundred pages \
long in the end. The report said that the harbour must be widened. Its cost was 4,500 pounds for \
every yard of new wall. Nobody in the town had expected that.

What became of the captain?
Captain Ellis signed the treaty with the council on a rainy day in May, and left with three ships \
the same evening. The captain never came back to Saltmoor.
"""

OTHERS = [
    f"The {animal} lives in the {place}. It is often seen there by day. Its young stay for a year with the mother."
    for animal in ("badger", "heron", "otter", "lynx")
    for place in ("forest", "river", "hills")
]


def document(text: str, doc_id: str = "d-1") -> Document:
    return Document(doc_id, "notes", "", text, ())


def sentences(text: str) -> list[tuple[int, int]]:
    return [(unit.start, unit.end) for unit in SentenceSegmenter().segment(text)]


RARITY = WordRarity(map(document, [HARBOUR, *OTHERS]))


def test_headings_ask_for_their_sections() -> None:
    found = heading_questions(HARBOUR, sentences(HARBOUR), 10, random.Random(0))
    evidence = {question.text: [HARBOUR[start:end] for start, end in question.evidence] for question in found}
    assert set(evidence) == {"The lighthouse", "Widening of the harbour", "What became of the captain?"}
    (lighthouse,) = evidence["The lighthouse"]
    assert lighthouse.startswith("1.2 The lighthouse")
    assert lighthouse.endswith("It burned for nine hours.")
    (widening,) = evidence["Widening of the harbour"]
    assert widening.endswith("had expected that.")
    assert len(heading_questions(HARBOUR, sentences(HARBOUR), 2, random.Random(0))) == 2


def test_a_long_section_counts_only_at_its_beginning_and_a_repeated_heading_not_at_all() -> None:
    body = "This is a sentence of quite some length that follows upon the heading, number {}. "
    text = "Methods\n" + "".join(body.format(number) for number in range(30))
    (question,) = heading_questions(text, sentences(text), 5, random.Random(0))
    ((start, end),) = question.evidence
    assert len(sentences(text[start:end])) <= SECTION_SENTENCES + 1
    twice = f"{text}\n\n{text}"
    assert heading_questions(twice, sentences(twice), 5, random.Random(0)) == []


def test_key_phrases_are_repeated_and_rare_and_stand_in_their_evidence() -> None:
    spans = sentences(HARBOUR)
    found = phrase_questions(HARBOUR, spans, 20, random.Random(0), RARITY)
    phrases = {question.text.lower() for question in found}
    assert {"saltmoor", "captain", "harbour"} <= phrases
    assert "the" not in phrases
    common = WordRarity([document("harbour captain")] * 50)
    assert common.idf("Harbour") == 0.0
    assert common.idf("lighthouse") > 3.0
    best = phrase_questions(HARBOUR, spans, 1, random.Random(0), common)[0].text.lower()
    assert best not in ("harbour", "captain")
    for question in found:
        assert len(question.evidence) >= 2
        for start, end in question.evidence:
            assert question.text.lower() in HARBOUR[start:end].lower()
        holding = [
            span for span in spans if f" {question.text.lower()} " in f" {HARBOUR[slice(*span)].lower()} "
        ]
        assert set(holding) <= set(question.evidence)


def test_masked_sentences_lack_their_entity_and_ask_for_that_sentence() -> None:
    spans = sentences(HARBOUR)
    found = [q for seed in range(8) for q in masked_questions(HARBOUR, spans, 20, random.Random(seed))]
    assert len(found) >= 8 * 3
    asked = {"which year": 0, "how many": 0, "who or what": 0}
    for question in found:
        ((start, end),) = question.evidence
        assert (start, end) in spans
        sentence = HARBOUR[start:end]
        assert question.text.endswith("?")
        assert question.text.rstrip("?") not in sentence
        assert len(question.text) < len(sentence) + len(" who or what")
        (kind,) = [words for words in asked if words in question.text]
        asked[kind] += 1
    assert all(asked.values())
    year = next(question.text for question in found if "which year" in question.text)
    assert "1908" not in year
    text = "On that day the old ship left for Port Ellen with nine sailors. It rained. " * 2
    spans = sentences(text)
    assert masked_questions(text, spans, 1, random.Random(0))[0].evidence == (spans[0], spans[2])


@given(
    st.lists(st.sampled_from(["word ", "Long-word. ", "\n", "\n\n", "x", "é! "]), max_size=80),
    st.integers(4, 60),
)
def test_pieces_are_the_text_and_keep_to_their_length(parts: list[str], most: int) -> None:
    text = "".join(parts)
    pieces = list(text_pieces(text, most))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= most for piece in pieces)


def test_pieces_end_where_paragraphs_do() -> None:
    text = "\n\n".join(f"Paragraph {number}. It has two sentences." for number in range(60))
    pieces = list(text_pieces(text, 300))
    assert len(pieces) > 5
    assert all(piece.startswith("Paragraph") and piece.endswith("\n\n") for piece in pieces[:-1])
    assert all(piece.rstrip().endswith(".") for piece in text_pieces(text.replace("\n\n", " "), 300))


def many() -> list[Document]:
    texts = [
        HARBOUR.replace("Saltmoor", name).replace("harbour", f"{name} quay")
        for name in ("Ayr", "Oban", "Leith")
    ]
    return [document(text, f"d-{number}") for number, text in enumerate(texts * 4)]


def test_documents_get_the_mix_of_the_recipe_the_same_every_time() -> None:
    found = list(pseudo_documents(many(), RARITY, 0))
    assert found == list(pseudo_documents(many(), RARITY, 0))
    assert found != list(pseudo_documents(many(), RARITY, 1))
    for made in found:
        kinds = [question.qid.rsplit("-", 1)[1] for question in made.questions if question.answerable]
        masked = len(kinds) - HEADINGS - PHRASES
        assert 0 < masked <= MASKED
        assert kinds == ["heading"] * HEADINGS + ["phrase"] * PHRASES + ["masked"] * masked
        assert len({question.qid for question in made.questions}) == len(made.questions)
        for question in made.questions:
            assert all(0 <= start < end <= len(made.text) for start, end in question.evidence)


def test_negatives_are_questions_of_other_documents() -> None:
    animals = [
        document(
            " ".join(OTHERS) + f" In 19{number} Doctor Brown counted {number} of them near Inverness." * 2,
            f"a-{number}",
        )
        for number in range(10, 14)
    ]
    found = list(pseudo_documents([*many(), *animals], RARITY, 0))
    asked = {question.text for made in found[:12] for question in made.questions}
    last = [question for question in found[-1].questions if not question.answerable]
    assert len(last) == NEGATIVES
    for question in last:
        assert question.evidence == ()
        assert question.text in asked
    assert not [
        question for question in found[0].questions if not question.answerable
    ]  # there is none to take yet


def test_long_texts_become_several_documents_and_short_ones_none() -> None:
    whole = document("\n\n".join([HARBOUR] * 10))
    found = list(pseudo_documents([whole], RARITY, 0, most_characters=3000))
    assert len(found) > 2
    assert "".join(made.text for made in found) == whole.text
    assert [made.doc_id for made in found] == [f"d-1.{number}" for number in range(1, len(found) + 1)]
    assert all(len(made.text) <= 3000 for made in found)
    assert list(pseudo_documents([document("It rained. " * 5)], RARITY, 0)) == []


@given(st.text("aB 1.\n?é", max_size=400))
@pytest.mark.filterwarnings("error")
def test_any_text_is_taken(text: str) -> None:
    for made in pseudo_documents([document(text)], RARITY, 0):
        assert made.text in text
        for question in made.questions:
            assert question.text.strip()
            assert question.evidence


STORY = "In {0} Captain {1} signed the treaty of {1} with the council, and it rained in {1} all day. " * 10


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    paths = []
    for name, town in (("a", "Ayr"), ("b", "Oban")):
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text("\n\x1e\n".join(STORY.format(year, town) for year in (1901, 1902)))
    return paths


def test_the_file_is_a_question_file_made_once(tmp_path: Path, texts: list[Path]) -> None:
    messages: list[str] = []
    path = pseudo_question_file(texts, 0, tmp_path / "made", messages.append)
    documents = list(read_documents([path]))
    assert [document.doc_id for document in documents] == ["a-1.1", "a-2.1", "b-1.1", "b-2.1"]
    assert {document.source for document in documents} == {"a", "b"}
    assert all(document.questions for document in documents)
    assert len(messages) == 2
    assert pseudo_question_file(texts, 0, tmp_path / "made", messages.append) == path
    assert len(messages) == 2
    assert pseudo_question_file(texts, 1, tmp_path / "made") != path


def test_a_killed_run_and_texts_that_give_no_question(tmp_path: Path, texts: list[Path]) -> None:
    def killed(message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pseudo_question_file(texts, 0, tmp_path / "made", killed)
    path = pseudo_question_file(texts, 0, tmp_path / "made")
    assert path.read_bytes() == pseudo_question_file(texts, 0, tmp_path / "other").read_bytes()
    (tmp_path / "short.txt").write_text("Too short.")
    with pytest.raises(ValueError, match=r"short\.txt: no pseudo-question could be made"):
        pseudo_question_file([tmp_path / "short.txt"], 0, tmp_path / "none")
    assert list((tmp_path / "none").iterdir()) == []
