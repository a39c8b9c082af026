"""Options and messages that several commands share."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
import typer.core
from typer.models import OptionInfo

from spscanner_rag.text.escaping import encodable, one_line

if TYPE_CHECKING:
    from spscanner_rag.baselines.base import UnitKind
    from spscanner_rag.lab.retriever_names import Options
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
    """An option, required if the default is ``...``; the help leaves out None and an empty text.

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
    """An argument, which has no name on the command line."""
    return typer.Argument(default, help=meaning, metavar=metavar, show_default=False)


QUERY = option(..., "The question.", names=("--query", "-q"))
MODEL = option(None, "Checkpoint: a folder or a Hub id; default the bundled one.")
DEVICE = option("auto", "auto, cpu, cuda, cuda:N or mps.")
THREADS = option(
    None,
    "Threads that compute on the CPU; default one for each physical core, or OMP_NUM_THREADS if less.",
    "N",
    least=1,
)
TOKENIZER = option(
    None, "For checkpoints named here that have none: a tokenizer.json, its folder or a Hub id.", "PATH"
)
SEGMENT_TOKENS = option(None, "Tokens the model reads at a time; default the scanner's.")
CACHE = option(
    True,
    "Keep what was read of files, and their sentences' vectors, in the user's cache folder ($SPSCANNER_CACHE).",
    names=("--cache/--no-cache",),
)
PROGRESS = option(
    None, "Progress on standard error; default if a terminal.", names=("--progress/--no-progress",)
)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options: each of their fields becomes an option of the command.

    A switch that is off by default gets one name, without ``--no-``.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    flat: dict[str, inspect.Parameter] = {}
    for name, parameter in signature.parameters.items():
        own = [(name, parameter.default, parameter.annotation)]
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            hints = get_type_hints(parameter.annotation)
            own = [(each.name, each.default, hints[each.name]) for each in fields(parameter.annotation)]
        for each, info, kind in own:
            if isinstance(info, OptionInfo) and info.default is False and not info.param_decls:
                info.param_decls = (f"--{each.replace('_', '-')}",)
            flat[each] = inspect.Parameter(each, parameter.KEYWORD_ONLY, default=info, annotation=kind)

    @wraps(command)
    def called(**options: Any) -> None:  # noqa: ANN401 - what the command line gave
        made = {
            name: group(**{each.name: options.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    called.__signature__ = signature.replace(parameters=list(flat.values()))  # type: ignore[attr-defined]
    called.__annotations__ = {name: parameter.annotation for name, parameter in flat.items()}
    return called


@dataclass(frozen=True, kw_only=True)
class ScannerOptions:
    """Device and dtype of a scanner."""

    device: str = DEVICE
    dtype: str = option("auto", "auto, float32 or bfloat16.")
    threads: int | None = THREADS
    tokenizer: str | None = TOKENIZER

    def scanner(self, model: str | None, segment_tokens: int | None = None) -> "Scanner":
        """Load a checkpoint; None is the bundled one."""
        from spscanner_rag import Scanner

        return Scanner.from_pretrained(
            model,
            device=self.device,
            dtype=self.dtype,
            threads=self.threads,
            segment_tokens=segment_tokens,
            tokenizer=self.tokenizer,
        )


@dataclass(frozen=True, kw_only=True)
class RetrieverOptions(ScannerOptions):
    """Device and dtype of retrievers, and whether their models may run code of their own."""

    dtype: str = option("auto", "For scanners: auto, float32 or bfloat16.")
    trust_remote_code: bool = option(False, "Let models from the Hub run their own code.")

    def loading(self, unit: str = "sentence", titles: dict[str, str] | None = None) -> "Options":
        """How retrievers are loaded for a kind of units, which is checked then."""
        from spscanner_rag.lab.retriever_names import Options

        own: UnitKind = unit  # type: ignore[assignment]
        return Options(own, self.device, self.dtype, self.trust_remote_code, titles, self.tokenizer)


def names_in(option: str, value: str) -> list[str]:
    """The names in a comma-separated option; ``ValueError`` if one is empty or given twice."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ValueError(f"{option}: got {value!r}; expected names separated by commas")
    if len(set(names)) < len(names):
        raise ValueError(f"{option}: got {value!r}, a name twice; expected each once")
    return names


def shows_progress(asked: bool | None) -> bool:
    """True if progress was asked for, or nothing was said and standard error is a terminal."""
    return sys.stderr.isatty() if asked is None else asked


def tell(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(encodable(f"spscanner: {one_line(message)}\n", sys.stderr.encoding or "utf-8"))


class SeveralValues(typer.core.TyperCommand):
    """A command in which an option that may be repeated also takes all words up to the next option, or ``--``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's, or typer's own
        """Write the flag of such an option before each of its words, and parse the result."""
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        repeatable = {flag for option in options if option.multiple for flag in option.opts}
        spread: list[str] = []
        flag = before = ""  # the option whose words these are, and the word before
        for word in args:
            if word.startswith("-") and word != "-":
                flag = word if word in repeatable else ""
            elif flag and before != flag:
                spread.append(flag)
            spread.append(word)
            before = word
        return list(super().parse_args(ctx, spread))
