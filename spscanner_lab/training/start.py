"""The checkpoint that training starts from: a base, or a new model and tokenizer."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.baselines.reranker_layout import RERANKER
from spscanner_rag.checkpoint import (
    Checkpoint,
    ScannerSettings,
    load_checkpoint,
    locate,
    new_model,
)
from spscanner_rag.checkpoint.bounded_files import read_json
from spscanner_rag.checkpoint.digests import DIGESTS
from spscanner_rag.checkpoint.file_names import CONFIG, PICKLED, TOKENIZER, WORD_VECTORS
from spscanner_rag.checkpoint.layout import SCANNER, Layout
from spscanner_rag.checkpoint.location import current_files
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.checkpoint.word_vectors_file import read_word_vectors
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.system.whole_files import whole_file

_LEXICAL = ("match", "prior", "surroundings", "soft", "least_units")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files that a run reads, and where it writes."""

    data: Sequence[Path]
    validation: Sequence[Path]
    out: Path
    base: str | None  # a checkpoint to start from
    config: Path | None  # or the configuration of a model to train from scratch


def check_start(files: RunFiles, recipe: Recipe) -> None:
    """Raise ``ValueError`` unless a run's stage can use what it starts from.

    A run starts from either a base or a configuration.
    """
    if (files.base is None) == (files.config is None):
        raise ValueError(
            "expected either a base checkpoint to fine-tune or a model configuration to"
            " train from scratch: give one of --base and --config"
        )
    if recipe.stage == "embedder" and files.base is None:
        raise ValueError(
            'stage is "embedder" with --config; expected --base with an embedding model'
        )
    if files.config is not None:
        _read_shape(files.config, recipe.vocab_size, recipe)
    else:
        locate(files.base)


def start_checkpoint(
    files: RunFiles, recipe: Recipe, documents: Iterable[Document], device: torch.device
) -> Checkpoint:
    """The checkpoint of a scanner to train, in float32.

    A base that is a scanner keeps its settings and gains the parts of the lexical
    channel that the recipe adds; a language model gets a head and the recipe's
    settings. ``documents`` are read only to learn a vocabulary.
    """
    if files.base is None:
        return _from_nothing(files, recipe, documents, device)
    # for new weights: a head, parts of the lexical channel
    torch.manual_seed(recipe.seed)
    loaded = load_checkpoint(
        files.base,
        device=device,
        dtype=torch.float32,
        require_head=False,
        layout=_layout(recipe),
    )
    # trained and measured without its encoder, which stays as it is
    base = replace(loaded, meaning=None)
    settings = base.settings
    if not base.has_head:
        return _with_parts(base, _read_as(settings, recipe))
    parts = {}
    for part in _LEXICAL:
        parts[part] = getattr(settings, part) or getattr(recipe, f"lexical_{part}")
    grown = replace(settings, **parts)
    if grown == settings:
        return base
    return _with_parts(base, grown)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Learn a byte-level BPE tokenizer, which can encode any text.

    It has 256 to ``vocab_size`` tokens.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _from_nothing(
    files: RunFiles, recipe: Recipe, documents: Iterable[Document], device: torch.device
) -> Checkpoint:
    assert files.config is not None
    stored = files.out / TOKENIZER  # from the run that is resumed
    if stored.exists():
        tokenizer = read_tokenizer(stored)
    else:
        texts = (document.text for document in documents)
        tokenizer = train_tokenizer(texts, recipe.vocab_size)
        files.out.mkdir(parents=True, exist_ok=True)
        with whole_file(stored) as unfinished:
            tokenizer.save(str(unfinished))
    config = _read_shape(files.config, tokenizer.get_vocab_size(), recipe)
    settings = _read_as(ScannerSettings(), recipe)
    torch.manual_seed(recipe.seed)
    model = new_model(config, settings).to(device)
    source = str(files.config)
    word_vectors = _bundled_table() if settings.soft else None
    return Checkpoint(
        model=model,
        settings=settings,
        tokenizer=tokenizer,
        source=source,
        folder=files.out,
        published=False,
        word_vectors=word_vectors,
    )


def _layout(recipe: Recipe) -> Layout:
    return RERANKER if recipe.stage == "reranker" else SCANNER


def _read_shape(path: Path, vocab_size: int, recipe: Recipe) -> Mamba2Config:
    try:
        return _layout(recipe).config(read_json(path) | {"vocab_size": vocab_size})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _bundled_table() -> WordVectors:
    return read_word_vectors(locate(None) / WORD_VECTORS)


def _with_parts(base: Checkpoint, settings: ScannerSettings) -> Checkpoint:
    """The base with these settings.

    New parts start at zero, so that a scanner's logits do not change.
    """
    model = new_model(base.model.config, settings).to(base.model.device)
    if model.match_embedding is not None:
        torch.nn.init.zeros_(model.match_embedding.weight)
    if model.lexical_prior is not None and base.has_head:
        torch.nn.init.zeros_(model.lexical_prior.weight)
    if model.soft_prior is not None and base.has_head:
        torch.nn.init.zeros_(model.soft_prior.bias)
    model.load_state_dict(base.model.state_dict(), strict=False)
    word_vectors = None
    if settings.soft:
        word_vectors = base.word_vectors or _bundled_table()
    return replace(base, model=model, settings=settings, word_vectors=word_vectors)


def _read_as(settings: ScannerSettings, recipe: Recipe) -> ScannerSettings:
    parts = {part: getattr(recipe, f"lexical_{part}") for part in _LEXICAL}
    return replace(
        settings,
        reanchor_tokens=recipe.reanchor_tokens or None,
        text_weight=0.0,
        **parts,
    )


def inputs_of(files: RunFiles) -> dict[str, str]:
    """SHA-256 of the files that a run learns from, for each option.

    Takes about 1.3 seconds per gigabyte.

    A run resumes only with the same contents; paths may change. Files that do not exist
    are skipped here, because the stage refuses them. So are files of a base whose
    digests are in its ``config.json``, because loading checks them.
    """
    base_files = []
    if files.base is not None:
        base_files = _of_checkpoint(current_files(locate(files.base)))
    config_files = []
    if files.config:
        config_files.append(files.config)
    return {
        "--data": _digest(files.data),
        "--validation": _digest(files.validation),
        "--base": _digest(base_files),
        "--config": _digest(config_files),
    }


def _of_checkpoint(folder: Path) -> list[Path]:
    section = read_json(folder / CONFIG).get("spscanner")
    recorded = section.get(DIGESTS) if isinstance(section, dict) else None
    checked = recorded if isinstance(recorded, dict) else {}
    weights = [PICKLED, *sorted(path.name for path in folder.glob("*.safetensors"))]
    unchecked = []
    for name in (CONFIG, TOKENIZER, WORD_VECTORS, *weights):
        if name not in checked:
            unchecked.append(folder / name)
    return unchecked


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in filter(Path.is_file, paths):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
