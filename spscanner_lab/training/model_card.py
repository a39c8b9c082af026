"""The model card of a trained checkpoint.

It shows the model, its training data, its recipe and its validation.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spscanner_rag import __version__
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.checkpoint.config import lexical_names
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.escaping import markdown_code, markdown_text, one_line

MODEL_CARD = "README.md"

_KINDS = {
    "evidence": (
        "a single-pass scanner",
        (
            "Reads a question and a whole document once and gives every sentence a"
            " relevance logit."
        ),
    ),
    "reranker": (
        "a reranker",
        "Reads a passage with a question and gives the pair a relevance logit.",
    ),
    "embedder": (
        "an embedding model",
        "Gives a question and its answers similar vectors.",
    ),
}


def write_model_card(
    folder: Path,
    # a `ScannerModel`, or a sequence classifier of transformers
    model: Any,  # noqa: ANN401
    settings: ScannerSettings,
    word_vectors: WordVectors | None = None,
) -> None:
    """Write ``README.md`` into a checkpoint folder."""
    training = settings.training
    reader = "MambaReranker" if isinstance(model, ScannerModel) else "CrossEncoder"
    facts = _facts_of_model(model, settings)
    if word_vectors is not None:
        facts.append(("Word vectors", str(word_vectors)))
    facts += _facts_of_training(training)
    sizes = []
    for source, count in training["questions_by_source"].items():
        sizes.append((source, f"{count:,}"))
    parts = [
        *_opening(folder.name, training["stage"], reader),
        _table(("", ""), facts),
        "## Trained on",
        _table(("source", "questions"), sizes),
    ]
    left_out = training["left_out"]
    if left_out:
        parts.append(
            f"{left_out:,} documents that share text with validation documents were"
            " left out."
        )
    recipe = list(training["recipe"].items())
    parts += ["## Recipe", _table(("", ""), recipe, as_code=True)]
    parts += _measured(training)
    write_whole(folder / MODEL_CARD, "\n\n".join(parts) + "\n")


def _facts_of_model(
    model: Any,  # noqa: ANN401
    settings: ScannerSettings,
) -> list[tuple[str, str]]:
    config = model.config
    if isinstance(model, ScannerModel):
        embedding = model.backbone.embedding
        number = 2 if config.mixer is None else 1
        architecture = (
            f"Mamba-{number}, {config.n_layer} layers, width {config.d_model}, state"
            f" {config.d_state}"
        )
    else:
        embedding = model.get_input_embeddings()
        architecture = (
            f"{type(model).__name__}, {config.num_hidden_layers} layers, width"
            f" {config.hidden_size}"
        )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    outside = parameters - embedding.weight.numel()
    sizes = f"{parameters:,}, of which {outside:,} outside the token embedding"
    reanchoring = "no"
    if settings.reanchor_tokens:
        reanchoring = f"question repeated every {settings.reanchor_tokens} tokens"
    return [
        ("Architecture", architecture),
        ("Parameters", sizes),
        ("Vocabulary", f"{config.vocab_size:,} tokens"),
        ("Re-anchoring", reanchoring),
        ("Lexical channel", ", ".join(lexical_names(settings)) or "no"),
    ]


def _facts_of_training(training: dict[str, Any]) -> list[tuple[str, str]]:
    facts = []
    if "encoder" in training:
        facts.append(("Encoder", _encoder(training["encoder"])))
    steps = f"{training['steps']:,}"
    best_step = training.get("best_step")
    if best_step is not None:
        steps += f", weights of step {best_step:,}"
    facts += [
        ("Started from", training["started_from"]),
        ("Steps", steps),
        ("Time", f"{training['hours']} hours on {training['hardware']}"),
        ("Made with", f"spscanner-rag {__version__}"),
    ]
    return facts


def _encoder(record: dict[str, Any]) -> str:
    counts = []
    for source, count in record["documents_by_source"].items():
        counts.append(f"{source} {count}")
    summary = (
        f"{record['started_from']}, {record['steps']:,} more steps on documents of"
        f" {', '.join(counts)}"
    )
    cross_steps = record.get("cross_steps", 0)
    if cross_steps:
        summary += f"; a cross-reader, {cross_steps:,} steps from there"
    return summary


def _opening(name: str, stage: str, reader: str) -> list[str]:
    kind, does = _KINDS[stage]
    shown = json.dumps(one_line(name))
    module = "spscanner_rag.baselines"
    reader = "Dense" if stage == "embedder" else reader
    call = f'{stage} = {reader}({shown}, "passage")'
    if stage == "evidence":
        module = "spscanner_rag"
        reader = "Scanner"
        call = f"scanner = Scanner.from_pretrained({shown})"
    code = f"```python\nfrom {module} import {reader}\n\n{call}\n```"
    return [f"# {markdown_text(name)}: {kind}", does, code]


def _measured(training: dict[str, Any]) -> list[str]:
    if "validation_ranking" in training:
        title = "Rankings of passages"
        measured = training["validation_ranking"]
        head = tuple(next(iter(measured.values()), {}))
    else:
        title = "Sentence recall"
        measured = training["validation_recall"]
        head = ("@1", "@5", "@10", "@50")
    rows = []
    for source, values in measured.items():
        percents = [f"{100 * value:.1f}" for value in values.values()]
        rows.append((source, *percents))
    table = "Not measured: no validation files were given."
    if rows:
        table = _table(("source", *head), rows)
    return [f"## {title} on documents that were not trained on", table]


def _table(
    head: tuple[str, ...], rows: Sequence[tuple[Any, ...]], as_code: bool = False
) -> str:
    """Make a Markdown table.

    ``as_code`` shows all cells but the first of each row as code.
    """
    shown = markdown_code if as_code else markdown_text
    lines = [head, ("---",) * len(head)]
    for first, *cells in rows:
        shown_cells = [shown(str(cell)) for cell in cells]
        lines.append((markdown_text(str(first)), *shown_cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
