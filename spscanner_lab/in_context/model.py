"""The language model of in-context retrieval.

It has Qwen3's layers, with attention from queries to documents.

"The paper" of these modules is Gollapudi et al. 2026, "Can Language Models Actually
Retrieve In-Context? Drowning in Documents at Million Token Scale" (arXiv:2607.01538).
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from spscanner_lab.in_context.attention import (
    Attended,
    max_similarities,
    query_attention,
)
from spscanner_lab.in_context.prompt import DOCUMENT_TOKENS, Codes, PromptLayout
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.system.whole_files import write_whole

Attention = Literal["ssmax", "sink", "plain"]
# first s_L or b_L (table 6); "plain" has none
STARTS: Final = {
    "ssmax": 0.43,
    "sink": 14.0,
    "plain": 1.0,
}

SETTINGS_FILE: Final = "block_search.json"
TOKENIZER_FILE: Final = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How queries attend to documents.

    These are the variants of sections 3.3 and 5.1 and of table 6.

    ``attention`` "ssmax" multiplies scores by s_L * log N, for the N documents that a
    layer attends to; "sink" adds exp(b_L + log(N_eff / 128)) to the softmax's
    denominator, only in training (`Gate`); "plain" does neither. Layers up to
    ``routing_layer``, from 0, attend to all documents; those above to the
    ``best_documents`` with the largest R in it (10,000: no routing). ``codes``
    "position" numbers the documents in order.
    """

    routing_layer: int
    best_documents: int = 256
    attention: Attention = "ssmax"
    codes: Codes = "random"

    def __post_init__(self) -> None:
        for name, choices in (("attention", STARTS), ("codes", get_args(Codes))):
            if (value := getattr(self, name)) not in choices:
                raise ValueError(
                    f"{name}: got {value!r}; expected one of {', '.join(choices)}"
                )


class Gate(NamedTuple):
    """The strength of the sink in a training step."""

    length: float  # log(N_eff / 128)
    share: float  # the part of the sink that acts, which is ramped up


