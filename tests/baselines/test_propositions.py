import json
import logging
import pickle
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.baselines.decomposers import SEQ2SEQ_INPUT, Seq2Seq, Source, read_reply
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.propositions import (
    NO_PROPOSITION_LOGIT,
    Proposition,
    Propositions,
    passages_of,
    terms,
    tie,
)
from spscanner_rag.lab.answers.answering import retrieved_context
from spscanner_rag.scorers import ScanCancelled, score_batch
from spscanner_rag.text.units import Unit
from tests.baselines.conftest import Says, letters, shared_words

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


def span(text: str, part: str) -> tuple[int, int]:
    return text.index(part), text.index(part) + len(part)


def test_propositions_are_tied_to_their_sentences() -> None:
    found = Propositions(Says(STATEMENTS), shared_words).propositions(TEXT)
    whole = (0, len(TEXT))
    assert found == (
        Proposition(STATEMENTS[0], *span(TEXT, SENTENCES[0]), *whole),
        Proposition(STATEMENTS[1], *span(TEXT, SENTENCES[1]), *whole),
        Proposition(STATEMENTS[2], *span(TEXT, SENTENCES[1]), *whole),
        Proposition(STATEMENTS[3], *whole, *whole),  # shares no word with any sentence
    )


def test_a_unit_scores_as_the_best_proposition_tied_to_it() -> None:
    baseline = Propositions(Says(lambda _: json.dumps(STATEMENTS[:3])), shared_words)
    units = baseline.segment(TEXT)
    raw = baseline.raw_scores("Who signed the treaty in 1911?", TEXT, units)
    # shared words, less 2: "the" | signed the treaty; the treaty signed in 1911 | none | none
    assert raw[:2].tolist() == [-1.0, 3.0]
    assert raw[2] == raw[3] == np.nextafter(np.float32(-1), np.float32(-2))
    np.testing.assert_array_equal(baseline.score_units("Who signed the treaty in 1911?", TEXT, units), raw)


