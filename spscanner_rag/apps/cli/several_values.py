"""Commands whose repeatable options take several values: ``--data a b`` means ``--data a --data b``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import typer.core


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
