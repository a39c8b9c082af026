"""The model card of a trained checkpoint: what it is, what it learned from, how, and how well it does."""

import os
from pathlib import Path
from typing import Any

from spscanner_rag import __version__
from spscanner_rag.layouts import ScannerSettings
from spscanner_rag.mamba2.model import ScannerModel

MODEL_CARD = "README.md"


def write_model_card(folder: Path, model: ScannerModel, settings: ScannerSettings) -> None:
    """Write ``README.md`` into a checkpoint folder; it is whole or not there."""
    training, config = settings.training, model.config
    parameters = sum(parameter.numel() for parameter in model.parameters())
    beside_embedding = parameters - model.backbone.embedding.weight.numel()
    facts = [
        ("Architecture", f"Mamba-2, {config.n_layer} layers, width {config.d_model}, state {config.d_state}"),
        ("Parameters", f"{parameters:,}, of which {beside_embedding:,} beside the token embedding"),
        ("Vocabulary", f"{config.vocab_size:,} tokens"),
        (
            "Re-anchoring",
            f"question repeated every {settings.reanchor_tokens} tokens"
            if settings.reanchor_tokens
            else "no",
        ),
        ("Lexical channel", ", ".join(_lexical(settings)) or "no"),
        ("Started from", training["started_from"]),
        ("Steps", f"{training['steps']:,}"),
        ("Time", f"{training['hours']} hours on {training['hardware']}"),
        ("Made with", f"spscanner-rag {__version__}"),
    ]
    recall = training["validation_recall"]
    parts = [
        f"# {folder.name}: a single-pass scanner",
        "Reads a question and a whole document once and gives every sentence a relevance logit.",
        f'```python\nfrom spscanner_rag import Scanner\n\nscanner = Scanner.from_pretrained("{folder.name}")\n```',
        _table(("", ""), facts),
        "## Trained on",
        _table(("source", "questions"), [(s, f"{n:,}") for s, n in training["questions_by_source"].items()]),
        "## Recipe",
        _table(("", ""), [(key, f"`{value}`") for key, value in training["recipe"].items()]),
        "## Sentence recall on documents that were not trained on",
    ]
    if recall:
        rows = [
            (source, *(f"{100 * value:.1f}" for value in values.values()))
            for source, values in recall.items()
        ]
        parts.append(_table(("source", "@1", "@5", "@10", "@50"), rows))
    else:
        parts.append("Not measured: no validation files were given.")
    unfinished = folder / (MODEL_CARD + ".part")
    unfinished.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / MODEL_CARD)


def _lexical(settings: ScannerSettings) -> list[str]:
    return [name for name, on in (("match embedding", settings.match), ("BM25 prior", settings.prior)) if on]


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
