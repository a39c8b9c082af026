"""Options that take several words."""

from typing import Any

import typer.core


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
