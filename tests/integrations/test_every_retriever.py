"""Every retriever with a name: in both frameworks, and in an evaluation."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_lab.commands.evaluation_options import first_stages_of
from spscanner_lab.in_context.model import BlockSearchModel
from spscanner_rag.apps.cli import main
from spscanner_rag.baselines.names import scorer_of, usages
from spscanner_rag.baselines.register import LoadOptions
from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scorers import Scorer
from tests.apps.serving.conftest import address  # noqa: F401
from tests.baselines.conftest import t5  # noqa: F401
from tests.integrations.hosts import ALL, Doc
from tests.lab.in_context.conftest import (  # noqa: F401
    digit_tokenizer,
    model,
)

TEXT = (
    "The keeper wrote the date in his book.  He signed the treaty,\nand the captain"
    " left. It rained the whole night.\n\nThe bell rang twice! Was the well dry? Nobody"
    " signed the second treaty."
)
QUERY = "Who signed the treaty?"
NAMES = {
    "scanner": "scanner:{scanner}",
    "bm25": "bm25",
    "dense": "dense:{bert}",
    "latechunking": "latechunking:{bert}",
    "crossencoder": "crossencoder:{classifier}",
    "lateinteraction": "lateinteraction:{bert}",
    "mamba": "mamba:{mamba}",
    "propositions": "propositions:{t5}",
    "remote": "remote:{address}",
    "blocksearch": "blocksearch:{blocksearch}",
    "generative": "generative:scripted",
    "listwise": "listwise:scripted",
    "pairwise": "pairwise:scripted",
    "trimwise": "trimwise",
    "rprs": "rprs:{bert}",
    "setwise": "setwise:scripted",
    "hybrid": "hybrid:scanner:{scanner}+bm25",
    "cascade": "cascade:bm25>scanner:{scanner}@2",
}
"""One name of every kind, with placeholders for tiny models."""

EVERY = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
            marks=[pytest.mark.allow_hosts(["127.0.0.1"])] if kind == "remote" else [],
        )
        for kind in NAMES
    ],
)


@pytest.fixture(scope="module")
def places(
    tiny_tokenizer: Tokenizer,
    tiny_checkpoint: Path,
    save_bert: Callable[[Path, int | None], Path],
    model: BlockSearchModel,  # noqa: F811
    t5: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, object]:
    """The folders of the models."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    config = Mamba2Config(
        d_model=16,
        n_layer=1,
        vocab_size=tiny_tokenizer.get_vocab_size(),
        d_state=8,
        headdim=8,
    )
    save_checkpoint(
        folder / "mamba", ScannerModel(config), ScannerSettings(), tiny_tokenizer
    )
    model.save(folder / "blocksearch")
    return {
        "scanner": tiny_checkpoint,
        "bert": save_bert(folder / "bert", None),
        "classifier": save_bert(folder / "classifier", 1),
        "mamba": folder / "mamba",
        "blocksearch": folder / "blocksearch",
        "t5": t5,
    }


