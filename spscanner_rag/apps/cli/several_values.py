"""Options that take several words."""

from typing import Any

import typer.core


class SeveralValues(typer.core.TyperCommand):
    """A command whose repeatable options also take several words.

    The words end at the next option or ``--``.
    """

    def parse_args(
        self,
        ctx: Any,  # noqa: ANN401 - click's, or typer's own
        args: list[str],
    ) -> list[str]:
        """Put the flag of such an option before each of its words, then parse."""
        repeatable: set[str] = set()
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "option" and parameter.multiple:
                repeatable.update(parameter.opts)
        spread: list[str] = []
        flag = ""  # the option that takes the current words
        before = ""  # the previous word
        for word in args:
            if word.startswith("-") and word != "-":
                flag = ""
                if word in repeatable:
                    flag = word
            elif flag and before != flag:
                spread.append(flag)
            spread.append(word)
            before = word
        return list(super().parse_args(ctx, spread))
