"""Puts a run together from what the user says: documents, strategy, model, limits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.llm.asking import Asker, Budget, Prices
from spscanner_rag.lab.llm.language_models import (
    LanguageModel,
    Structured,
    language_model_of,
    named_model,
    structured_of,
)
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.synthesis.conversation import Conversation
from spscanner_rag.lab.synthesis.filters import LanguageDetector
from spscanner_rag.lab.synthesis.prompt_files import Prompt, prompts_digest, read_prompts
from spscanner_rag.lab.synthesis.reply_form import Form
from spscanner_rag.lab.synthesis.scripted import NAME, SCRIPTED
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.sources import read_sources, source_files
from spscanner_rag.lab.synthesis.strategies.chunk import ChunkMaker
from spscanner_rag.lab.synthesis.strategies.link import LinkMaker
from spscanner_rag.lab.synthesis.strategies.made import QuestionCheck, QuestionMaker
from spscanner_rag.lab.synthesis.supply import Shares, Supply
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.decontamination import SharedTextFinder
from spscanner_rag.scan.prepare import bundled_token_counter
from spscanner_rag.text.token_counts import CountTokens, resolve_counter

PRICED_ENCODING = "o200k_base"
"""Tokens are counted with this encoding where a reply does not report them."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model and how it is asked."""

    language_model: LanguageModel
    form: Form
    structured: Structured | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is made of besides its settings.

    ``llm`` is a name, or a model of either framework. ``reply_form`` is "auto", "json" or "keywords"; "auto" is
    JSON for a model whose framework can hold it to a schema. ``against`` are files of test documents.
    ``embedder`` is for the strategy "pair".
    """

    sources: tuple[Path, ...]
    llm: object = NAME
    against: tuple[Path, ...] = ()
    prompts: Path | None = None
    reply_form: str = "auto"
    embedder: object = "sentence-transformers/all-MiniLM-L6-v2"
    prices: Prices = field(default_factory=Prices)
    max_requests: int | None = None
    max_cost: float | None = None
    requests_per_minute: float | None = None


def model_of(llm: object, reply_form: str) -> Model:
    """The model of a name (``named_model``; "scripted" is the stand-in) or an object of either framework.

    Raises ``ValueError`` for an unknown form. With "json", a model that cannot be held to a schema is asked for
    JSON in the prompt alone.
    """
    if reply_form not in ("auto", "json", "keywords"):
        raise ValueError(f"reply form: got {reply_form!r}; expected auto, json or keywords")
    if llm == NAME:
        return Model(SCRIPTED, "json" if reply_form == "json" else "keywords")
    if isinstance(llm, str):
        made, language_model = named_model(llm)
    else:
        made, language_model = llm, language_model_of(llm)
    structured = structured_of(made) if reply_form != "keywords" else None
    form: Form = "json" if reply_form == "json" or structured is not None else "keywords"
    return Model(language_model, form, structured)


def supply_of(settings: SynthesisSettings, options: RunOptions, notify: Notify) -> Supply:
    """The supply of sub-documents, with the filters that the settings ask for."""
    detector = LanguageDetector() if settings.language_probability else None
    shares: Shares | None = None
    if options.against:
        finder = SharedTextFinder(
            read_sources(source_files(options.against)),
            min_words=settings.min_words,
            max_share=settings.max_share,
        )
        notify(f"documents are held against {finder.held_out_documents:,} test documents")
        shares = _told_by(finder)
    return Supply(settings, bundled_token_counter(), detector, shares)


def documents_of(options: RunOptions) -> Iterator[Document]:
    """The documents of the sources, one at a time; files that are not there are reported at once."""
    return read_sources(source_files(options.sources))


def maker_of(
    settings: SynthesisSettings, options: RunOptions, detector: LanguageDetector | None
) -> QuestionMaker:
    """The strategy."""
    check = QuestionCheck(settings, detector)
    if settings.strategy == "link":
        return LinkMaker(settings, check)
    if settings.strategy == "chunk":
        return ChunkMaker(settings, check)
    from spscanner_rag.baselines.embedders import encoder_of
    from spscanner_rag.lab.synthesis.strategies.pair import PairMaker

    return PairMaker(settings, check, encoder_of(options.embedder))


def conversation_of(model: Model, prompts: dict[str, Prompt], ask: Any, tries: int) -> Conversation:  # noqa: ANN401
    """How the model is asked."""
    return Conversation(ask, model.language_model, prompts, model.form, model.structured, tries)


def asker_of(options: RunOptions, replies: ReplyFile, notify: Notify) -> Asker:
    """Ask within a budget, which includes what the file of replies says was spent before."""
    budget = Budget(
        prices=options.prices,
        max_requests=options.max_requests,
        max_cost=options.max_cost,
        per_minute=options.requests_per_minute,
        requests=replies.attempts,
        usage=replies.usage,
    )
    return Asker(replies=replies, budget=budget, count_tokens=price_counter(notify), retries=5)


def price_counter(notify: Notify) -> CountTokens:
    """Counts tokens as providers do, or nearly, where the file of that encoding is not there."""
    try:
        return resolve_counter(PRICED_ENCODING)
    except OSError as error:
        notify(f"tokens are counted with the bundled checkpoint's tokenizer: {error}")
        return bundled_token_counter()


def kept_settings(settings: SynthesisSettings, options: RunOptions, model: Model) -> dict[str, object]:
    """What must be the same in every run in a folder."""
    kept: dict[str, object] = dict(settings.to_dict())
    kept |= {
        "sources": [str(path) for path in options.sources],
        "against": [str(path) for path in options.against],
        "model": model.language_model.name,
        "reply_form": model.form,
        "prompts": prompts_digest(read_prompts(options.prompts)),
    }
    if settings.strategy == "pair":
        kept["embedder"] = str(options.embedder)
    return kept


def _told_by(finder: SharedTextFinder) -> Callable[[Document], str | None]:
    def shares(document: Document) -> str | None:
        shared = finder.find(document)
        if shared is None:
            return None
        return (
            f"{shared.share:.1%} of its sentences, most with {shared.held_out_doc_id}: {shared.example:.200}"
        )

    return shares
