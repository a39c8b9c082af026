"""Propositions: passages, replies, the sentence of a statement, scores of units."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.baselines import BM25, Dense, Propositions
from spscanner_rag.baselines.names import scorer_of
from spscanner_rag.baselines.proposition_model import SEQ2SEQ_INPUT, Seq2Seq
from spscanner_rag.baselines.proposition_replies import Source, read_reply
from spscanner_rag.baselines.propositions import (
    NO_PROPOSITION_LOGIT,
    Proposition,
    passages_of,
    terms,
    tie,
)
from spscanner_rag.scorers import ScanCancelled, score_batch
from spscanner_rag.text.units import Unit
from tests.baselines.conftest import Says, letters, propositions_by
from tests.fakes import logits_of

SENTENCES = [
    "Anna Brook kept the lighthouse.",
    "She signed the treaty in 1911.",
    "It rained.",
]
TEXT = " ".join([*SENTENCES, "The bell rang, 東京の人."])
STATEMENTS = [
    "Anna Brook kept the lighthouse.",
    "Anna Brook signed the treaty.",
    "The treaty was signed in 1911.",
    "Nobody knows.",
]
QUERY = "Who signed the treaty in 1911?"


def span(text: str, part: str) -> tuple[int, int]:
    return text.index(part), text.index(part) + len(part)


def test_propositions_are_tied_to_their_sentences_and_ranked() -> None:
    baseline, whole = propositions_by(Says(STATEMENTS)), (0, len(TEXT))
    assert baseline.propositions(TEXT) == (
        Proposition(STATEMENTS[0], *span(TEXT, SENTENCES[0])),
        Proposition(STATEMENTS[1], *span(TEXT, SENTENCES[1])),
        Proposition(STATEMENTS[2], *span(TEXT, SENTENCES[1])),
        Proposition(STATEMENTS[3], *whole),  # shares no word with any sentence
    )
    assert [p.text for p in baseline.best_propositions(QUERY, TEXT)] == [
        STATEMENTS[i] for i in (2, 1, 0, 3)
    ]
    assert baseline.best_propositions(QUERY, "") == []
    with pytest.raises(ValueError, match="query: got"):
        baseline.best_propositions(" ", TEXT)


def test_a_unit_scores_as_the_best_proposition_tied_to_it() -> None:
    baseline = propositions_by(Says(STATEMENTS[:3]))
    units = baseline.units_of(TEXT)
    raw = baseline.raw_scores(QUERY, TEXT, units)
    # shared words minus 2: "the" | signed the treaty; the treaty signed in 1911 | none
    # | none
    assert raw[:2].tolist() == [-1.0, 3.0]
    assert raw[2] == raw[3] == np.nextafter(np.float32(-1), np.float32(-2))
    np.testing.assert_array_equal(baseline.score_units(QUERY, TEXT, units), raw)
    for larger in ("chunk", "document", "passage"):
        other = propositions_by(Says(STATEMENTS), unit=larger)
        assert other.raw_scores(QUERY, TEXT, other.units_of(TEXT)).tolist() == [3.0]
    untied = propositions_by(Says(["Nobody knows."]))
    assert untied.raw_scores("nobody knows", TEXT, units).tolist() == [0.0] * 4, (
        "counts for the whole passage"
    )


def test_a_text_without_propositions_comes_last() -> None:
    baseline = propositions_by(
        Says(lambda passage: "[]" if "Rain" in passage else '["Eel."]')
    )
    requests = [
        ("eel", text, baseline.units_of(text))
        for text in ("An eel. Eels!", "Rain fell. It fell.", "")
    ]
    logits = logits_of(score_batch(baseline, requests, lambda: False))
    assert logits[0].tolist()[0] == -1.0
    assert logits[1].tolist() == [NO_PROPOSITION_LOGIT] * 2
    assert logits[2].tolist() == []
    assert baseline.score_units(*requests[1]).tolist() == [NO_PROPOSITION_LOGIT] * 2


def test_a_scorer_keeps_its_vectors_and_its_logits() -> None:
    asked: list[int] = []

    def embed(texts: list[str]) -> NDArray[np.float32]:
        asked.append(len(texts))
        return letters(texts)

    dense = Dense(embed)
    baseline = propositions_by(Says(STATEMENTS), dense)
    units = baseline.units_of(TEXT)
    raw = baseline.raw_scores("treaty", TEXT, units)
    alone = [
        Dense(letters).raw_scores("treaty", each, [Unit(0, len(each), each)])
        for each in STATEMENTS
    ]
    expected = np.concatenate(alone)
    # the last statement is assigned to the whole passage
    np.testing.assert_allclose(
        raw[:3], [max(expected[[0, 3]]), max(expected[1:]), expected[3]], atol=1e-6
    )
    np.testing.assert_array_equal(baseline.logits(raw), dense.logits(raw))
    asked.clear()
    baseline.raw_scores("lighthouse", TEXT, units)
    assert asked == [1], "the query alone"
    lexical = propositions_by(Says(STATEMENTS), BM25()).score_units(
        "treaty signed", TEXT, units
    )
    assert np.isfinite(lexical).all()
    assert int(np.argmax(lexical)) == 1


def test_a_passage_is_decomposed_once_with_the_title_of_its_text() -> None:
    model = Says(STATEMENTS)
    texts = [f"{TEXT} Number {number}." for number in range(5)]
    baseline = propositions_by(model, titles={texts[0]: "Keepers"})
    for text in [*texts, *texts]:
        assert len(baseline.propositions(text)) == 4
    assert model.read == [
        Source("Keepers" if text == texts[0] else "", text) for text in texts
    ]


def three_passages(*words: str) -> str:
    return "\n\n".join(
        f"{word} was here. " + "It rained and it rained. " * 19 for word in words
    )


def test_what_scores_no_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="scorer is str; expected a baseline"):
        Propositions(tmp_path, "dense")  # type: ignore[arg-type]


def test_cancelled_between_passages() -> None:
    text, model = three_passages("0", "1", "2"), Says(STATEMENTS)
    baseline = propositions_by(model)
    with pytest.raises(ScanCancelled):
        score_batch(
            baseline,
            [("q", text, baseline.units_of(text))],
            lambda: len(model.read) == 2,
        )
    assert len(model.read) == 2
    baseline.propositions(text)
    assert len(model.read) == 3, "what was done is kept"


@pytest.mark.parametrize(
    ("reply", "propositions"),
    [
        ('["a b", "c"]', ["a b", "c"]),
        ('Here they are: ["a",\n "b"]\nDone.', ["a", "b"]),
        ('["a", "a", " b\n c ", ""]', ["a", "b c"]),
        ('["a", "b \\"quoted\\"", "cut o', ["a", 'b "quoted"']),
        ('["a", "b",]', ["a", "b"]),
        ('["a", 3, null, "b"]', ["a", "b"]),
        (r'["a \_ b", "\u00e9"', [r"a \_ b", "é"]),
        ("I cannot do that.", []),
        ("[" * 100_000, []),
        ('["...", "-"]', []),
    ],
)
def test_replies(reply: str, propositions: list[str]) -> None:
    assert read_reply(reply) == tuple(propositions)


@settings(max_examples=50)
@given(st.lists(st.text(min_size=1)), st.integers(0, 400))
def test_whatever_is_cut_off_keeps_the_complete_strings(
    statements: list[str], cut: int
) -> None:
    known = read_reply(json.dumps(statements))
    part = read_reply(json.dumps(statements)[:cut])
    assert part == known[: len(part)]


def test_a_checkpoint_gives_what_transformers_generates(
    t5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.baselines.proposition_model.BATCH", 2)
    transformers = pytest.importorskip("transformers")
    sources = [
        Source("", SENTENCES[0]),
        Source("Keepers", TEXT * 2),
        Source("", "It {rained}. \ud800"),
    ]
    replies = list(Seq2Seq(t5, device="cpu", max_new_tokens=12)(sources))
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(t5).eval()
    assert "Title: Keepers. Section: . Content: Anna" in SEQ2SEQ_INPUT.format(
        **sources[1]._asdict()
    )
    for source, reply in zip(sources, replies, strict=True):
        read = SEQ2SEQ_INPUT.format(**source._asdict()).replace("\ud800", "\ufffd")
        with torch.no_grad():
            output = model.generate(
                tokenizer(read, return_tensors="pt").input_ids, max_new_tokens=12
            )
        assert reply == tokenizer.decode(output[0], skip_special_tokens=True)
    assert len(set(replies)) > 1


def test_passages_are_whole_sentences() -> None:
    text = "\n\n".join(
        f"The harbour number {number} was widened in a year." for number in range(40)
    )
    assert [len(passage) for passage in passages_of(text)] == [
        11,
        11,
        11,
        7,
    ]  # 9 words each
    huge = "word " * 500 + "end."
    assert [unit.start for unit in next(passages_of("One. " + huge))] == [0]


def tied(statement: str, sentences: list[str]) -> int | None:
    return tie(statement, [terms(sentence) for sentence in sentences])


def test_the_rule_of_ties() -> None:
    assert tied("the ship LEFT", ["The harbour.", "The ship left.", "The ship."]) == 1
    assert tied("Anna Brook signed it", ["Anna Brook came.", "She signed it."]) == 1, (
        "the last of two"
    )
    assert tied("Anna Brook came", ["Anna Brook came.", "She signed it."]) == 0
    assert tied("red ship", ["A red ship.", "A ship, red."]) == 0, (
        "pairs of words count"
    )
    assert tied("the the the", ["the", "the cat and the dog"]) == 1, (
        "a word counts once"
    )
    assert tied("nothing shared", ["The ship left."]) is None
    assert tied("東京に住む", ["東京の人", "大阪に"]) == 0
    assert tied("nothing", []) is None


def test_the_command_line_names_the_model_that_ranks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loaded: list[object] = []

    def dense(embedder: object, **options: object) -> Dense:
        loaded.append(embedder)
        return Dense(letters)

    monkeypatch.setattr("spscanner_rag.baselines.Dense", dense)
    monkeypatch.setattr(
        "spscanner_rag.baselines.proposition_model.Seq2Seq",
        lambda model, **_: loaded.append(model) or Says(STATEMENTS),
    )
    folder = tmp_path / "at@home"
    folder.mkdir()
    scorer = scorer_of("propositions:owner/model@gtr")
    scorer_of("propositions:owner/model")
    scorer_of(f"propositions:{folder}")
    assert loaded == [
        *("gtr", "owner/model"),
        *("minilm", "owner/model"),
        *("minilm", str(folder)),
    ]
    assert scorer.name == "propositions:owner/model@gtr"