@pytest.fixture
def name(
    kind: str,
    places: dict[str, object],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """The name of a retriever of this kind that loads."""
    if kind == "trimwise":
        pytest.importorskip("trimwise")
    # what ranks propositions
    monkeypatch.setattr(
        "spscanner_rag.baselines.embedding_models.packaged_minilm",
        lambda: str(places["bert"]),
    )
    served = {"address": request.getfixturevalue("address")} if kind == "remote" else {}
    return NAMES[kind].format(**places, **served)


@pytest.fixture
def scorer(name: str) -> Scorer:
    return scorer_of(name, LoadOptions(device="cpu"))


def test_every_kind_is_here() -> None:
    missing = sorted(usages().keys() - NAMES.keys())
    assert not missing, f"add a name of {missing} to NAMES in {__file__}"
    left = sorted(NAMES.keys() - usages().keys())
    assert not left, f"take {left} out of NAMES in {__file__}: no such retriever"


@EVERY
def test_all_four_classes(kind: str, scorer: Scorer) -> None:
    whole = {"a": TEXT, "b": "Another text. It rained."}
    for host in ALL:
        found = host.ask(
            [Doc(text, name) for name, text in whole.items()], QUERY, scorer=scorer, k=3
        )
        assert len(found) == 3
        assert all(
            whole[each.id.split(":")[0]][slice(*each.span)] == each.text
            for each in found
        )
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert 0 <= scores[-1] <= scores[0] <= 1


@EVERY
def test_compare(
    kind: str,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = tmp_path / "document.txt"
    document.write_text(TEXT, encoding="utf-8")
    options = [
        "-q",
        QUERY,
        "--retrievers",
        name,
        "--top-k",
        "2",
        "--format",
        "json",
        "--device",
        "cpu",
    ]
    assert main(["compare", str(document), *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)["documents"]
    (retrieval,) = found["retrievers"]
    assert retrieval["name"] == name
    assert len(retrieval["picks"]) == 2
    assert all(
        TEXT[pick["start"] : pick["end"]] == pick["text"] for pick in retrieval["picks"]
    )


def evaluated(name: str, folder: Path, *options: str) -> int:
    """The exit code of an evaluation on two documents with a question each."""
    lines = []
    told = {
        TEXT: (QUERY, "He signed"),
        "The heron flies. The captain slept.": ("Who slept?", "captain"),
    }
    for number, (text, (asked, words)) in enumerate(told.items()):
        evidence = [[text.index(words), text.index(words) + len(words)]]
        question = {"qid": f"q{number}", "question": asked, "evidence": evidence}
        document = {
            "doc_id": f"d{number}",
            "source": "s",
            "split": "dev",
            "text": text,
            "questions": [question],
        }
        lines.append(json.dumps(document))
    data = folder / "data.jsonl"
    data.write_text("\n".join(lines), encoding="utf-8")
    given = [
        "--retrievers",
        name,
        "--device",
        "cpu",
        "--out",
        str(folder / "out"),
        *options,
    ]
    return main(["eval", str(data), *given])


@EVERY
def test_eval_and_again(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluated(name, tmp_path) == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    recall = {
        row["k"]: row["value"]
        for row in rows
        if (row["metric"], row["source"]) == ("recall", "s")
    }
    assert recall[10] == 1  # of six sentences
    assert {row["retriever"] for row in rows} == {name}
    capsys.readouterr()
    assert evaluated(name, tmp_path) == 0, "what identifies the retriever is the same"
    assert "found 2 records of an earlier run" in capsys.readouterr().err


@EVERY
def test_a_corpus(kind: str, name: str, tmp_path: Path) -> None:
    assert evaluated(name, tmp_path, "--corpus") == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    indexed = kind in ("bm25", "dense", "blocksearch", "cascade")
    assert {row["retriever"] for row in rows} == {
        name if indexed else f"{name}, 10 documents by bm25"
    }


@EVERY
def test_calibration_of(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probable = kind in ("scanner", "remote")
    assert evaluated(name, tmp_path, "--calibration") == (0 if probable else 2)
    if not probable:
        assert "calibration" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", NAMES)
def test_only_what_ranks_chunks_chooses_documents(kind: str) -> None:
    name = NAMES[kind]
    if kind in ("scanner", "remote"):
        with pytest.raises(ValueError, match="expected a retriever that ranks chunks"):
            first_stages_of(name)
    else:
        assert first_stages_of(name) == [name]


@EVERY
def test_what_keeps_texts_says_so(kind: str, scorer: Scorer) -> None:
    keeps = (
        "scanner",
        "bm25",
        "dense",
        "latechunking",
        "propositions",
        "blocksearch",
        "rprs",
        "hybrid",
        "cascade",
    )
    assert scorer.keeps_texts == (kind in keeps)