def test_propositions_as_the_context() -> None:
    query = "Who signed the treaty in 1911?"
    units, own = (
        Propositions(Says(STATEMENTS), shared_words, as_context=kind)  # type: ignore[arg-type]
        for kind in ("unit", "proposition")
    )
    assert [p.text for p in own.best_propositions(query, TEXT)] == [STATEMENTS[i] for i in (2, 1, 0, 3)]
    assert own.result(query, TEXT).context(top_k=2) == f"{STATEMENTS[1]}\n{STATEMENTS[2]}"
    assert units.result(query, TEXT).context(top_k=1) == SENTENCES[1]
    assert retrieved_context(own, query, TEXT, top_k=None, max_tokens=10) == STATEMENTS[2]
    assert retrieved_context(units, query, TEXT, top_k=1) == SENTENCES[1]
    assert own.result(query, "").sentences == () == units.result(query, "").sentences
    with pytest.raises(ValueError, match="as_context is 'x'"):
        Propositions(Says(STATEMENTS), shared_words, as_context="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(("unit", "count"), [("chunk", 1), ("document", 1), ("passage", 1)])
def test_larger_units_take_the_propositions_of_their_sentences(unit: Any, count: int) -> None:
    baseline = Propositions(Says(STATEMENTS), shared_words, unit=unit)
    units = baseline.segment(TEXT)
    assert len(units) == count
    assert baseline.raw_scores("signed the treaty in 1911", TEXT, units).tolist() == [3.0]


def test_a_proposition_without_a_sentence_counts_for_its_whole_passage() -> None:
    baseline = Propositions(Says(lambda _: '["Nobody knows."]'), shared_words)
    assert baseline.raw_scores("nobody knows", TEXT, baseline.segment(TEXT)).tolist() == [0.0] * 4


def test_units_that_only_touch_a_sentence_take_nothing_from_it() -> None:
    statement, (start, end) = STATEMENTS[2], span(TEXT, SENTENCES[1])
    edges = [(0, start), (start, start + 3), (start + 3, end), (end, len(TEXT))]
    units = [Unit(first, stop, TEXT[first:stop]) for first, stop in edges]
    baseline = Propositions(Says(lambda _: json.dumps([statement])), lambda _, __: np.zeros(1))
    assert (baseline.raw_scores("q", TEXT, units) == 0).tolist() == [False, True, True, False]


def test_a_text_without_propositions_comes_last() -> None:
    baseline = Propositions(Says(lambda p: "[]" if "Rain" in p else '["Eel."]'), shared_words)
    texts = ["An eel. Eels!", "Rain fell. It fell.", ""]
    requests = [("eel", text, baseline.segment(text)) for text in texts]
    logits = list(score_batch(baseline, requests, lambda: False))
    assert logits[0].tolist()[0] == -1.0
    assert logits[1].tolist() == [NO_PROPOSITION_LOGIT] * 2
    assert logits[2].tolist() == []
    assert baseline.score_units("eel", texts[1], requests[1][2]).tolist() == [NO_PROPOSITION_LOGIT] * 2
    assert (baseline.passages_decomposed, baseline.replies_broken) == (2, 0)


def test_a_baseline_as_scorer_keeps_its_vectors_and_its_logits() -> None:
    asked: list[int] = []

    def embed(texts: list[str]) -> NDArray[np.float32]:
        asked.append(len(texts))
        return letters(texts)

    dense = Dense(embed)
    baseline = Propositions(Says(STATEMENTS), dense)
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
    baseline = Propositions(Says(STATEMENTS), BM25())
    logits = baseline.score_units("treaty signed", TEXT, baseline.segment(TEXT))
    assert np.isfinite(logits).all()
    assert int(np.argmax(logits)) == 1


class BothWays:
    """Pickled and back."""

    def __call__(self, prompt: str) -> str:
        return json.dumps(STATEMENTS)


def test_the_prompt_holds_headings_and_survives_braces_and_surrogates() -> None:
    model = Says(STATEMENTS)
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
    model = Says(STATEMENTS)
    baseline = Propositions(model, shared_words, headings={TEXT: "Keepers"})
    baseline.propositions(TEXT)
    baseline.propositions("Another text.")
    assert "Title: Keepers\nSection: \n" in model.prompts[0]
    assert "Title: \nSection: \n" in model.prompts[1]
    assert pickle.loads(pickle.dumps(Propositions(BothWays(), shared_words, headings={TEXT: "a"}))).headings


def test_a_passage_is_decomposed_once(tmp_path: Path) -> None:
    model = Says(STATEMENTS)
    baseline = Propositions(model, shared_words)
    texts = [f"{TEXT} Number {number}." for number in range(5)]
    for text in [*texts, *texts]:
        assert len(baseline.propositions(text)) == 4
    assert len(model.prompts) == 5
    assert baseline.passages_decomposed == 5


def test_the_file_keeps_decompositions(tmp_path: Path) -> None:
    file = tmp_path / "known.jsonl"
    text = TEXT + " \ud800"
    first = Says(STATEMENTS)
    before = Propositions(first, shared_words, cache_file=file).propositions(text)
    second = Says(STATEMENTS)
    again = Propositions(second, shared_words, cache_file=file)
    assert again.propositions(text) == before
    assert (len(first.prompts), len(second.prompts)) == (1, 0)
    other = BothWays()  # of another name
    another = Propositions(other, shared_words, cache_file=file)
    another.propositions(text)
    assert another.passages_decomposed == 1, "what another model said is not its own"
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [record["decomposer"] for record in records] == ["Says", "BothWays"]
    assert records[0]["propositions"] == STATEMENTS
    assert records[0]["content"] == text


def test_a_file_that_was_cut_off_is_read_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "known.jsonl"
    Propositions(Says(STATEMENTS), shared_words, cache_file=file).propositions(TEXT)
    good = file.read_text(encoding="utf-8")
    file.write_text('{"decomposer": 3}\n[1]\n' + good + good[:30], encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        baseline = Propositions(Says(STATEMENTS), shared_words, cache_file=file)
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

    baseline = Propositions(Says(reply), shared_words, cache_file=file)
    with caplog.at_level(logging.WARNING):
        found = baseline.propositions(text)
    assert [entry.text for entry in found] == ["Cut was here.", "Ok was here."]
    assert (baseline.passages_decomposed, baseline.replies_broken, baseline.replies_lost) == (3, 2, 1)
    assert len(caplog.messages) == 1
    assert "2 of 3 replies were not a JSON list of strings; 1 of these gave no proposition" in caplog.text
    baseline.propositions(text)
    assert baseline.passages_decomposed == 3
    again = Says(reply)
    Propositions(again, shared_words, cache_file=file).propositions(text)
    assert [passage_in(prompt)[:2] for prompt in again.prompts] == ["No"]


def test_cancelled_between_passages() -> None:
    text = "\n\n".join(f"{number} was here. " + "It rained and it rained. " * 19 for number in range(3))
    model = Says(STATEMENTS)
    baseline = Propositions(model, shared_words)
    with pytest.raises(ScanCancelled):
        list(score_batch(baseline, [("q", text, baseline.segment(text))], lambda: len(model.prompts) == 2))
    assert len(model.prompts) == 2
    baseline.propositions(text)
    assert len(model.prompts) == 3, "what was done is kept"


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
            Propositions(**({"decomposer": Says(STATEMENTS), "scorer": shared_words} | arguments))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "spscanner-rag\[baselines\]"'):
        Propositions(tmp_path, shared_words)


def test_bad_replies_and_scores() -> None:
    with pytest.raises(TypeError, match="returned NoneType; expected text"):
        Propositions(lambda _: None, shared_words).propositions(TEXT)
    units = Propositions(Says(STATEMENTS), shared_words).segment(TEXT)
    for scores in (np.zeros(3), np.full(4, np.nan), np.zeros((4, 1))):
        baseline = Propositions(Says(STATEMENTS), lambda _, __, scores=scores: scores)
        with pytest.raises(ValueError, match="for 4 propositions; expected one finite number for each"):
            baseline.score_units("q", TEXT, units)


# Replies, and checkpoints that make them


def test_a_model_without_a_name_has_that_of_its_class() -> None:
    assert Propositions(Says(STATEMENTS), shared_words).name == "propositions:Says"
    assert Propositions(shared_words, shared_words).name == "propositions:shared_words"
    assert Propositions(lambda _: "[]", shared_words).name == "propositions:<lambda>"


@pytest.mark.parametrize(
    ("reply", "propositions", "is_list"),
    [
        ('["a b", "c"]', ["a b", "c"], True),
        ("[]", [], True),
        ('Here they are:\n```json\n["a",\n "b"]\n```\nDone.', ["a", "b"], True),
        ('{"propositions": ["a", "b"]}', ["a", "b"], True),
        ('["a", "a", " b\n c ", ""]', ["a", "b c"], True),
        ('["a", "b \\"quoted\\"", "cut o', ["a", 'b "quoted"'], False),
        ('["a", "b",]', ["a", "b"], False),
        ('["a" "b"]', ["a", "b"], False),
        ('["a", 3, null, "b"]', ["a", "b"], False),
        (r'["a \_ b", "\u00e9"', [r"a \_ b", "é"], False),
        ("Facts:\n- one is\n 2) two is\n* three", ["one is", "two is", "three"], False),
        ("I cannot do that.", [], False),
        ("", [], False),
        ("[" * 100_000, [], False),
        ('["...", "-"]', [], True),
    ],
)
def test_replies(reply: str, propositions: list[str], is_list: bool) -> None:
    assert read_reply(reply) == (tuple(propositions), is_list)


@settings(max_examples=50)
@given(st.lists(st.text(min_size=1)), st.integers(0, 400))
def test_whatever_is_cut_off_keeps_the_complete_strings(statements: list[str], cut: int) -> None:
    known, is_list = read_reply(json.dumps(statements))
    assert is_list
    part, _ = read_reply(json.dumps(statements)[:cut])
    assert list(part) == list(known)[: len(part)]


def test_a_checkpoint_gives_what_transformers_generates(t5: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sources = [
        Source("", "", SENTENCES[0]),
        Source("Keepers", "Anna", TEXT * 2),
        Source("", "", "It rained. \ud800"),
    ]
    replies = list(Seq2Seq(t5, device="cpu", batch_size=2, max_new_tokens=12)(sources))
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(t5).eval()
    assert "Title: Keepers. Section: Anna. Content: Anna" in SEQ2SEQ_INPUT.format(**sources[1]._asdict())
    for source, reply in zip(sources, replies, strict=True):
        read = SEQ2SEQ_INPUT.format(**source._asdict()).replace("\ud800", "\ufffd")
        ids = tokenizer(read, return_tensors="pt").input_ids
        with torch.no_grad():
            output = model.generate(ids, max_new_tokens=12)
        assert reply == tokenizer.decode(output[0], skip_special_tokens=True)
    assert len(set(replies)) > 1


def test_a_checkpoint_as_decomposer(
    t5: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    baseline = Propositions(t5, shared_words, device="cpu", batch_size=2)
    assert capfd.readouterr() == ("", "")
    assert baseline.name == f"propositions:{t5}"
    baseline._replies.max_new_tokens = 4  # type: ignore[attr-defined]
    units = baseline.segment(TEXT)
    assert np.isfinite(baseline.score_units("who", TEXT, units)).all()
    assert baseline.passages_decomposed == 1
    assert baseline.replies_broken == 1, "random weights write no JSON"
    decode = baseline._replies._tokenizer.batch_decode  # type: ignore[attr-defined]
    other = Propositions(t5, shared_words, device="cpu")
    other._replies.max_new_tokens = 4  # type: ignore[attr-defined]
    monkeypatch.setattr(
        other._replies._tokenizer,  # type: ignore[attr-defined]
        "batch_decode",
        lambda outputs, **options: [json.dumps(STATEMENTS[:3]) for _ in decode(outputs, **options)],
    )
    assert int(np.argmax(other.score_units("who signed the treaty", TEXT, units))) == 1


# Passages, and the sentence of a proposition


def test_passages_are_whole_sentences() -> None:
    text = "\n\n".join(f"The harbour number {number} was widened in a year." for number in range(40))
    assert [len(passage) for passage in passages_of(text)] == [11, 11, 11, 7]  # 9 words each
    huge = "word " * 500 + "end."
    assert [unit.start for unit in next(passages_of("One. " + huge))] == [0]


def test_the_rule_of_ties() -> None:
    def tied(statement: str, *sentences: str) -> int | None:
        """The place of the sentence, each taken to start at its number."""
        span = tie(statement, [(terms(text), place, -1) for place, text in enumerate(sentences)])
        return None if span is None else span[0]

    assert tied("the ship LEFT", "The harbour.", "The ship left.", "The ship.") == 1
    assert tied("Anna Brook signed it", "Anna Brook came.", "She signed it.") == 1, "the last of two"
    assert tied("Anna Brook came", "Anna Brook came.", "She signed it.") == 0
    assert tied("red ship", "A red ship.", "A ship, red.") == 0, "pairs of words count"
    assert tied("the the the", "the", "the cat and the dog") == 1, "a word counts once"
    assert tied("nothing shared", "The ship left.") is None
    assert tied("東京に住む", "東京の人", "大阪に") == 0
    assert tied("nothing") is None
