"""Strategies: labels that never overlap, and why sub-documents are dropped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evidence.questions import read_documents
from spscanner_lab.synthesis.conversation import Conversation, DroppedError
from spscanner_lab.synthesis.made_question import MadeQuestion
from spscanner_lab.synthesis.prompt_files import read_prompts
from spscanner_lab.synthesis.scripted import SECTION, scripted_reply
from spscanner_lab.synthesis.settings import SynthesisSettings
from spscanner_lab.synthesis.strategies import Maker
from spscanner_lab.synthesis.sub_documents import Sentence, SubDocument
from spscanner_rag.encoder.embedders import Embedder
from tests.lab.synthesis.conftest import SETTINGS, Make, story

PROMPTS = read_prompts()


def sub_document(sentences: int = 120) -> SubDocument:
    text = story(3, sentences)
    found, start = [], 0
    for part in text.split(". "):
        end = min(len(text), start + len(part) + 1)
        found.append(Sentence(start, end, 25))
        start = end + 1
    return SubDocument(0, "d@0", "s", "", text, 800, tuple(found))


def made(
    ask: object = scripted_reply,
    settings: SynthesisSettings = SETTINGS,
    sentences: int = 120,
) -> MadeQuestion:
    talk = Conversation(ask, PROMPTS)  # type: ignore[arg-type]
    return Maker(settings).make(sub_document(sentences), talk)


def test_the_farthest_link_is_taken_and_both_sides_are_labelled() -> None:
    found = made()
    assert found.evidence == tuple(sorted(found.evidence))
    for (begin, end), around in zip(found.contexts, (600, 800), strict=True):
        assert any(
            begin - around <= start < end + around for start, _ in found.evidence
        )
    (chunk_start, chunk_end), (unit_start, unit_end) = found.contexts
    assert unit_end <= chunk_start or chunk_end <= unit_start


@pytest.mark.parametrize(("chunk", "tokens", "sentences"), [(5, 20, 5), (20, 1, 20)])
def test_a_chunk_is_of_units_as_released_or_of_sentences_as_in_the_paper(
    chunk: int, tokens: int, sentences: int
) -> None:
    settings = replace(SETTINGS, chunk_units=chunk, unit_tokens=tokens)
    found, sub = made(settings=settings), sub_document()
    start, end = found.contexts[0]
    assert (
        sum(
            start <= sentence.start and sentence.end <= end
            for sentence in sub.sentences
        )
        == sentences
    )


def test_a_pair_s_question_has_a_circumstance_and_no_key_word_of_its_evidence() -> None:
    asked = PROMPTS["pair_question"].instructions
    assert "a circumstance that you invent" in asked
    assert "shares no key word with the sentences that answer it" in asked


def test_the_paper_s_question_comes_from_the_connection_alone() -> None:
    """Figure 8 of the paper; and every reply but the connections has a reason (B)."""
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return scripted_reply(prompt)

    talk = Conversation(ask, PROMPTS, reasons=True)
    settings = replace(SETTINGS, question_from="connection", reasons=True)
    question_made = Maker(settings).make(sub_document(), talk)
    assert question_made.question == made().question
    assert question_made.evidence == made().evidence
    links, question, *labels = prompts
    assert "REASON" not in links
    for prompt in (question, *labels):
        assert "REASON: text on one line" in prompt
    titles = [title for title, _, _ in SECTION.findall(question)]
    assert titles == ["CONNECTION"]


def test_a_reply_without_its_reason_is_asked_for_again() -> None:
    talk = Conversation(
        lambda prompt: scripted_reply(prompt).removeprefix(
            "REASON: These are the words.\n"
        ),
        PROMPTS,
        reasons=True,
    )
    with pytest.raises(DroppedError, match="link_question: the reply lacks a part"):
        Maker(SETTINGS).make(sub_document(), talk)
    assert talk.malformed == {"the reply lacks a part": 3}


def replying(**replies: str) -> object:
    """The scripted model, but with another reply to prompts with these sections."""

    def ask(prompt: str) -> str:
        for mark, reply in replies.items():
            if f"[BEGIN {mark} " in prompt:
                return reply
        return scripted_reply(prompt)

    return ask


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (replying(CHUNK="LINKS: NONE"), "the model found no link"),
        (
            replying(CHUNK="LINKS 3: Both have a copyright notice."),
            "about a licence or copyright",
        ),
        (
            replying(CHUNK="LINKS 9999: far away"),
            "link_connections: an index is out of range",
        ),
        (
            replying(CONNECTION="QUESTION: What does the chunk say?"),
            "link_question: the question speaks of",
        ),
        (
            replying(CONNECTION=f"QUESTION: {'why ' * 200}?"),
            "link_question: the question is too long",
        ),
        (
            replying(CONNECTION="QUESTION: Who owns the copyright (c) 1999?"),
            "question is about a licence",
        ),
        (
            replying(QUESTION="RELEVANT: NO\nINDICES: NONE"),
            "one side holds no relevant unit",
        ),
        (
            replying(QUESTION="RELEVANT: YES\nINDICES: NONE"),
            "yes or no and the numbers disagree",
        ),
    ],
)
def test_why_sub_documents_are_dropped(ask: object, reason: str) -> None:
    with pytest.raises(DroppedError, match=reason):
        made(ask)


def test_links_that_are_too_close_are_none() -> None:
    settings = SynthesisSettings(chunk_widening=20, link_widening=20)
    with pytest.raises(DroppedError, match="every link is too close"):
        made(settings=settings, sentences=60)
    with pytest.raises(DroppedError, match="too few units"):
        made(sentences=8)


def test_positions_are_kept(make: Make, tmp_path: Path) -> None:
    summary = make(
        scripted_reply, settings=replace(SETTINGS, positions=(("start", "end"),))
    )
    documents = list(read_documents([tmp_path / "out" / "train.jsonl"]))
    assert summary["examples"] == len(documents) > 0
    for document in documents:
        thirds = [
            3 * start / len(document.text)
            for start, _ in document.questions[0].evidence
        ]
        # the widened labels reach slightly beyond the thirds
        assert min(thirds) < 1.5 < max(thirds)


def test_chunk_questions_have_answers_and_evidence(make: Make, tmp_path: Path) -> None:
    settings = replace(SETTINGS, strategy="chunk", sizes=(800,), weights=(1.0,))
    summary = make(scripted_reply, settings=settings)
    documents = list(read_documents([tmp_path / "out" / "train.jsonl"]))
    assert len(documents) == summary["examples"] >= 10
    for document in documents:
        (question,) = document.questions
        start, end = question.evidence[0]
        assert question.answers == (document.text[start:end],)
    useless = make(
        lambda _: "QUESTION: Who?\nANSWER: No one.\nINDICES: NONE", tmp_path, settings
    )
    assert useless["dropped"] == {
        "chunk_question: the answer depends on no sentence": 12
    }


def test_the_nearest_chunk_is_taken() -> None:
    def embed(
        texts: list[str],
    ) -> object:  # the second of three is the nearest to both others
        angles = {0: 0.0, 1: 0.5, 2: 1.2}
        order = {
            text: number
            for number, text in enumerate(sorted(texts, key=sub.text.index))
        }
        return np.array(
            [
                [np.cos(angles[order[text]]), np.sin(angles[order[text]])]
                for text in texts
            ]
        )

    sub, talk = sub_document(60), Conversation(scripted_reply, PROMPTS)
    maker = Maker(
        replace(SETTINGS, strategy="pair"), encoder=Embedder(embed, embed, "angles")
    )
    made = maker.make(sub, talk)
    assert sub.sentences[20].start in [start for start, _ in made.contexts]
    for begin, end in made.contexts:
        assert any(begin <= start < end for start, _ in made.evidence)
    with pytest.raises(DroppedError, match="too few sentences for two chunks"):
        maker.make(sub_document(30), talk)
