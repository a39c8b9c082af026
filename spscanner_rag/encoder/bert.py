"""The forward pass of a BERT-like sentence encoder, over windows without padding.

Source: Devlin et al. 2019. Names and outputs are those of transformers' ``BertModel``.
Linear layers get the tokens of all windows in one row.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

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

from spscanner_rag.encoder.bert_shape import (
    SCALE,
    WORD_EMBEDDINGS,
    BertShape,
    group_of,
)
from spscanner_rag.encoder.four_bit import FourBitRows

ATTENTION_STEP: Final = 32
"""Windows are padded to a multiple of this many tokens.

At other lengths, torch's attention on a CPU takes up to twice as long in bfloat16.
"""


class Bert:
    """An encoder's weights and its forward pass.

    Parameters
    ----------
    shape : BertShape
        The sizes.
    weights : mapping of str to Tensor
        What `BertShape.tensors` lists, all of one dtype on one device.
    stored_words : FourBitRows, optional
        The word embeddings, in place of those among the weights.
    """

    def __init__(
        self,
        shape: BertShape,
        weights: Mapping[str, Tensor],
        stored_words: FourBitRows | None = None,
    ) -> None:
        self.shape = shape
        self._weights = dict(weights)
        self._stored_words = stored_words
        # (vocab_size, hidden_size), without rows if they are stored elsewhere
        self.words = weights.get(WORD_EMBEDDINGS, torch.empty(0, shape.hidden_size))
        for layer in range(shape.num_hidden_layers):
            # one product for query, key and value
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
        """Return the last state of every token: (tokens, hidden_size).

        Parameters
        ----------
        windows : sequence of token ids
            Windows with the special tokens, 1 to ``max_position_embeddings`` tokens
            each. Their states follow one another.
        second : sequence of int, optional
            The place in each window where the second of two texts begins.
        """
        lengths = [len(window) for window in windows]
        layout = _Places(lengths, _filled(sum(lengths)), self.device)
        x = self._embedded(windows, layout, second)  # (rows, hidden_size)
        for layer in range(self.shape.num_hidden_layers):
            name = f"encoder.layer.{layer}."
            attended = self._attention(name, x, layout)
            x = self._norm(f"{name}attention.output.LayerNorm", x + attended)
            inner = gelu(self._linear(f"{name}intermediate.dense", x))
            outer = self._linear(f"{name}output.dense", inner)
            x = self._norm(f"{name}output.LayerNorm", x + outer)
        return x[: sum(lengths)]

    def _embedded(
        self,
        windows: Sequence[Sequence[int]],
        layout: "_Places",
        second: Sequence[int] | None,
    ) -> Tensor:
        """The sum of a token's three embeddings, (rows, hidden_size).

        Rows after the last token are filled up, see `_filled`.
        """
        ids = torch.tensor(list(chain.from_iterable(windows)), device=self.device)
        tokens = len(ids)
        rows = len(layout.slots)
        filled_ids = pad(ids, (0, rows - tokens))
        if self._stored_words is None:
            x = embedding(filled_ids, self.words)
        else:
            x = self._stored_words[filled_ids]
        positions = layout.slots % layout.longest  # (rows,)
        x = x + self._weights["embeddings.position_embeddings.weight"][positions]
        # (rows,): 1 in the second text
        kinds = torch.zeros(rows, dtype=torch.long, device=self.device)
        if second is not None:
            lengths = torch.tensor([len(window) for window in windows])
            begins = torch.tensor(second).repeat_interleave(lengths).to(self.device)
            kinds[:tokens] = (positions[:tokens] >= begins).long()
        x = x + self._weights["embeddings.token_type_embeddings.weight"][kinds]
        return self._norm("embeddings.LayerNorm", x)

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return layer_norm(
            x,
            (self.shape.hidden_size,),
            self._weights[f"{name}.weight"],
            self._weights[f"{name}.bias"],
            self.shape.layer_norm_eps,
        )

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _attention(self, name: str, x: Tensor, layout: "_Places") -> Tensor:
        heads = self.shape.num_attention_heads
        packed = self._linear(f"{name}attention.self.all", x)  # (rows, 3 * hidden_size)
        padded = packed.index_select(0, layout.rows)  # (slots, 3 * hidden_size)
        by_head = padded.view(layout.windows, layout.longest, 3, heads, -1)
        q, k, v = by_head.permute(2, 0, 3, 1, 4)
        # (windows, heads, longest, headdim)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=layout.mask)
        mixed = mixed.transpose(1, 2).reshape(len(padded), -1)
        mixed = mixed.index_select(0, layout.slots)  # (rows, hidden_size)
        return self._linear(f"{name}attention.output.dense", mixed)


def _filled(tokens: int) -> int:
    """Round tokens up to one of few numbers of rows.

    oneDNN keeps memory for each number of rows that it has seen.
    """
    if tokens > 1024:
        step = 512
    elif tokens > 64:
        step = 64
    else:
        step = 16
    return -(-tokens // step) * step


class _Places:
    """Where tokens are when windows are padded to one length for attention.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each window.
    rows : int
        At least as many as tokens. Those after the last token are filled up.
    device : torch.device
        Where the tokens are.
    """

    def __init__(self, lengths: Sequence[int], rows: int, device: torch.device) -> None:
        self.windows = len(lengths)
        self.longest = -(-max(lengths) // ATTENTION_STEP) * ATTENTION_STEP
        lengths_of_windows = torch.tensor(lengths, device=device)
        columns = torch.arange(self.longest, device=device)
        inside = columns < lengths_of_windows[:, None]  # (windows, longest)
        occupied = inside.flatten().nonzero()[:, 0]  # (tokens,)
        tokens = len(occupied)
        # (rows,): the slot of each row, the first for rows after the last token
        self.slots = pad(occupied, (0, rows - tokens))
        # (slots,): the row of each slot, the first row for empty slots
        self.rows = torch.zeros(inside.numel(), dtype=torch.long, device=device)
        self.rows[occupied] = torch.arange(tokens, device=device)
        self.mask = None
        if min(lengths) < self.longest:
            self.mask = inside[:, None, None, :]


def grouped(weight: Tensor) -> Tensor:
    """Cut a matrix into groups that share a scale: (rows, groups, group), float32."""
    return weight.float().reshape(len(weight), -1, group_of(weight.shape[1]))


def restored(
    weights: Mapping[str, Tensor],
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> dict[str, Tensor]:
    """Return weights on a device in a dtype.

    Those that `checkpoint.save` has quantized are restored.
    """
    restored_weights = {}
    for name, weight in weights.items():
        if name.endswith(SCALE):
            continue
        if weight.dtype == torch.int8:
            scales = weights[f"{name}{SCALE}"].float()  # (rows, groups)
            weight = (grouped(weight) * scales[..., None]).flatten(1)
        restored_weights[name] = weight.to(device, dtype)
    return restored_weights
