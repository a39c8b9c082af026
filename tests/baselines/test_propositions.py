import json
import logging
import pickle
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.propositions import (
    NO_PROPOSITION_LOGIT,
    Proposition,
    Propositions,
)
from spscanner_rag.lab.answers.answering import retrieved_context
from spscanner_rag.retrieval.pieces import Piece, join_pieces
from spscanner_rag.retrieval.search import Selection, search
from spscanner_rag.scorers import ScanCancelled, score_batch
from spscanner_rag.text.units import Unit

TEXT = "Anna Brook kept the lighthouse. She signed the treaty in 1911. It rained. The bell rang, 東京の人."
SENTENCES = ["Anna Brook kept the lighthouse.", "She signed the treaty in 1911.", "It rained."]
STATEMENTS = [
    "Anna Brook kept the lighthouse.",
    "Anna Brook signed the treaty.",
    "The treaty was signed in 1911.",
    "Nobody knows.",
]


def passage_in(prompt: str) -> str:
    match = re.search(r"<<<PASSAGE\n(.*)\nPASSAGE>>>", prompt, re.DOTALL)
    assert match is not None
    return match[1]


class FakeModel:
    """A function from prompt to reply that keeps the prompts."""

    def __init__(self, reply: Callable[[str], str] = lambda _: json.dumps(STATEMENTS)) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.reply(prompt)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def shared_words(query: str, texts: list[str]) -> NDArray[np.float32]:
    return np.array([len(words(query) & words(text)) - 2 for text in texts], np.float32)


def span(text: str, part: str) -> tuple[int, int]:
    return text.index(part), text.index(part) + len(part)


def test_propositions_are_tied_to_their_sentences() -> None:
    found = Propositions(FakeModel(), shared_words).propositions(TEXT)
    whole = (0, len(TEXT))
    assert found == (
        Proposition(STATEMENTS[0], *span(TEXT, SENTENCES[0]), *whole),
        Proposition(STATEMENTS[1], *span(TEXT, SENTENCES[1]), *whole),
        Proposition(STATEMENTS[2], *span(TEXT, SENTENCES[1]), *whole),
        Proposition(STATEMENTS[3], *whole, *whole),  # shares no word with any sentence
    )


def test_a_unit_scores_as_the_best_proposition_tied_to_it() -> None:
    baseline = Propositions(FakeModel(lambda _: json.dumps(STATEMENTS[:3])), shared_words)
    units = baseline.segment(TEXT)
    raw = baseline.raw_scores("Who signed the treaty in 1911?", TEXT, units)
    # shared words, less 2: "the" | signed the treaty; the treaty signed in 1911 | none | none
    assert raw[:2].tolist() == [-1.0, 3.0]
    assert raw[2] == raw[3] == np.nextafter(np.float32(-1), np.float32(-2))
    np.testing.assert_array_equal(baseline.score_units("Who signed the treaty in 1911?", TEXT, units), raw)


