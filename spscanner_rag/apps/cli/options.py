"""Options of several commands, with their files and messages."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cached_property, wraps
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, get_type_hints

import typer
import typer.core
from typer.models import OptionInfo

from spscanner_rag.apps.cache import ReadCache
from spscanner_rag.baselines.names import short_usages
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.folders import read_all
from spscanner_rag.files.formats import formats_in_words
from spscanner_rag.files.output import check_output, write_output
from spscanner_rag.files.reading import read
from spscanner_rag.system.whole_files import is_special, write_whole
from spscanner_rag.text.escaping import encodable, one_line

if TYPE_CHECKING:
    from spscanner_rag.baselines.register import LoadOptions
    from spscanner_rag.baselines.settings import Setting
    from spscanner_rag.baselines.unit_kinds import UnitKind
    from spscanner_rag.scanner import Scanner


def option(
    default: object,
    meaning: str,
    metavar: str | None = None,
    *,
    names: Sequence[str] = (),
    least: float | None = None,
    most: float | None = None,
) -> Any:  # noqa: ANN401 - as typer.Option
    """Declare an option, which is required if the default is ``...``.

    The help does not show None or "".

    ``least`` and ``most`` bound a number.
    """
    return typer.Option(
        default,
        *names,
        help=meaning,
        metavar=metavar,
        min=least,
        max=most,
        show_default=default not in (None, ""),
    )


def argument(meaning: str, metavar: str | None = None, default: object = ...) -> Any:  # noqa: ANN401 - as typer.Argument
    """Declare a positional argument."""
    return typer.Argument(default, help=meaning, metavar=metavar, show_default=False)


_FORMATS = formats_in_words()
FILES = argument(
    f"{_FORMATS[0].upper()}{_FORMATS[1:]}, or folders of them; - is standard input.",
    "FILE...",
)
QUERY = option(..., "The question.", names=("--query", "-q"))
MODEL = option(None, "Checkpoint: a folder or a Hub id; default: the bundled one.")
DEVICE = option("auto", "auto, cpu, cuda, cuda:N or mps.")
THREADS = option(
    None,
    "CPU threads; default: physical cores, or OMP_NUM_THREADS if less.",
    "N",
    least=1,
)
TOKENIZER = option(
    None,
    "For checkpoints without one: a tokenizer.json, its folder or a Hub id.",
    "PATH",
)
SEGMENT_TOKENS = option(
    None, "Tokens the model reads at a time; default: the scanner's."
)
CACHE = option(
    True,
    "Keep files' texts and vectors in a cache folder ($SPSCANNER_CACHE).",
    names=["--cache/--no-cache"],
)
PROGRESS = typer.Option(
    None,
    "--progress/--no-progress",
    help="Show progress on standard error; default: only on a terminal.",
    show_default=False,
    callback=lambda asked: sys.stderr.isatty() if asked is None else asked,
)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options.

    Each of their fields becomes an option of the command.

    A switch that is off by default gets only its positive name, without ``--no-``.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    flat: dict[str, inspect.Parameter] = {}
    for name, parameter in signature.parameters.items():
        own = [(name, parameter.default, parameter.annotation)]
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            hints = get_type_hints(parameter.annotation)
            own = [
                (each.name, each.default, hints[each.name])
                for each in fields(parameter.annotation)
            ]
        for each, info, kind in own:
            if (
                isinstance(info, OptionInfo)
                and info.default is False
                and not info.param_decls
            ):
                info.param_decls = (f"--{each.replace('_', '-')}",)
            flat[each] = inspect.Parameter(
                each, parameter.KEYWORD_ONLY, default=info, annotation=kind
            )

    @wraps(command)
    def called(**options: Any) -> None:  # noqa: ANN401 - values from the command line
        made = {
            name: group(**{each.name: options.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    called.__signature__ = signature.replace(parameters=list(flat.values()))  # type: ignore[attr-defined]
    called.__annotations__ = {
        name: parameter.annotation for name, parameter in flat.items()
    }
    return called


@dataclass(frozen=True, kw_only=True)
class ScannerOptions:
    """Device, dtype, threads and tokenizer of a scanner."""

    device: str = DEVICE
    dtype: str = option("auto", "auto, float32 or bfloat16.")
    threads: int | None = THREADS
    tokenizer: str | None = TOKENIZER

    def scanner(
        self,
        model: str | None,
        segment_tokens: int | None = None,
        cache: ReadCache | None = None,
    ) -> "Scanner":
        """Load a checkpoint, by default the bundled one.

        The scanner keeps its sentence vectors in ``cache``.
        """
        from spscanner_rag import Scanner

        scanner = Scanner.from_pretrained(
            model,
            device=self.device,
            dtype=self.dtype,
            threads=self.threads,
            segment_tokens=segment_tokens,
            tokenizer=self.tokenizer,
        )
        if scanner.meaning is not None:
            scanner.meaning.cache.store = cache
        return scanner


@dataclass(frozen=True, kw_only=True)
class RetrieverOptions(ScannerOptions):
    """Names and units of retrievers, and how to load their models."""

    retrievers: str = option(
        "scanner,bm25,dense",
        f"{', '.join(short_usages())}.",
        "NAME,...",
    )
    unit: str = option(
        "sentence",
        "sentence, chunk (300 words) or chunk:WORDS, passage, document; a scanner ranks"
        " sentences only.",
        "UNIT,...",
    )
    dtype: str = option("auto", "For scanners: auto, float32 or bfloat16.")
    trust_remote_code: bool = option(
        False, "Let models from the Hub run their own code."
    )

    def loading(
        self, unit: str = "sentence", titles: dict[str, str] | None = None
    ) -> "LoadOptions":
        """Return the loading options for retrievers that rank units of this kind.

        Loading checks the kind.
        """
        from spscanner_rag.baselines.register import LoadOptions

        own: UnitKind = unit  # type: ignore[assignment]
        return LoadOptions(
            own, self.device, self.dtype, self.trust_remote_code, titles, self.tokenizer
        )

    @cached_property
    def units(self) -> list[str]:
        """The kinds of units in ``--unit``, checked."""
        from spscanner_rag.baselines.unit_kinds import segmenter_of

        units = names_in("--unit", self.unit)
        for kind in units:
            segmenter_of(kind)  # type: ignore[arg-type]  # raises an error that lists the kinds
        return units

    @cached_property
    def settings(self) -> "list[Setting]":
        """Every retriever, with every kind of unit that it ranks."""
        from spscanner_rag.baselines.names import check_name
        from spscanner_rag.baselines.settings import settings_of

        names = names_in("--retrievers", self.retrievers)
        for name in names:
            check_name(name)
        return settings_of(names, self.units)


class OutputFormat(StrEnum):
    """The format of the results."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    LINES = "jsonl"
    PDF = "pdf"


