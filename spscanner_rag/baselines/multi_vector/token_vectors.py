"""Vectors of the tokens of texts, by models of sentence-transformers and PyLate."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spscanner_rag.baselines.base import optional
from spscanner_rag.baselines.embedders import MINILM, packaged_minilm
from spscanner_rag.baselines.loading import load
from spscanner_rag.mamba2.forks import compute_in_forks

_LATE_TYPES = ("MultiVectorEncoder", "ColBERT")  # the classes of sentence-transformers and of PyLate


class TokenEncoder(NamedTuple):
    """Functions from texts to the vectors of their tokens, (tokens, width) each, and the model's limit.

    Prefixes, masked tokens and lengths are the model's own.
    """

    queries: Callable[[list[str]], Sequence[Any]]
    documents: Callable[[list[str]], Sequence[Any]]
    n_tokens: Callable[[str], int]  # of a text that is not cut
    limit: int | None  # tokens of a document that the model reads; None: all
    name: str


def token_encoder_of(
    model: object, *, batch_size: int = 32, device: str | None = None, trust_remote_code: bool = False
) -> TokenEncoder:
    """Wrap a model, which is recognized by its class; see `LateInteraction` for the arguments and errors."""
    compute_in_forks()
    name = str(model) if isinstance(model, str | Path) else type(model).__name__
    if isinstance(model, str | Path):
        model = _load(str(model), device, trust_remote_code)
    kind = type(model).__name__
    encoder: Any = _without_pooling(model) if kind == "SentenceTransformer" else model
    options = {"batch_size": batch_size, "convert_to_numpy": True, "show_progress_bar": False}
    if kind == "ColBERT" and hasattr(model, "document_length"):  # PyLate's, which is no part of this package

        def encode(texts: list[str], is_query: bool) -> Sequence[Any]:
            found: Sequence[Any] = encoder.encode(texts, is_query=is_query, **options)
            return found

        queries, documents = (lambda texts: encode(texts, True)), (lambda texts: encode(texts, False))
        limit = encoder.document_length
    elif kind in ("SentenceTransformer", "MultiVectorEncoder"):
        queries = lambda texts: encoder.encode_query(texts, **options)  # noqa: E731
        documents = lambda texts: encoder.encode_document(texts, **options)  # noqa: E731
        limit = getattr(encoder[0], "document_length", None) or encoder.max_seq_length
    else:
        raise TypeError(
            f"model is {kind}; expected a name, a folder, a MultiVectorEncoder or SentenceTransformer of "
            "sentence-transformers, or a ColBERT of PyLate"
        )

    def n_tokens(text: str) -> int:
        return len(encoder.tokenizer(text, truncation=False, verbose=False)["input_ids"])

    return TokenEncoder(queries, documents, n_tokens, limit, name)


def _load(name: str, device: str | None, trust_remote_code: bool) -> object:
    library = optional("sentence_transformers", f"late interaction with {name!r}")
    if name in ("minilm", MINILM):
        name = packaged_minilm() or MINILM
    options = {"device": device, "trust_remote_code": trust_remote_code}

    def loaded(path: str) -> object:
        if not _is_late(path):
            return library.SentenceTransformer(path, **options)
        try:
            model = library.MultiVectorEncoder(path, **options)
        except KeyError as error:  # Stanford's layout keeps the projection beside the encoder
            if "linear.weight" not in str(error):
                raise
            model = None
        if model is None or not _projects(model, path):
            raise ValueError(
                f"{name} is a ColBERT checkpoint without a projection of its token vectors; expected "
                "linear.weight or a module Dense in it: take the whole checkpoint, or a sentence-transformers "
                "model, whose token vectors need none"
            )
        return model

    return load(loaded, name)


def _is_late(path: str) -> bool:
    """Whether a folder or a Hub id says that its model was made for late interaction."""
    if _stated(path, "config_sentence_transformers.json").get("model_type") in _LATE_TYPES:
        return True
    architectures = _stated(path, "config.json").get("architectures") or []
    return any(name == "HF_ColBERT" or name.endswith("ForRetrieval") for name in architectures)


def _projects(model: Any, path: str) -> bool:  # noqa: ANN401 - an optional package's class
    """Whether the projection of a model is its own; sentence-transformers makes a random one where there is none.

    A model that sentence-transformers itself saved for late interaction is as it was trained, with one or without.
    """
    own = _stated(path, "config_sentence_transformers.json").get("model_type") == "MultiVectorEncoder"
    saved = _stated(path, "config.json").get("architectures") or []
    is_stanford = "HF_ColBERT" in saved or any(name.endswith("ForRetrieval") for name in saved)
    return own or is_stanford or "Dense" in str(_stated(path, "modules.json"))


def _stated(path: str, file: str) -> dict[str, Any]:
    """What a JSON file of a model says; empty if there is no such file."""
    from sentence_transformers.util import load_file_path

    found = load_file_path(path, file)
    content = json.loads(Path(found).read_text(encoding="utf-8")) if found else {}
    return content if isinstance(content, dict) else {"": content}


def _without_pooling(model: Any) -> object:  # noqa: ANN401 - an optional package's class
    """A sentence-transformers model whose vectors are those of its tokens, which have no projection."""
    library = optional("sentence_transformers", "late interaction")
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    modules = [model[0], MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
    return library.MultiVectorEncoder(modules=modules, device=str(model.device))