def test_propositions_as_the_context() -> None:
    query = "Who signed the treaty in 1911?"
    units, own = (
        Propositions(FakeModel(), shared_words, as_context=kind)  # type: ignore[arg-type]
        for kind in ("unit", "proposition")
    )
    assert [p.text for p in own.best_propositions(query, TEXT)] == [STATEMENTS[i] for i in (2, 1, 0, 3)]
    assert own.result(query, TEXT).context(top_k=2) == f"{STATEMENTS[1]}\n{STATEMENTS[2]}"
    assert units.result(query, TEXT).context(top_k=1) == SENTENCES[1]
    assert retrieved_context(own, query, TEXT, top_k=None, max_tokens=10) == STATEMENTS[2]
    assert retrieved_context(units, query, TEXT, top_k=1) == SENTENCES[1]
    assert own.result(query, "").sentences == () == units.result(query, "").sentences
    with pytest.raises(ValueError, match="as_context is 'x'"):
        Propositions(FakeModel(), shared_words, as_context="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(("unit", "count"), [("chunk", 1), ("document", 1), ("passage", 1)])
def test_larger_units_take_the_propositions_of_their_sentences(unit: Any, count: int) -> None:
    baseline = Propositions(FakeModel(), shared_words, unit=unit)
    units = baseline.segment(TEXT)
    assert len(units) == count
    assert baseline.raw_scores("signed the treaty in 1911", TEXT, units).tolist() == [3.0]


def test_a_proposition_without_a_sentence_counts_for_its_whole_passage() -> None:
    baseline = Propositions(FakeModel(lambda _: '["Nobody knows."]'), shared_words)
    assert baseline.raw_scores("nobody knows", TEXT, baseline.segment(TEXT)).tolist() == [0.0] * 4


def test_units_that_only_touch_a_sentence_take_nothing_from_it() -> None:
    statement, (start, end) = STATEMENTS[2], span(TEXT, SENTENCES[1])
    edges = [(0, start), (start, start + 3), (start + 3, end), (end, len(TEXT))]
    units = [Unit(first, stop, TEXT[first:stop]) for first, stop in edges]
    baseline = Propositions(FakeModel(lambda _: json.dumps([statement])), lambda _, __: np.zeros(1))
    assert (baseline.raw_scores("q", TEXT, units) == 0).tolist() == [False, True, True, False]


def test_a_text_without_propositions_comes_last() -> None:
    baseline = Propositions(FakeModel(lambda p: "[]" if "Rain" in p else '["Eel."]'), shared_words)
    texts = ["An eel. Eels!", "Rain fell. It fell.", ""]
    requests = [("eel", text, baseline.segment(text)) for text in texts]
    logits = list(score_batch(baseline, requests, lambda: False))
    assert logits[0].tolist()[0] == -1.0
    assert logits[1].tolist() == [NO_PROPOSITION_LOGIT] * 2
    assert logits[2].tolist() == []
    assert baseline.score_units("eel", texts[1], requests[1][2]).tolist() == [NO_PROPOSITION_LOGIT] * 2
    assert (baseline.passages_decomposed, baseline.replies_broken) == (2, 0)


def test_in_a_search_the_spans_are_those_of_the_text() -> None:
    texts = join_pieces([Piece(text=TEXT, key="a", source="a", start=0)])
    hits = search(Propositions(FakeModel(), shared_words), "who signed the treaty", texts, Selection(top_k=1))
    assert [hit.text for hit in hits] == [SENTENCES[1]]
    assert (hits[0].place.piece_start, hits[0].place.piece_end) == span(TEXT, SENTENCES[1])


def letters(texts: list[str]) -> NDArray[np.float32]:
    return np.array(
        [[text.lower().count(letter) for letter in "abdegilnorstuy"] for text in texts], np.float32
    )


def test_a_baseline_as_scorer_keeps_its_vectors_and_its_logits() -> None:
    asked: list[int] = []

    def embed(texts: list[str]) -> NDArray[np.float32]:
        asked.append(len(texts))
        return letters(texts)

    dense = Dense(embed)
    baseline = Propositions(FakeModel(), dense)
    units = baseline.segment(TEXT)
    raw = baseline.raw_scores("treaty", TEXT, units)
    expected = dense.score_texts("treaty", STATEMENTS)
    # the last statement is tied to the whole passage
    np.testing.assert_allclose(raw[:3], [max(expected[[0, 3]]), max(expected[1:]), expected[3]], atol=1e-6)
    np.testing.assert_array_equal(baseline.logits(raw), dense.logits(raw))
    asked.clear()
    baseline.raw_scores("lighthouse", TEXT, units)
    assert asked == [1], "the query alone"


def test_bm25_as_scorer() -> None:
    baseline = Propositions(FakeModel(), BM25())
    logits = baseline.score_units("treaty signed", TEXT, baseline.segment(TEXT))
    assert np.isfinite(logits).all()
    assert int(np.argmax(logits)) == 1


class BothWays:
    """Pickled and back."""

    def __call__(self, prompt: str) -> str:
        return json.dumps(STATEMENTS)


def test_the_prompt_holds_headings_and_survives_braces_and_surrogates() -> None:
    model = FakeModel()
    text = "A {title} \ud800 {0}."
    seen: list[tuple[str, int]] = []

    def headings(text: str, place: int) -> tuple[str, str]:
        seen.append((text, place))
        return "The Title", "The Section"

    Propositions(model, shared_words, headings=headings).propositions("  " + text)
    assert seen == [("  " + text, 2)]
    assert "Title: The Title\nSection: The Section\n" in model.prompts[0]
    assert passage_in(model.prompts[0]) == "A {title} \ufffd {0}."


def test_the_titles_of_documents_are_headings(tmp_path: Path) -> None:
    model = FakeModel()
    baseline = Propositions(model, shared_words, headings={TEXT: "Keepers"})
    baseline.propositions(TEXT)
    baseline.propositions("Another text.")
    assert "Title: Keepers\nSection: \n" in model.prompts[0]
    assert "Title: \nSection: \n" in model.prompts[1]
    assert pickle.loads(pickle.dumps(Propositions(BothWays(), shared_words, headings={TEXT: "a"}))).headings


def test_a_passage_is_decomposed_once(tmp_path: Path) -> None:
    model = FakeModel()
    baseline = Propositions(model, shared_words)
    texts = [f"{TEXT} Number {number}." for number in range(5)]
    for text in [*texts, *texts]:
        assert len(baseline.propositions(text)) == 4
    assert len(model.prompts) == 5
    assert baseline.passages_decomposed == 5


def test_long_texts_are_decomposed_in_passages_of_whole_sentences() -> None:
    text = "\n\n".join(f"The harbour number {number} was widened in a year." for number in range(40))
    model = FakeModel(lambda prompt: json.dumps(passage_in(prompt).splitlines()[::2]))
    found = Propositions(model, shared_words).propositions(text)
    assert len(model.prompts) == 4
    assert [text[entry.start : entry.end] for entry in found] == text.split("\n\n")
    for entry in found:
        assert entry.passage_start <= entry.start < entry.end <= entry.passage_end


def test_the_file_keeps_decompositions(tmp_path: Path) -> None:
    file = tmp_path / "known.jsonl"
    text = TEXT + " \ud800"
    first = FakeModel()
    before = Propositions(first, shared_words, cache_file=file).propositions(text)
    second = FakeModel()
    again = Propositions(second, shared_words, cache_file=file)
    assert again.propositions(text) == before
    assert (len(first.prompts), len(second.prompts)) == (1, 0)
    other = BothWays()  # of another name
    another = Propositions(other, shared_words, cache_file=file)
    another.propositions(text)
    assert another.passages_decomposed == 1, "what another model said is not its own"
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [record["decomposer"] for record in records] == ["FakeModel", "BothWays"]
    assert records[0]["propositions"] == STATEMENTS
    assert records[0]["content"] == text


def test_a_file_that_was_cut_off_is_read_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "known.jsonl"
    Propositions(FakeModel(), shared_words, cache_file=file).propositions(TEXT)
    good = file.read_text(encoding="utf-8")
    file.write_text('{"decomposer": 3}\n[1]\n' + good + good[:30], encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        baseline = Propositions(FakeModel(), shared_words, cache_file=file)
    assert "left out 2 lines" in caplog.text
    assert "the first being line 1" in caplog.text
    baseline.propositions(TEXT)
    assert baseline.passages_decomposed == 0
    baseline.propositions("Another text.")
    last = file.read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["content"] == "Another text."


def test_broken_replies_are_counted_and_logged_and_tried_again_by_the_next_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "known.jsonl"
    text = "\n\n".join(
        f"{word} was here. " + "It rained and it rained. " * 19 for word in ("Cut", "No", "Ok")
    )

    def reply(prompt: str) -> str:
        passage = passage_in(prompt)
        if passage.startswith("Cut"):
            return '["Cut was here.", "It rai'
        return "Sorry." if passage.startswith("No") else '["Ok was here."]'

    baseline = Propositions(FakeModel(reply), shared_words, cache_file=file)
    with caplog.at_level(logging.WARNING):
        found = baseline.propositions(text)
    assert [entry.text for entry in found] == ["Cut was here.", "Ok was here."]
    assert (baseline.passages_decomposed, baseline.replies_broken, baseline.replies_lost) == (3, 2, 1)
    assert len(caplog.messages) == 1
    assert "2 of 3 replies were not a JSON list of strings; 1 of these gave no proposition" in caplog.text
    baseline.propositions(text)
    assert baseline.passages_decomposed == 3
    again = FakeModel(reply)
    Propositions(again, shared_words, cache_file=file).propositions(text)
    assert [passage_in(prompt)[:2] for prompt in again.prompts] == ["No"]


def test_cancelled_between_passages() -> None:
    text = "\n\n".join(f"{number} was here. " + "It rained and it rained. " * 19 for number in range(3))
    model = FakeModel()
    baseline = Propositions(model, shared_words)
    with pytest.raises(ScanCancelled):
        list(score_batch(baseline, [("q", text, baseline.segment(text))], lambda: len(model.prompts) == 2))
    assert len(model.prompts) == 2
    baseline.propositions(text)
    assert len(model.prompts) == 3, "what was done is kept"


def test_pickled() -> None:
    baseline = pickle.loads(pickle.dumps(Propositions(BothWays(), Dense(letters), headings=None)))
    units = baseline.segment(TEXT)
    assert baseline.score_units("eel", TEXT, units).shape == (4,)
    assert baseline.passages_decomposed == 1


def test_bad_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: Sequence[tuple[type[Exception], str, dict[str, Any]]] = [
        (TypeError, "decomposer is int; expected the name", {"decomposer": 3}),
        (TypeError, "scorer is str; expected a baseline", {"scorer": "dense"}),
        (ValueError, "no such folder", {"decomposer": "./nowhere"}),
        (ValueError, "batch_size is 0", {"batch_size": 0}),
        (TypeError, "unexpected keyword argument 'tokne'", {"tokne": "hf_secret"}),
        (ValueError, "cache_file is", {"cache_file": tmp_path / "none" / "file"}),
        (ValueError, "cache_file is", {"cache_file": tmp_path}),
        (ValueError, "device is 'tpu'", {"decomposer": tmp_path, "device": "tpu"}),
    ]
    for error, message, arguments in cases:
        with pytest.raises(error, match=message):
            Propositions(**({"decomposer": FakeModel(), "scorer": shared_words} | arguments))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "spscanner-rag\[baselines\]"'):
        Propositions(tmp_path, shared_words)


def test_bad_replies_and_scores() -> None:
    with pytest.raises(TypeError, match="returned NoneType; expected text"):
        Propositions(lambda _: None, shared_words).propositions(TEXT)
    units = Propositions(FakeModel(), shared_words).segment(TEXT)
    for scores in (np.zeros(3), np.full(4, np.nan), np.zeros((4, 1))):
        baseline = Propositions(FakeModel(), lambda _, __, scores=scores: scores)
        with pytest.raises(ValueError, match="for 4 propositions; expected one finite number for each"):
            baseline.score_units("q", TEXT, units)
    with pytest.raises(ValueError, match="query: got"):
        Propositions(FakeModel(), shared_words).score_units(" ", TEXT, units)