ENDINGS = {
    ".txt": OutputFormat.TEXT,
    **{f".{form}": form for form in OutputFormat},
    ".htm": OutputFormat.HTML,
    ".md": OutputFormat.MARKDOWN,
}
"""The format for each file name ending."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The file and the format of the results; ``ValueError`` for an unknown ending."""

    output_format: OutputFormat | None = option(
        None, "Default: by the ending of --out, else text.", names=["--format"]
    )
    json: bool = option(
        False, "Same as --format jsonl: one line of JSON per passage, for pipes."
    )
    out: Path | None = option(
        None,
        "File to write instead of standard output; its ending (.txt .json .jsonl .html"
        " .md .csv .pdf) decides the format; a PDF is a copy of the document with its"
        " best sentences highlighted.",
    )
    text_out: Path | None = option(
        None, "File for the text that was read from a single document."
    )

    @cached_property
    def form(self) -> OutputFormat:
        """The requested format, else that of the ending.

        Text for standard output and for devices.
        """
        if self.json or self.output_format is not None:
            return self.output_format or OutputFormat.LINES
        if self.out is None or is_special(self.out):
            return OutputFormat.TEXT
        known = ENDINGS.get(self.out.suffix.lower())
        if known is None:
            got = f"the ending {self.out.suffix}" if self.out.suffix else "no ending"
            raise ValueError(
                f"--out {self.out}: got {got}; expected one of {', '.join(ENDINGS)}, or"
                " --format with it"
            )
        return known

    def read(
        self,
        paths: Sequence[str],
        cache: ReadCache | None = None,
        progress: bool = False,
    ) -> list[TextFile]:
        """Read files and folders.

        Refuse to overwrite them, and report what is left out of a folder.
        """
        from spscanner_rag.apps.pages.terminal import page_progress

        check_output(self.out, paths)
        check_output(self.text_out, paths, "--text-out")
        reader = cache.read if cache else read
        with page_progress(progress) as start:
            documents = read_all(
                paths, tell, lambda path: reader(path, progress=start(path))
            )
        if self.text_out and len(documents) > 1:
            raise ValueError(
                f"--text-out: got {len(documents)} documents; expected a single one"
            )
        check_output(self.out, [document.path for document in documents])
        return documents

    def stream(self, terminal: TextIO) -> TextIO:
        """Return the stream to format text for.

        It is the terminal, or a buffer without colours for ``--out``.
        """
        return StringIO() if self.out else terminal

    def write(self, documents: Sequence[TextFile], content: str | bytes) -> None:
        """Write the result, and the text of the document if requested."""
        if self.text_out:
            write_whole(self.text_out, documents[0].text)
        write_output(content, self.out, is_page=self.form is OutputFormat.HTML)


def names_in(option: str, value: str) -> list[str]:
    """The names in a comma-separated option.

    ``ValueError`` if one is empty or given twice.
    """
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ValueError(f"{option}: got {value!r}; expected names separated by commas")
    if len(set(names)) < len(names):
        raise ValueError(f"{option}: got {value!r}, a name twice; expected each once")
    return names


def tell(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(
        encodable(f"spscanner: {one_line(message)}\n", sys.stderr.encoding or "utf-8")
    )


class SeveralValues(typer.core.TyperCommand):
    """A command whose repeatable options also take several words.

    The words end at the next option or ``--``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's, or typer's own
        """Put the flag of such an option before each of its words, then parse."""
        options = [
            param for param in self.get_params(ctx) if param.param_type_name == "option"
        ]
        repeatable = {
            flag for option in options if option.multiple for flag in option.opts
        }
        spread: list[str] = []
        flag = before = (
            ""  # the option that takes the current words, and the previous word
        )
        for word in args:
            if word.startswith("-") and word != "-":
                flag = word if word in repeatable else ""
            elif flag and before != flag:
                spread.append(flag)
            spread.append(word)
            before = word
        return list(super().parse_args(ctx, spread))