class DocumentKeys(NamedTuple):
    """Keys and values of the tokens of all documents, in order, without padding.

    A million tokens of Qwen3-0.6B in bfloat16 are 115 GB: 28 layers, 8 heads of 128
    numbers, keys and values.
    """

    keys: tuple[Tensor, ...]  # for each layer (kv_heads, tokens, head_dim)
    values: tuple[Tensor, ...]  # for each layer (kv_heads, tokens, head_dim)
    lengths: Tensor  # (documents,) tokens in each
    codes: Tensor  # (documents,) int64
    cut: int = 0  # number of documents that were too long

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.lengths)

    @property
    def document_of(self) -> Tensor:
        """The number of each token's document: (tokens,)."""
        return torch.repeat_interleave(self.lengths)

    def tokens_of(self, documents: Tensor) -> Tensor:
        """The numbers of the tokens of some documents: (tokens,)."""
        return torch.isin(self.document_of, documents).nonzero()[:, 0]

    def of_layer(
        self, layer: int, token_numbers: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """A layer's keys and values, of some tokens or (None) of all."""
        keys = self.keys[layer]
        values = self.values[layer]
        if token_numbers is None:
            return keys, values
        return keys[:, token_numbers], values[:, token_numbers]


QueryKeys = list[tuple[Tensor, Tensor]]
"""Keys and values of the tokens of queries so far: for each layer (queries,
kv_heads, tokens, head_dim)."""


class Read(NamedTuple):
    """The result of reading tokens of queries."""

    logits: Tensor  # (queries, tokens, ten digits)
    keys: QueryKeys  # of all their tokens so far
    routing: Tensor  # (queries, documents): R
    # documents that the layers above attend to, for `read_queries`; None for all
    selected: Tensor | None


# takes a layer, what it attends to, its tokens' numbers (None: all), and the logits of
# the ten digits after it, (queries, 10)
Watch = Callable[[int, Attended, Tensor | None, Tensor], None]


class BlockSearchModel(nn.Module):
    """A Qwen3 decoder that reads documents one by one and queries after all of them.

    A document's tokens, at positions from 0, attend causally within their document. A
    query's tokens, at positions from 300, attend to all documents and to earlier tokens
    of the query. No document sees another, so the order of documents does not matter.
    """

    def __init__(
        self,
        decoder: Any,  # noqa: ANN401 - transformers' Qwen3ForCausalLM
        layout: PromptLayout,
        settings: ReadingSettings,
    ) -> None:
        super().__init__()
        layers = len(decoder.model.layers)
        self.decoder = decoder
        self.layout = layout
        self.settings = settings
        # s_L or b_L
        self.scalars = nn.Parameter(
            torch.full((layers,), STARTS[self.settings.attention])
        )
        self.gate: Gate | None = None  # of the current training step
        if not 0 <= self.settings.routing_layer < layers:
            raise ValueError(
                f"routing_layer is {self.settings.routing_layer}; expected 0 to"
                f" {layers - 1}"
            )

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        *,
        dtype: str = "auto",
        device: str = "cpu",
        **changed: Any,  # noqa: ANN401 - fields of `ReadingSettings`
    ) -> "BlockSearchModel":
        """Load a Qwen3 folder, or one that `save` wrote, in evaluation mode.

        ``changed`` has fields of `ReadingSettings` that replace the folder's.
        ``ValueError`` for another architecture, or for a tokenizer without digits or
        end token.
        """
        library = import_extra("transformers", "in-context retrieval", "baselines")
        place = Path(folder)
        # without an explicit trust_remote_code, transformers asks at a prompt
        loading = {"local_files_only": True, "trust_remote_code": False}
        config = library.AutoConfig.from_pretrained(place, **loading)
        if config.model_type != "qwen3":
            raise ValueError(
                f"{place}: got a model of type {config.model_type!r}; expected qwen3"
            )
        if not (place / TOKENIZER_FILE).is_file():
            raise FileNotFoundError(
                f"{place}: there is no {TOKENIZER_FILE}; expected a Qwen3 model's"
                " folder"
            )
        tokenizer = Tokenizer.from_file(str(place / TOKENIZER_FILE))
        end = config.eos_token_id
        layout = PromptLayout.of(
            tokenizer, config.bos_token_id, end[0] if isinstance(end, list) else end
        )
        decoder = library.Qwen3ForCausalLM.from_pretrained(
            place, dtype=dtype, **loading
        )
        # routing as published: in layer 16 of 28, or at the same share of another
        # number of layers
        stored: dict[str, Any] = {
            "routing_layer": round(config.num_hidden_layers * 16 / 28)
        }
        if (place / SETTINGS_FILE).is_file():
            stored = json.loads((place / SETTINGS_FILE).read_text(encoding="utf-8"))
        scalars = stored.pop("scalars", None)
        model = cls(decoder, layout, ReadingSettings(**stored | changed))
        if scalars and model.settings.attention == stored["attention"]:
            with torch.no_grad():
                model.scalars.copy_(torch.tensor(scalars))
        return model.to(device).eval()

    def save(self, folder: Path) -> None:
        """Write a folder that `from_pretrained` loads.

        transformers loads it as well, but without SSMax and routing.
        """
        self.decoder.save_pretrained(folder)
        write_whole(folder / TOKENIZER_FILE, self.layout.tokenizer.to_str())
        stored = asdict(self.settings) | {
            "scalars": [float(scalar) for scalar in self.scalars.detach()]
        }
        write_whole(folder / SETTINGS_FILE, json.dumps(stored, indent=2) + "\n")

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.scalars.device

    def read_documents(
        self, texts: Sequence[str], codes: Sequence[int]
    ) -> DocumentKeys:
        """Read documents as one batch.

        Rows are padded at the ends, where the causal mask hides padding from all
        tokens.
        """
        laid_out = [
            self.layout.document(text, code)
            for text, code in zip(texts, codes, strict=True)
        ]
        lengths = torch.tensor([len(row) for row, _ in laid_out], device=self.device)
        ids = pad_sequence(
            [torch.from_numpy(row) for row, _ in laid_out], batch_first=True
        ).to(self.device)
        # (documents, tokens)
        filled = torch.arange(ids.shape[1], device=self.device) < lengths[:, None]
        layers = self.decoder.model(
            input_ids=ids, use_cache=True
        ).past_key_values.layers
        # (kv_heads, tokens of all documents, head_dim)
        keys = tuple(layer.keys.transpose(0, 1)[:, filled] for layer in layers)
        values = tuple(layer.values.transpose(0, 1)[:, filled] for layer in layers)
        cut = sum(is_cut for _, is_cut in laid_out)
        return DocumentKeys(
            keys, values, lengths, torch.tensor(codes, device=self.device), cut
        )

    def read_queries(
        self,
        ids: Tensor,
        documents: DocumentKeys,
        before: QueryKeys | None = None,
        selected: Tensor | None = None,
        watch: Watch | None = None,
    ) -> Read:
        """Read tokens of queries, (queries, tokens), after those of ``before``.

        Layers above the routing layer attend to the documents ``selected``, by default
        those that the last token of a single query routes to; several queries attend to
        all documents, as in training. ``watch`` is called after each layer.
        """
        first = DOCUMENT_TOKENS
        if before:
            first += before[0][0].shape[2]
        positions = torch.arange(first, first + ids.shape[1], device=self.device)
        hidden = self.decoder.model.embed_tokens(ids)
        routing = torch.empty(0)
        query_keys = QueryKeys()
        # a layer's documents, their tokens' numbers; None: all
        attended = documents.documents
        token_numbers = None
        for number, layer in enumerate(self.decoder.model.layers):
            if number == self.settings.routing_layer + 1 and selected is not None:
                attended = len(selected)
                token_numbers = documents.tokens_of(selected)
            query, key, value = self._projected(layer, hidden, positions)
            if before is not None:
                earlier_key, earlier_value = before[number]
                key = torch.cat((earlier_key, key), 2)
                value = torch.cat((earlier_value, value), 2)
            query_keys.append((key, value))
            document_keys, document_values = documents.of_layer(number, token_numbers)
            factor = self._factor(number, attended)
            seen = Attended(query, document_keys, document_values, key, value, factor)
            mixed, scores = query_attention(seen, *self._sink(number))
            if number == self.settings.routing_layer:
                routing = max_similarities(
                    scores, documents.document_of, documents.documents
                ).sum(1)
                if selected is None:
                    selected = self._selected(routing)
            hidden = hidden + layer.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            if watch is not None:
                digits = self._digit_logits(hidden[:, -1:])[:, 0]
                watch(number, seen, token_numbers, digits)
        return Read(self._digit_logits(hidden), query_keys, routing, selected)

    def _selected(self, routing: Tensor) -> Tensor | None:
        """The documents with the largest ``routing``, (queries, documents), in order.

        None for all of them: if there are several queries, or few documents.
        """
        queries, documents = routing.shape
        best_documents = self.settings.best_documents
        if queries != 1 or documents <= best_documents:
            return None
        return routing[0].topk(best_documents).indices.sort().values

    def _digit_logits(self, hidden: Tensor) -> Tensor:
        """The logits of the ten digits, (queries, tokens, 10), float32."""
        head = self.decoder.lm_head.weight[list(self.layout.digits)]  # (10, d_model)
        logits: Tensor = self.decoder.model.norm(hidden) @ head.T
        return logits.float()

    def query_ids(self, query: str) -> Tensor:
        """Lay out a query as a batch of one: (1, tokens)."""
        return torch.from_numpy(self.layout.query(query))[None].to(self.device)

    def _factor(self, layer: int, documents: int) -> Tensor:
        """A layer's s_L * log N.

        N is at least 2, since log 1 = 0 would make all weights equal.
        """
        if self.settings.attention != "ssmax":
            return torch.ones((), device=self.device)
        return self.scalars[layer] * math.log(max(2, documents))

    def _sink(self, layer: int) -> tuple[Tensor | None, float]:
        """The sink's logit and share in a training step.

        Outside training there is no sink.
        """
        if self.settings.attention != "sink" or self.gate is None or not self.training:
            return None, 0.0
        return self.scalars[layer] + self.gate.length, self.gate.share

    def _projected(
        self,
        layer: Any,  # noqa: ANN401
        hidden: Tensor,
        positions: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries, keys and values of a layer.

        Queries are (rows, heads, tokens, head_dim), keys and values (rows, kv_heads,
        tokens, head_dim).
        """
        attention = layer.self_attn
        shape = (*hidden.shape[:2], -1, layer.self_attn.head_dim)
        normed = layer.input_layernorm(hidden)
        query = attention.q_norm(attention.q_proj(normed).view(shape)).transpose(1, 2)
        key = attention.k_norm(attention.k_proj(normed).view(shape)).transpose(1, 2)
        value = attention.v_proj(normed).view(shape).transpose(1, 2)
        turn = import_module(
            "transformers.models.qwen3.modeling_qwen3"
        ).apply_rotary_pos_emb
        query, key = turn(
            query, key, *self.decoder.model.rotary_emb(hidden, positions[None])
        )
        return query, key, value
