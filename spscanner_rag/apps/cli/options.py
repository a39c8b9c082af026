"""What the commands share: options, groups of options, options with several values, and messages."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import typer
import typer.core

from spscanner_rag.text.escaping import encodable, one_line

if TYPE_CHECKING:
    from spscanner_rag.scanner import Scanner


def optional(meaning: str, metavar: str | None = None, parser: Callable[[str], object] | None = None) -> Any:  # noqa: ANN401 - as typer.Option
    """An option that may be left out; its help names the default."""
    return typer.Option(help=meaning, metavar=metavar, parser=parser, show_default=False)


def optional_number(meaning: str, kind: Callable[[str], float] = int) -> Any:  # noqa: ANN401 - as typer.Option
    """An option for an ``int`` or a ``float`` that may be left out."""

    def parsed(value: str) -> float:
        try:
            return kind(value)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise typer.BadParameter(f"got {value!r}; expected {expected}") from None

    return optional(meaning, "NUMBER", parsed)


def at_least(least: int, meaning: str, metavar: str = "N") -> Any:  # noqa: ANN401 - as typer.Option
    """An option for a whole number that may be left out, with a smallest value."""
    return typer.Option(min=least, metavar=metavar, help=meaning, show_default=False)


Query = Annotated[str, typer.Option("--query", "-q", help="The question.")]
Model = Annotated[str | None, optional("Checkpoint: a folder or a Hub id; default the bundled one.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")]
Threads = Annotated[
    int | None,
    at_least(
        1, "Threads that compute on the CPU; default one for each physical core, or OMP_NUM_THREADS if less."
    ),
]
SegmentTokens = Annotated[
    int | None, optional_number("Tokens the model reads at a time; default the scanner's.")
]
ShowProgress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Progress on standard error; default if a terminal."),
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: each of their fields becomes an option, with its default."""
    signature = inspect.signature(command, eval_str=True)
    groups = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    flat = []
    for name, parameter in signature.parameters.items():
        if name not in groups:
            flat.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(groups[name], include_extras=True)
        for own in fields(groups[name]):
            default = inspect.Parameter.empty if own.default is MISSING else own.default
            kind = inspect.Parameter.KEYWORD_ONLY
            flat.append(inspect.Parameter(own.name, kind, default=default, annotation=hints[own.name]))

    @wraps(command)
    def called(**options: Any) -> None:  # noqa: ANN401 - what the command line gave
        made = {
            name: group(**{own.name: options.pop(own.name) for own in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    called.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return called


@dataclass(frozen=True, kw_only=True)
class ScannerOptions:
    """Where a scanner computes."""

    device: Device = "auto"
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or int8.")] = "auto"
    threads: Threads = None

    def scanner(self, model: str | None, segment_tokens: int | None = None) -> "Scanner":
        """Load a checkpoint; None is the bundled one."""
        from spscanner_rag import Scanner

        return Scanner.from_pretrained(
            model, device=self.device, dtype=self.dtype, threads=self.threads, segment_tokens=segment_tokens
        )


@dataclass(frozen=True, kw_only=True)
class RetrieverOptions:
    """Where retrievers compute, and what they may do."""

    device: Device = "auto"
    dtype: Annotated[str, typer.Option(help="For scanners: auto, float32, bfloat16 or int8.")] = "auto"
    threads: Threads = None
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let models from the Hub run their own code.")
    ] = False


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
    """A command in which an option that may be repeated also takes all words up to the next option.

    A command that needs words of its own, such as FILE..., has to get some before such an option; if all stand
    behind it, the option takes one word and the command the others. ``--`` ends the values of an option.
    """

    argument_ending: ClassVar[str | None] = None
    """Ending of a word that is the command's own argument wherever it stands, except right after an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's, or typer's own
        """Repeat the flags of options that got several values, and parse the result."""
        needs_words = any(
            param.param_type_name == "argument" and param.required for param in self.get_params(ctx)
        )
        options = {
            flag: param
            for param in self.get_params(ctx)
            if param.param_type_name == "option"
            for flag in (*param.opts, *param.secondary_opts)
        }
        spread, own_words = _spread(args, options, self.argument_ending)
        return list(super().parse_args(ctx, spread if own_words or not needs_words else args))


class TrainCommand(SeveralValues):
    """``spscanner train``: its one argument is a recipe."""

    argument_ending = ".toml"


def _spread(args: Sequence[str], options: Mapping[str, Any], ending: str | None) -> tuple[list[str], int]:
    """The arguments with the flag of a repeatable option before each value, and how many words no option took."""
    spread: list[str] = []
    words, own_words = iter(args), 0
    repeated = ""  # the flag whose values are being read
    for word in words:
        if word == "--":
            rest = list(words)
            return [*spread, word, *rest], own_words + len(rest)
        if _is_flag(word):
            option = options.get(word)
            spread += [word, *_values(option, words)]
            repeated = word if option is not None and option.multiple else ""
        elif repeated and not (ending and word.endswith(ending)):
            spread += [repeated, word]
        else:
            spread.append(word)
            own_words += 1
    return spread, own_words


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _values(option: Any, words: Iterable[str]) -> list[str]:  # noqa: ANN401 - click's option, or typer's own
    """The words that an option takes at once, whatever they look like; none for ``--name=value``."""
    if option is None or option.is_flag or option.count:
        return []
    return [word for _, word in zip(range(option.nargs), words, strict=False)]
