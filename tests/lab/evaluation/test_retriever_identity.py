"""What identifies a retriever."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.baselines.combined import Hybrid
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.remote_scanner import RemoteScanner
from spscanner_rag.lab.evaluation.retriever_identity import identity_of
from spscanner_rag.scanner import Scanner


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def dense(**options: Any) -> Dense:
    return Dense(lambda texts: [[1.0]] * len(texts), **options)


def test_parameters_of_bm25() -> None:
    identity = identity_of("bm25", BM25())
    assert identity == json.loads(json.dumps(identity))
    assert (identity["parameters"]["k1"], identity["parameters"]["b"]) == (0.9, 0.4)
    assert identity == identity_of("bm25", BM25(keep_texts=9))
    assert identity != identity_of("bm25", BM25(k1=1.2))
    assert identity != identity_of("bm25", BM25(language="german"))


def test_a_scanner(tiny_checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_checkpoint, tmp_path / "one"))
    scanner = Scanner.from_pretrained(folder)
    (folder / "training_state.pt").write_bytes(b"of no effect")
    identity = identity_of(f"scanner:{folder}", scanner)
    files = ("config.json", "model.safetensors", "tokenizer.json")
    assert identity["files"] == {f"one/{file}": digest(folder / file) for file in files}
    assert identity["parameters"] == {"window_tokens": None, "segmenter": "SentenceSegmenter"}
    assert identity != identity_of(f"scanner:{folder}", Scanner.from_pretrained(folder, window_tokens=512))
    (folder / "word_vectors.safetensors").write_bytes(b"vectors")
    assert "one/word_vectors.safetensors" in identity_of(f"scanner:{folder}", scanner)["files"]


def test_an_embedding_model_with_the_folders_of_its_modules(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    modules = [{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}]
    for name, content in {
        "modules.json": json.dumps(modules),
        "model.safetensors": "weights",
        "vocab.txt": "words",
        "1_Pooling/config.json": "{}",
        "README.md": "of no effect",
        "results/records.json": "not of the model",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    identity = identity_of(f"dense:{folder}", dense())
    names = ("modules.json", "model.safetensors", "vocab.txt", "1_Pooling/config.json")
    assert identity["files"] == {f"model/{name}": digest(folder / name) for name in names}
    assert identity["parameters"]["similarity"] == "cosine"
    assert identity != identity_of(f"dense:{folder}", dense(similarity="dot"))
    for kind in ("crossencoder", "propositions", "blocksearch"):
        assert identity_of(f"{kind}:{folder}", dense())["files"].items() >= identity["files"].items()
    (folder / "1_Pooling/config.json").write_text('{"pooling": "cls"}', encoding="utf-8")
    assert identity != identity_of(f"dense:{folder}", dense())


def test_the_model_behind_a_server() -> None:
    def served(**changes: object) -> RemoteScanner:
        scanner = RemoteScanner("http://127.0.0.1:1", timeout=changes.pop("timeout", 1.0))  # type: ignore[arg-type]
        of_server = {"id": "m", "sha256": "0", "segmenter": "sentence", "uses_collection": True}
        scanner.__dict__["_model"] = (
            of_server | {"window_tokens": None, "dtype": "float32", "device": "cpu"} | changes
        )
        return scanner

    identity = identity_of("remote:http://127.0.0.1:1", served())
    assert identity == json.loads(json.dumps(identity))
    assert identity == identity_of("remote:http://127.0.0.1:1", served(device="cuda:0", timeout=9.0))
    assert identity != identity_of("remote:http://127.0.0.1:1", served(id="another"))
    assert identity != identity_of("remote:http://127.0.0.1:1", served(sha256="1"))


def test_a_model_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    asked = []

    def snapshot(name: str, *, local_files_only: bool) -> str:
        asked.append((name, local_files_only))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert list(identity_of("mamba:owner/name", dense())["files"]) == [f"{tmp_path.name}/config.json"]
    assert asked == [("owner/name", True)]


def test_a_hybrid_has_its_parts() -> None:
    parts = [BM25(), BM25(k1=1.5)]
    identity = identity_of("hybrid:bm25+bm25", Hybrid(parts))
    assert [part["parameters"]["k1"] for part in identity["parts"]] == [0.9, 1.5]
    assert identity == json.loads(json.dumps(identity))
    assert identity != identity_of("hybrid:bm25+bm25", Hybrid(parts, "ranks"))
