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
    config = model.config
    reanchor = settings.reanchor_tokens
    parameters = sum(parameter.numel() for parameter in model.parameters())
    best = training.get("best_step")
    if isinstance(model, ScannerModel):
        reader = "MambaReranker"
        embedding = model.backbone.embedding
        number = 2 if config.mixer is None else 1
        kind = (
            f"Mamba-{number}, {config.n_layer} layers, width {config.d_model}, state"
            f" {config.d_state}"
        )
    else:
        reader = "CrossEncoder"
        embedding = model.get_input_embeddings()
        kind = (
            f"{type(model).__name__}, {config.num_hidden_layers} layers, width"
            f" {config.hidden_size}"
        )
    outside_embedding = parameters - embedding.weight.numel()
    facts = [
        ("Architecture", kind),
        (
            "Parameters",
            (
                f"{parameters:,}, of which {outside_embedding:,} outside the token"
                " embedding"
            ),
        ),
        ("Vocabulary", f"{config.vocab_size:,} tokens"),
        (
            "Re-anchoring",
            f"question repeated every {reanchor} tokens" if reanchor else "no",
        ),
        ("Lexical channel", ", ".join(lexical_names(settings)) or "no"),
        *([("Word vectors", str(word_vectors))] if word_vectors is not None else []),
        *(
            [("Encoder", _encoder(training["encoder"]))]
            if "encoder" in training
            else []
        ),
        ("Started from", training["started_from"]),
        (
            "Steps",
            f"{training['steps']:,}"
            + (f", weights of step {best:,}" if best is not None else ""),
        ),
        ("Time", f"{training['hours']} hours on {training['hardware']}"),
        ("Made with", f"spscanner-rag {__version__}"),
    ]
    sizes = training["questions_by_source"]
    left_out = training["left_out"]
    shared = (
        f"{left_out:,} documents that share text with validation documents were left"
        " out."
    )
    parts = [
        *_opening(folder.name, training["stage"], reader),
        _table(("", ""), facts),
        "## Trained on",
        _table(
            ("source", "questions"),
            [(name, f"{count:,}") for name, count in sizes.items()],
        ),
        *([shared] if left_out else []),
        "## Recipe",
        _table(
            ("", ""),
            [(key, value) for key, value in training["recipe"].items()],
            as_code=True,
        ),
        *_measured(training),
    ]
    write_whole(folder / MODEL_CARD, "\n\n".join(parts) + "\n")


def _encoder(record: dict[str, Any]) -> str:
    sources = ", ".join(
        f"{name} {count}" for name, count in record["documents_by_source"].items()
    )
    cross = (
        f"; a cross-reader, {steps:,} steps from there"
        if (steps := record.get("cross_steps", 0))
        else ""
    )
    return (
        f"{record['started_from']}, {record['steps']:,} more steps on documents of"
        f" {sources}{cross}"
    )


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
    rows = [
        (source, *(f"{100 * v:.1f}" for v in values.values()))
        for source, values in measured.items()
    ]
    return [
        f"## {title} on documents that were not trained on",
        (
            _table(("source", *head), rows)
            if rows
            else "Not measured: no validation files were given."
        ),
    ]


def _table(
    head: tuple[str, ...], rows: Sequence[tuple[Any, ...]], as_code: bool = False
) -> str:
    """Make a Markdown table.

    ``as_code`` shows all cells but the first of each row as code.
    """
    shown = markdown_code if as_code else markdown_text
    body = [
        [markdown_text(str(first)), *(shown(str(cell)) for cell in cells)]
        for first, *cells in rows
    ]
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
