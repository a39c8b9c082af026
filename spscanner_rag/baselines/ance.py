"""The projection of ANCE's checkpoints (Xiong et al., 2021)."""

from typing import Any

_WEIGHTS = {
    "linear.weight": "embeddingHead.weight",
    "linear.bias": "embeddingHead.bias",
}
_NORM = {"norm.weight": "norm.weight", "norm.bias": "norm.bias"}


def add_projection(model: Any, name: str) -> None:  # noqa: ANN401 - a library's
    """Add the projection and its norm to a sentence-transformers model.

    ``name`` is a folder or Hub id, in whose checkpoint they stand beside the encoder:
    the library reads the encoder alone, without a word. ``ValueError`` if they are not
    there.
    """
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import LayerNorm

    weights = Dense.load_torch_weights(name)
    absent = {*_WEIGHTS.values(), *_NORM.values()} - weights.keys()
    if absent:
        raise ValueError(
            f"{name} has no {', '.join(sorted(absent))}; expected a checkpoint of ANCE,"
            " whose projection stands beside the encoder"
        )
    width, hidden = weights["embeddingHead.weight"].shape
    projection = Dense(hidden, width, activation_function=None)
    norm = LayerNorm(width)
    for module, names in ((projection, _WEIGHTS), (norm, _NORM)):
        stored = {own: weights[theirs] for own, theirs in names.items()}
        module.load_state_dict(stored)
        model.append(module.to(model.device))
