"""Every baseline: units, finite logits, refusals, batches, pickles, cancellation."""

import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.baselines import (
    BM25,
    Baseline,
    Cascade,
    CrossEncoder,
    Dense,
    Hybrid,
    LateInteraction,
    MambaReranker,
    Propositions,
    Trimwise,
)
from spscanner_rag.retrieval import Piece, join_pieces
from spscanner_rag.scorers import ScanCancelled, Scorer, score_batch
from tests.baselines.conftest import Says, SharedWords, letters, propositions_by
from tests.fakes import logits_of
from tests.retrieval.searching import best_first, search

QUERY = "Who signed the treaty?"
TEXTS = [
    (
        "The keeper wrote the date. He signed the treaty and the captain left. It"
        " rained. The bell rang!"
    ),
    "The well was dry. He \ud800 left. [SEP] <script>.",
]
KINDS: dict[str, Callable[[dict[str, Path]], Baseline]] = {
    "bm25": lambda _: BM25(),
    "chunks": lambda _: BM25("chunk"),
    "dense": lambda folders: Dense(str(folders["bert"]), device="cpu"),
    "crossencoder": lambda folders: CrossEncoder(
        folders["cross-encoder"], device="cpu"
    ),
    "lateinteraction": lambda folders: LateInteraction(folders["bert"], device="cpu"),
    "mamba": lambda folders: MambaReranker(
        folders["mamba"], device="cpu", dtype="float32"
    ),
    "propositions": lambda _: propositions_by(Says(["He signed it.", "It rained."])),
    "trimwise": lambda _: trimwise(),
    "hybrid": lambda _: Hybrid([BM25(), Dense(letters)]),
    "cascade": lambda _: Cascade(BM25(), Dense(letters), best=2),
}


def trimwise() -> Baseline:
    pytest.importorskip("trimwise")
    return Trimwise()


@pytest.fixture(scope="module")
def folders(
    bert_folder: Path, cross_encoder_folder: Path, mamba_folder: Path, t5: Path
) -> dict[str, Path]:
    pytest.importorskip("sentence_transformers")
    return {
        "bert": bert_folder,
        "cross-encoder": cross_encoder_folder,
        "mamba": mamba_folder,
        "t5": t5,
    }


@pytest.fixture(scope="module", params=KINDS)
def baseline(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Baseline:
    return KINDS[request.param](folders)


def test_loading_is_silent(
    folders: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    for kind, make in KINDS.items():
        assert make(folders).name.startswith(kind) or kind == "chunks"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("module", ["bm25s", "sentence_transformers", "transformers"])
def test_missing_extras(
    module: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    makers: dict[str, list[Callable[[], Baseline]]] = {
        "bm25s": [BM25],
        "sentence_transformers": [
            Dense,
            lambda: CrossEncoder(folders["cross-encoder"]),
            lambda: LateInteraction(folders["bert"]),
        ],
        "transformers": [lambda: Propositions(folders["bert"], BM25())],
    }
    monkeypatch.setitem(sys.modules, module, None)
    for make in makers[module]:
        with pytest.raises(ImportError, match=r'pip install "\.\[baselines\]"'):
            make()


LOADING: dict[str, Callable[..., Baseline]] = {
    "cross-encoder": CrossEncoder,
    "mamba": MambaReranker,
    "t5": partial(Propositions, scorer=SharedWords()),
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"model": "./nowhere"}, "no such folder"),
        ({"unit": "word"}, "unit is 'word'"),
    ],
)
@pytest.mark.parametrize("kind", LOADING)
def test_bad_arguments(
    kind: str, arguments: dict[str, Any], message: str, folders: dict[str, Path]
) -> None:
    options = {"device": "cpu", **arguments}
    with pytest.raises(ValueError, match=message):
        LOADING[kind](options.pop("model", folders[kind]), **options).units_of(
            "One. Two."
        )


def test_it_scores_each_unit_and_refuses_an_empty_query(baseline: Baseline) -> None:
    assert isinstance(baseline, Scorer)
    for text in TEXTS:
        units = baseline.units_of(text)
        logits = baseline.score_units(QUERY, text, units)
        assert (logits.shape, logits.dtype) == ((len(units),), np.float32)
        assert np.isfinite(logits).all()
        np.testing.assert_allclose(
            baseline.logits(baseline.raw_scores(QUERY, text, units)), logits, atol=1e-4
        )
        with pytest.raises(ValueError, match="query: got"):
            baseline.score_units(" ", text, units)
        with pytest.raises(ValueError, match="query: got"):
            baseline.score_units_many([(QUERY, text, units), ("", text, units)])
    assert baseline.score_units(QUERY, "", []).shape == (0,)


def test_several_texts_at_once_score_as_each_alone_and_as_its_pickle(
    baseline: Baseline,
) -> None:
    requests = [(QUERY, text, baseline.units_of(text)) for text in ("", *TEXTS)]
    requests.append(("who left", *requests[-1][1:]))
    again: Baseline = pickle.loads(pickle.dumps(baseline))
    assert again.name == baseline.name
    scores = score_batch(baseline, requests)
    for request, logits in zip(requests, logits_of(scores), strict=True):
        np.testing.assert_allclose(logits, baseline.score_units(*request), atol=1e-4)
        np.testing.assert_allclose(logits, again.score_units(*request), atol=1e-4)


def test_cancelled(baseline: Baseline) -> None:
    request = (QUERY, TEXTS[0], baseline.units_of(TEXTS[0]))
    with pytest.raises(ScanCancelled):
        score_batch(baseline, [request], lambda: True)


def test_in_a_search_the_spans_are_those_of_the_text(baseline: Baseline) -> None:
    pieces = [
        Piece(text=text, key=name, source=name, start=0)
        for name, text in zip("ab", TEXTS, strict=True)
    ]
    texts = join_pieces(pieces)
    hits = search(
        baseline, QUERY, texts, best_first(top_k=3, max_tokens=500, count_tokens=len)
    )
    assert hits
    assert [hit.logit for hit in hits] == sorted(
        (hit.logit for hit in hits), reverse=True
    )
    for hit in hits:
        assert (
            texts[hit.text_number].text[hit.place.piece_start : hit.place.piece_end]
            == hit.text
        )
