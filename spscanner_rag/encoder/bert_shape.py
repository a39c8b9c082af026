"""The sizes of a BERT-like sentence encoder, and the names of its tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

WORD_EMBEDDINGS: Final = "embeddings.word_embeddings.weight"
SCALE: Final = ".scale"  # ends the name of a matrix's scales
GROUP: Final = 64
"""Numbers of a matrix's row that share a scale.

With one per row, some sentences fall to a cosine of 0.996.
"""

_MOST: Final = {
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "intermediate_size": 16384,
}
_MOST_OTHER: Final = 2**20


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of an encoder, under the names of its ``config.json``."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    layer_norm_eps: float = 1e-12

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Self:
        """Read a parsed ``config.json``.

        ``ValueError`` names the key that is missing or unusable.
        """
        usual = {
            "model_type": "bert",
            "hidden_act": "gelu",
            "position_embedding_type": "absolute",
        }
        for key, expected in usual.items():
            got = config.get(key, None if key == "model_type" else expected)
            if got != expected:
                raise ValueError(f"{key} is {got!r:.60}; expected {expected!r}")
        sizes = {}
        for size in fields(cls)[:-1]:
            value = config.get(size.name)
            largest = _MOST.get(size.name, _MOST_OTHER)
            if type(value) is not int or not 1 <= value <= largest:
                raise ValueError(
                    f"{size.name} is {value!r:.60}; expected a whole number of 1 to "
                    f"{largest:,}"
                )
            sizes[size.name] = value
        if sizes["hidden_size"] % sizes["num_attention_heads"]:
            raise ValueError(
                f"hidden_size is {sizes['hidden_size']}; expected a multiple of "
                "num_attention_heads"
            )
        eps = config.get("layer_norm_eps", 1e-12)
        if type(eps) not in (int, float) or not 0 < eps < 1:
            raise ValueError(
                f"layer_norm_eps is {eps!r:.60}; expected a number between 0 and 1"
            )
        return cls(**sizes, layer_norm_eps=eps)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor that the forward pass needs, by name."""
        width = self.hidden_size
        inner = self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            WORD_EMBEDDINGS: (self.vocab_size, width),
            "embeddings.position_embeddings.weight": (
                self.max_position_embeddings,
                width,
            ),
            "embeddings.token_type_embeddings.weight": (2, width),
        }
        norms = ["embeddings.LayerNorm"]
        for layer in range(self.num_hidden_layers):
            name = f"encoder.layer.{layer}."
            matrices = {
                "attention.self.query": (width, width),
                "attention.self.key": (width, width),
                "attention.self.value": (width, width),
                "attention.output.dense": (width, width),
                "intermediate.dense": (inner, width),
                "output.dense": (width, inner),
            }
            for part, shape in matrices.items():
                shapes[f"{name}{part}.weight"] = shape
                shapes[f"{name}{part}.bias"] = shape[:1]
            norms += [f"{name}attention.output.LayerNorm", f"{name}output.LayerNorm"]
        for norm in norms:
            shapes[f"{norm}.weight"] = (width,)
            shapes[f"{norm}.bias"] = (width,)
        return shapes


def group_of(columns: int) -> int:
    """Return how many numbers in a row of a matrix share a scale."""
    return GROUP if columns % GROUP == 0 else columns
