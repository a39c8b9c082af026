"""The language model of in-context retrieval: Qwen3's layers, with attention from queries to documents."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.in_context.attention import query_attention, routing_scores
from spscanner_rag.lab.in_context.document_keys import DocumentKeys, QueryKeys
from spscanner_rag.lab.in_context.layout import DOCUMENT_TOKENS, Layout, TokenIds

SSMAX_START: Final = 0.43
SETTINGS_FILE: Final = "block_search.json"
TOKENIZER_FILE: Final = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How queries attend to documents.

    ``ssmax`` says what N in s_L * log N is: the number of the documents that a layer attends to, the number of its
    keys, or None for plain attention. The layers up to ``routing_layer``, counted from 0, attend to all documents;
    those above it to the ``best_documents`` with the largest R in it.
    """

    routing_layer: int
    best_documents: int = 256
    ssmax: Literal["documents", "keys"] | None = "documents"

    @classmethod
    def for_layers(cls, layers: int) -> "ReadingSettings":
        """The published place of routing: layer 16 of 28, or the same share of another number of layers."""
        return cls(round(layers * 16 / 28))


@dataclass(frozen=True)
class Read:
    """What reading tokens of queries gives."""

    logits: Tensor  # (queries, tokens, ten digits)
    keys: QueryKeys  # of all their tokens so far
    routing: Tensor  # (queries, documents): R
    selected: Tensor | None  # what the layers above attend to, as `read_queries` takes it; None: all


