"""The key-value cache of documents: read once for all queries, saved, and extended."""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spscanner_rag.checkpoint.whole_file import whole_file


@dataclass(frozen=True)
class DocumentPart:
    """The documents that a layer attends to."""

    documents: int
    tokens: int | Tensor  # of all queries, or of each: (queries, 1, 1, 1, 1)
    places: Tensor | None = None  # (tokens,) of all queries' documents; None: all
    hidden: Tensor | None = None  # (queries, tokens of all documents): what a query does not attend to

    def of(self, layer: Tensor) -> Tensor:
        """Keys or values of a layer (kv_heads, tokens, head_dim)."""
        return layer if self.places is None else layer[:, self.places]


@dataclass(frozen=True)
class DocumentKeys:
    """Keys and values of the tokens of all documents, in order, without padding."""

    keys: tuple[Tensor, ...]  # for each layer (kv_heads, tokens, head_dim)
    values: tuple[Tensor, ...]  # for each layer (kv_heads, tokens, head_dim)
    lengths: Tensor  # (documents,) their tokens
    codes: Tensor  # (documents,) int64
    cut: int = 0  # documents that were too long

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.lengths)

    @property
    def document_of(self) -> Tensor:
        """The document that each token belongs to: (tokens,)."""
        return torch.repeat_interleave(self.lengths)

    @property
    def n_bytes(self) -> int:
        """Bytes of the keys and values."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def tokens_of(self, documents: Tensor) -> Tensor:
        """The places of the tokens of some documents, in the corpus's order: (their tokens,)."""
        return torch.isin(self.document_of, documents).nonzero()[:, 0]

    def part(self, documents: Tensor | None) -> "DocumentPart":
        """Some documents (documents,), the same number for each query (queries, documents), or None: all."""
        if documents is None:
            return DocumentPart(self.documents, int(self.lengths.sum()))
        if documents.dim() == 1:
            places = self.tokens_of(documents)
            return DocumentPart(len(documents), len(places), places=places)
        inside = torch.zeros(len(documents), self.documents, dtype=torch.bool, device=documents.device)
        hidden = ~inside.scatter(1, documents, True)[:, self.document_of]
        return DocumentPart(documents.shape[1], (~hidden).sum(1)[:, None, None, None, None], hidden=hidden)

    def followed_by(self, *others: "DocumentKeys") -> "DocumentKeys":
        """A cache of these documents and then the others', as if all had been read together.

        Raises ``ValueError`` if a code occurs twice.
        """
        parts = (self, *others)
        codes = torch.cat([part.codes for part in parts])
        ordered = codes.sort().values
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            raise ValueError(f"got code {int(twice[0]):04d} twice; expected distinct codes")
        layers = range(len(self.keys))
        return DocumentKeys(
            tuple(torch.cat([part.keys[layer] for part in parts], 1) for layer in layers),
            tuple(torch.cat([part.values[layer] for part in parts], 1) for layer in layers),
            torch.cat([part.lengths for part in parts]),
            codes,
            sum(part.cut for part in parts),
        )

    def save(self, path: Path) -> None:
        """Write one file, whole or not at all."""
        tensors = {"lengths": self.lengths, "codes": self.codes, "cut": torch.tensor(self.cut)}
        for layer, (keys, values) in enumerate(zip(self.keys, self.values, strict=True)):
            tensors |= {f"keys.{layer}": keys.contiguous(), f"values.{layer}": values.contiguous()}
        with whole_file(path) as unfinished:
            save_file(tensors, unfinished)

    @classmethod
    def load(cls, path: Path, device: torch.device | str = "cpu") -> "DocumentKeys":
        """Read what `save` wrote."""
        tensors = load_file(path, device=str(device))
        layers = sum(name.startswith("keys.") for name in tensors)

        def of(name: str) -> tuple[Tensor, ...]:
            return tuple(tensors[f"{name}.{layer}"] for layer in range(layers))

        return cls(of("keys"), of("values"), tensors["lengths"], tensors["codes"], int(tensors["cut"]))


@dataclass(frozen=True)
class QueryKeys:
    """Keys and values of the tokens of queries of one length, which continue each other digit by digit."""

    keys: tuple[Tensor, ...]  # for each layer (queries, kv_heads, tokens, head_dim)
    values: tuple[Tensor, ...]

    @property
    def tokens(self) -> int:
        """Number of tokens of each query."""
        return self.keys[0].shape[2]

    def chosen(self, queries: Tensor) -> "QueryKeys":
        """The keys of some of the queries, any of them more than once."""
        return QueryKeys(*(tuple(layer[queries] for layer in kind) for kind in (self.keys, self.values)))
