"""The forward pass of a BERT-like sentence encoder (Devlin et al.

2019), over several windows without padding.

Names and outputs are those of transformers' ``BertModel``. Linear layers get the tokens
of all windows in one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import torch
from torch import Tensor
from torch.nn.functional import (
    embedding,
    gelu,
    layer_norm,
    linear,
    pad,
    scaled_dot_product_attention,
)

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
            value, most = config.get(size.name), _MOST.get(size.name, _MOST_OTHER)
            if type(value) is not int or not 1 <= value <= most:
                raise ValueError(
                    f"{size.name} is {value!r:.60}; expected a whole number of 1 to"
                    f" {most:,}"
                )
            sizes[size.name] = value
        if sizes["hidden_size"] % sizes["num_attention_heads"]:
            raise ValueError(
                f"hidden_size is {sizes['hidden_size']}; expected a multiple of"
                " num_attention_heads"
            )
        eps = config.get("layer_norm_eps", 1e-12)
        if type(eps) not in (int, float) or not 0 < eps < 1:
            raise ValueError(
                f"layer_norm_eps is {eps!r:.60}; expected a number between 0 and 1"
            )
        return cls(**sizes, layer_norm_eps=eps)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor that the forward pass needs, by name."""
        d, inner = self.hidden_size, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            "embeddings.word_embeddings.weight": (self.vocab_size, d),
            "embeddings.position_embeddings.weight": (self.max_position_embeddings, d),
            "embeddings.token_type_embeddings.weight": (2, d),
        }
        norms = ["embeddings.LayerNorm"]
        for layer in range(self.num_hidden_layers):
            name = f"encoder.layer.{layer}."
            outputs = {
                f"attention.self.{part}": (d, d) for part in ("query", "key", "value")
            }
            outputs |= {
                "attention.output.dense": (d, d),
                "intermediate.dense": (inner, d),
            }
            for part, shape in (outputs | {"output.dense": (d, inner)}).items():
                shapes[f"{name}{part}.weight"], shapes[f"{name}{part}.bias"] = (
                    shape,
                    shape[:1],
                )
            norms += [f"{name}attention.output.LayerNorm", f"{name}output.LayerNorm"]
        for norm in norms:
            shapes[f"{norm}.weight"] = shapes[f"{norm}.bias"] = (d,)
        return shapes


