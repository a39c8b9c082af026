"""What an option of a selection means, where the API reference lists it as a field."""

import ast
from typing import Any

import griffe


class OptionMeanings(griffe.Extension):
    """Gives a field that `selection_option` declares its meaning as a docstring."""

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:  # noqa: ANN401 - as the base class
        """Read the meaning, the second argument, from the source."""
        declaration = attr.value
        if not isinstance(declaration, griffe.ExprCall):
            return
        if str(declaration.function) == "selection_option":
            meaning = ast.literal_eval(str(declaration.arguments[1]))
            attr.docstring = griffe.Docstring(meaning, parent=attr)
            attr.value = str(declaration.arguments[0])
