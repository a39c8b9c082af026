"""Models of sentence-transformers that give the vectors of a text's tokens."""

import json
from pathlib import Path
from typing import Any

from spscanner_rag.baselines.embedding_models import installed
from spscanner_rag.baselines.model_loading import load
from spscanner_rag.system.install_hints import import_extra


def load_token_encoder(model: str, device: str | None, trust_remote_code: bool) -> Any:  # noqa: ANN401 - an optional package's class
    """Load a ``MultiVectorEncoder``.

    A single-vector model gives its token vectors.
    """
    library = import_extra(
        "sentence_transformers", f"late interaction with {model!r}", "baselines"
    )
    name = installed(model)
    options = {"device": device, "trust_remote_code": trust_remote_code}

    def loaded(path: str) -> object:
        model_type = _stated(path, "config_sentence_transformers.json").get(
            "model_type"
        )
        stanford = _is_stanfords(path)
        # "ColBERT" is PyLate's
        if model_type not in ("MultiVectorEncoder", "ColBERT") and not stanford:
            return _of_single_vectors(library, path, options)
        try:
            encoder = library.MultiVectorEncoder(path, **options)
        except KeyError as error:
            # Stanford's layout keeps the projection beside the encoder.
            if "linear.weight" not in str(error):
                raise
            encoder = None
        # sentence-transformers adds a random projection to a model without one.
        # Late-interaction models that it saved itself are complete, with or without a
        # projection.
        complete = stanford or model_type == "MultiVectorEncoder"
        if not complete:
            complete = "Dense" in str(_stated(path, "modules.json"))
        if encoder is None or not complete:
            raise ValueError(
                f"{name} is a ColBERT checkpoint without a projection of its token"
                " vectors; expected linear.weight or a module Dense in it: use the"
                " complete checkpoint, or a sentence-transformers model, whose token"
                " vectors need none"
            )
        return encoder

    return load(loaded, name, trusted=trust_remote_code)


def _is_stanfords(path: str) -> bool:
    """Whether a checkpoint has the layout of Stanford's ColBERT."""
    architectures = _stated(path, "config.json").get("architectures") or []
    for name in architectures:
        if name == "HF_ColBERT" or name.endswith("ForRetrieval"):
            return True
    return False


def _of_single_vectors(
    library: Any,  # noqa: ANN401 - an optional package
    path: str,
    options: dict[str, Any],
) -> object:
    """An encoder of the token vectors of a single-vector model."""
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    plain = library.SentenceTransformer(path, **options)
    modules = [
        plain[0],
        MultiVectorMask(),
        Normalize(module_input_name="token_embeddings"),
    ]
    return library.MultiVectorEncoder(modules=modules, device=str(plain.device))


def _stated(path: str, file: str) -> dict[str, Any]:
    """The JSON object in a model's file.

    Empty if there is no such file.
    """
    from sentence_transformers.util import load_file_path

    local_path = load_file_path(path, file)
    if not local_path:
        return {}
    content = json.loads(Path(local_path).read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {"": content}