class Bert:
    """An encoder's weights, as `BertShape.tensors` lists them, all of one dtype on one device."""

    def __init__(self, shape: BertShape, weights: Mapping[str, Tensor]) -> None:
        self.shape = shape
        self._weights = dict(weights)
        self.words = weights[
            "embeddings.word_embeddings.weight"
        ]  # (vocab_size, hidden_size)
        for layer in range(
            shape.num_hidden_layers
        ):  # one product for query, key and value
            name = f"encoder.layer.{layer}.attention.self."
            for kind in ("weight", "bias"):
                parts = [
                    self._weights.pop(f"{name}{part}.{kind}")
                    for part in ("query", "key", "value")
                ]
                self._weights[f"{name}all.{kind}"] = torch.cat(parts)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self._weights["embeddings.LayerNorm.weight"].device

    @torch.inference_mode()
    def states(
        self, windows: Sequence[Sequence[int]], second: Sequence[int] | None = None
    ) -> Tensor:
        """`forward` without gradients."""
        return self.forward(windows, second)

    def forward(
        self, windows: Sequence[Sequence[int]], second: Sequence[int] | None = None
    ) -> Tensor:
        """Return the last state of every token of several windows, one after another: (tokens, hidden_size).

        ``windows`` are token ids with the special tokens, 1 to
        ``max_position_embeddings`` of them. ``second`` has the place in each window
        where the second of two texts begins.
        """
        w, place = (
            self._weights,
            _Places([len(window) for window in windows], self.device),
        )
        ids = torch.tensor(
            [token for window in windows for token in window], device=self.device
        )  # (tokens,)
        tokens, filled = len(ids), _filled(len(ids))
        x = embedding(pad(ids, (0, filled - tokens)), self.words)
        positions = pad(place.positions, (0, filled - tokens))
        x = (
            x + w["embeddings.position_embeddings.weight"][positions]
        )  # (filled, hidden_size)
        kinds = torch.zeros(
            filled, dtype=torch.long, device=self.device
        )  # (filled,): 1 in the second text
        if second is not None:
            lengths = torch.tensor(
                [len(window) for window in windows], device=self.device
            )
            begins = torch.tensor(second, device=self.device).repeat_interleave(lengths)
            kinds[:tokens] = (place.positions >= begins).long()
        x = self._norm(
            "embeddings.LayerNorm",
            x + w["embeddings.token_type_embeddings.weight"][kinds],
        )
        for layer in range(self.shape.num_hidden_layers):
            name = f"encoder.layer.{layer}."
            x = self._norm(
                f"{name}attention.output.LayerNorm", x + self._attention(name, x, place)
            )
            inner = gelu(
                self._linear(f"{name}intermediate.dense", x)
            )  # (tokens, intermediate_size)
            x = self._norm(
                f"{name}output.LayerNorm",
                x + self._linear(f"{name}output.dense", inner),
            )
        return x[:tokens]

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(
            x, (self.shape.hidden_size,), weight, bias, self.shape.layer_norm_eps
        )

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _attention(self, name: str, x: Tensor, place: "_Places") -> Tensor:
        heads = self.shape.num_attention_heads
        packed = self._linear(
            f"{name}attention.self.all", x
        )  # (filled, 3 * hidden_size)
        padded = packed.new_zeros(place.windows * place.longest, packed.shape[1])
        padded[place.slots] = packed[: len(place.slots)]
        q, k, v = padded.view(place.windows, place.longest, 3, heads, -1).permute(
            2, 0, 3, 1, 4
        )
        # (windows, heads, longest, headdim)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=place.mask)
        mixed = mixed.transpose(1, 2).reshape(place.windows * place.longest, -1)[
            place.slots
        ]
        mixed = pad(mixed, (0, 0, 0, len(x) - len(mixed)))
        return self._linear(f"{name}attention.output.dense", mixed)


def _filled(tokens: int) -> int:
    """Round tokens up to one of few numbers of rows, since oneDNN keeps memory for each number it has seen."""
    step = 512 if tokens > 1024 else 64 if tokens > 64 else 16
    return -(-tokens // step) * step


class _Places:
    """Where the tokens of several windows are when the windows are padded to one length for attention."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        self.windows, self.longest = len(lengths), max(lengths)
        each = torch.tensor(lengths, device=device)
        inside = (
            torch.arange(self.longest, device=device) < each[:, None]
        )  # (windows, longest)
        self.slots = inside.flatten().nonzero()[:, 0]  # (tokens,)
        self.positions = self.slots % self.longest  # (tokens,)
        self.mask = None if min(lengths) == self.longest else inside[:, None, None, :]


def group_of(columns: int) -> int:
    """Return how many numbers in a row of a matrix share a scale."""
    return GROUP if columns % GROUP == 0 else columns


def grouped(weight: Tensor) -> Tensor:
    """A matrix in float32, cut into the groups that share a scale: (rows, groups, group)."""
    return weight.float().reshape(len(weight), -1, group_of(weight.shape[1]))


def restored(
    weights: Mapping[str, Tensor],
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> dict[str, Tensor]:
    """Return weights on a device in a dtype.

    Those that `checkpoint.save` has quantized are restored.
    """

    def whole(name: str, weight: Tensor) -> Tensor:
        if weight.dtype == torch.int8:
            scales = weights[f"{name}{SCALE}"].float()  # (rows, groups)
            weight = (grouped(weight) * scales[..., None]).flatten(1)
        return weight.to(device, dtype)

    return {
        name: whole(name, weight)
        for name, weight in weights.items()
        if not name.endswith(SCALE)
    }