class BlockSearchModel(nn.Module):
    """A Qwen3 decoder that reads documents one by one and queries after all of them.

    A document's tokens attend causally within their document, at positions from 0. A query's tokens, at positions
    from 300, attend to all documents and to the query's tokens before them. No document sees another one, so the
    order of documents does not matter, and more can be read later.

    Parameters
    ----------
    decoder : transformers.Qwen3ForCausalLM
    layout : Layout
    settings : ReadingSettings, optional
    """

    def __init__(self, decoder: Any, layout: Layout, settings: ReadingSettings | None = None) -> None:  # noqa: ANN401
        super().__init__()
        layers = len(decoder.model.layers)
        self.decoder, self.layout = decoder, layout
        self.settings = settings or ReadingSettings.for_layers(layers)
        self.ssmax = nn.Parameter(torch.full((layers,), SSMAX_START))  # s_L of each layer
        if not 0 <= self.settings.routing_layer < layers:
            raise ValueError(f"routing_layer is {self.settings.routing_layer}; expected 0 to {layers - 1}")

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, dtype: str = "auto", device: str = "cpu"
    ) -> "BlockSearchModel":
        """Load a Qwen3 folder, or one that `save` wrote, in evaluation mode.

        Raises
        ------
        ImportError
            If transformers is not installed; the message says how to install it.
        ValueError
            For another architecture, or a tokenizer without digits or end token.
        FileNotFoundError
            Without a ``tokenizer.json``.
        """
        library, place = _transformers(), Path(folder)
        config = library.AutoConfig.from_pretrained(place, local_files_only=True)
        if config.model_type != "qwen3":
            raise ValueError(f"{place}: got a model of type {config.model_type!r}; expected qwen3")
        if not (place / TOKENIZER_FILE).is_file():
            raise FileNotFoundError(
                f"{place}: there is no {TOKENIZER_FILE}; expected a folder of a Qwen3 model"
            )
        layout = Layout.of(
            Tokenizer.from_file(str(place / TOKENIZER_FILE)), config.bos_token_id, _one(config.eos_token_id)
        )
        decoder = library.Qwen3ForCausalLM.from_pretrained(place, dtype=dtype, local_files_only=True)
        model = cls(decoder, layout)
        if (place / SETTINGS_FILE).is_file():
            stored = json.loads((place / SETTINGS_FILE).read_text(encoding="utf-8"))
            factors = stored.pop("factors")
            model = cls(decoder, layout, ReadingSettings(**stored))
            with torch.no_grad():
                model.ssmax.copy_(torch.tensor(factors))
        return model.to(device).eval()

    @classmethod
    def new(
        cls,
        tokenizer: Tokenizer,
        shape: dict[str, Any],
        settings: ReadingSettings | None = None,
        seed: int = 0,
    ) -> "BlockSearchModel":
        """A model with random weights; ``shape`` are arguments of transformers' ``Qwen3Config``."""
        library = _transformers()
        torch.manual_seed(seed)
        config = library.Qwen3Config(vocab_size=tokenizer.get_vocab_size(), **shape)
        layout = Layout.of(tokenizer, config.bos_token_id, _one(config.eos_token_id))
        return cls(library.Qwen3ForCausalLM(config), layout, settings)

    def save(self, folder: Path) -> None:
        """Write a folder that `from_pretrained` and, without SSMax and routing, transformers load."""
        self.decoder.save_pretrained(folder)
        write_whole(folder / TOKENIZER_FILE, self.layout.tokenizer.to_str())
        stored = asdict(self.settings) | {"factors": [float(factor) for factor in self.ssmax.detach()]}
        write_whole(folder / SETTINGS_FILE, json.dumps(stored, indent=2) + "\n")

    def with_settings(self, **changes: Any) -> "BlockSearchModel":  # noqa: ANN401
        """A model with the same weights that reads otherwise."""
        other = BlockSearchModel(self.decoder, self.layout, replace(self.settings, **changes))
        other.ssmax = self.ssmax
        return other.train(self.training)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.ssmax.device

    def read_documents(self, texts: Sequence[str], codes: Sequence[int]) -> DocumentKeys:
        """Keys and values of documents, which are the rows of one batch.

        Padding, at the ends of rows, is after all tokens that a causal mask lets see it, and its keys are dropped.
        """
        if not texts:
            raise ValueError("got an empty corpus; expected at least one document")
        laid_out = [self.layout.document(text, code) for text, code in zip(texts, codes, strict=True)]
        lengths = torch.tensor([len(row.ids) for row in laid_out], device=self.device)
        ids = np.zeros((len(texts), int(lengths.max())), np.int64)
        for target, row in zip(ids, laid_out, strict=True):
            target[: len(row.ids)] = row.ids
        positions = torch.arange(ids.shape[1], device=self.device)
        filled = positions < lengths[:, None]  # (documents, tokens)
        hidden = self.decoder.model.embed_tokens(torch.from_numpy(ids).to(self.device))
        keys, values = [], []
        layers = list(self.decoder.model.layers)
        for layer in layers:
            query, key, value = self._projected(layer, hidden, positions)
            keys.append(key.transpose(0, 1)[:, filled])  # (kv_heads, tokens of all documents, head_dim)
            values.append(value.transpose(0, 1)[:, filled])
            if layer is not layers[-1]:  # nothing reads the documents' last hidden states
                mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
                hidden = _after_attention(layer, hidden, mixed)
        cut = sum(row.cut for row in laid_out)
        return DocumentKeys(tuple(keys), tuple(values), lengths, torch.tensor(codes, device=self.device), cut)

    def read_queries(
        self,
        ids: Tensor,
        documents: DocumentKeys,
        before: QueryKeys | None = None,
        selected: Tensor | None = None,
        asking: Tensor | None = None,
    ) -> Read:
        """Read tokens of queries, which are the rows of one batch.

        Parameters
        ----------
        ids : (queries, tokens), integer
        documents : DocumentKeys
        before : QueryKeys, optional
            Those of the tokens before, as returned for them.
        selected : (documents,) or (queries, documents), integer, optional
            What the layers above the routing layer attend to, of all queries or of each. Default: routed by the
            asking token, if there are more documents than ``best_documents``.
        asking : (queries,), integer, optional
            The last token of each query, after which its code begins. Default: the last of ``ids``.
        """
        settings, layers = self.settings, list(self.decoder.model.layers)
        first = DOCUMENT_TOKENS + (before.tokens if before else 0)
        positions = torch.arange(first, first + ids.shape[1], device=self.device)
        hidden = self.decoder.model.embed_tokens(ids)
        routing, keys, values = torch.empty(0), [], []
        own: int | Tensor = first - DOCUMENT_TOKENS + ids.shape[1]
        if asking is not None:  # without padding
            own = asking[:, None, None, None, None] + 1
        whole = documents.part(None)
        above = documents.part(selected)
        for number, layer in enumerate(layers):
            query, key, value = self._projected(layer, hidden, positions)
            if before is not None:
                key, value = (
                    torch.cat([before.keys[number], key], 2),
                    torch.cat([before.values[number], value], 2),
                )
            keys.append(key)
            values.append(value)
            part = above if number > settings.routing_layer else whole
            doc_keys, doc_values = part.of(documents.keys[number]), part.of(documents.values[number])
            factor = self._factor(number, part.documents, part.tokens + own)
            mixed, scores = query_attention(
                query, doc_keys, doc_values, key, value, factor, hidden=part.hidden, asking=asking
            )
            if number == settings.routing_layer:
                routing = routing_scores(scores, documents.document_of, documents.documents)
                if selected is None and documents.documents > settings.best_documents:
                    selected = _best(routing, settings.best_documents)
                    above = documents.part(selected)
            hidden = _after_attention(layer, hidden, mixed)
        logits = self.digit_logits(self.decoder.model.norm(hidden))
        return Read(logits, QueryKeys(tuple(keys), tuple(values)), routing, selected)

    def digit_logits(self, hidden: Tensor) -> Tensor:
        """Logits of the ten digits (..., 10) after normed hidden states (..., d_model)."""
        head = self.decoder.lm_head.weight[list(self.layout.digits)]  # (10, d_model)
        logits: Tensor = (hidden @ head.T).float()
        return logits

    def query_ids(self, query: str | TokenIds) -> Tensor:
        """A query as a batch of one: (1, tokens)."""
        ids = self.layout.query(query) if isinstance(query, str) else query
        return torch.from_numpy(ids)[None].to(self.device)

    def _factor(self, layer: int, documents: int, keys: int | Tensor) -> Tensor:
        """s_L * log N, with N at least 2, since log 1 = 0 would make all weights equal: of the shape of N."""
        if self.settings.ssmax is None:
            return torch.ones((), device=self.device)
        n = torch.as_tensor(documents if self.settings.ssmax == "documents" else keys, device=self.device)
        return self.ssmax[layer] * n.clamp_min(2).log()

    def _projected(self, layer: Any, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # noqa: ANN401
        """Queries (rows, heads, tokens, head_dim), keys and values (rows, kv_heads, tokens, head_dim)."""
        attention, shape = layer.self_attn, (*hidden.shape[:2], -1, layer.self_attn.head_dim)
        read = layer.input_layernorm(hidden)
        query = attention.q_norm(attention.q_proj(read).view(shape)).transpose(1, 2)
        key = attention.k_norm(attention.k_proj(read).view(shape)).transpose(1, 2)
        value = attention.v_proj(read).view(shape).transpose(1, 2)
        turn = import_module("transformers.models.qwen3.modeling_qwen3").apply_rotary_pos_emb
        query, key = turn(query, key, *self.decoder.model.rotary_emb(hidden, positions[None]))
        return query, key, value


def _after_attention(layer: Any, hidden: Tensor, mixed: Tensor) -> Tensor:  # noqa: ANN401
    """The rest of a layer: (rows, tokens, d_model); ``mixed`` is (rows, heads, tokens, head_dim)."""
    hidden = hidden + layer.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
    result: Tensor = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
    return result


def _best(routing: Tensor, most: int) -> Tensor:
    """The numbers of the documents with the largest R, increasing: (most,) for one query, else (queries, most)."""
    best = routing.topk(most).indices.sort().values
    return best[0] if len(best) == 1 else best


def _one(token: int | list[int] | None) -> int | None:
    return token[0] if isinstance(token, list) else token


def _transformers() -> Any:  # noqa: ANN401 - a module of an extra
    try:
        return import_module("transformers")
    except ImportError as error:
        raise ImportError(
            'in-context retrieval needs transformers: pip install "spscanner-rag[baselines]"'
        ) from error
