"""Renders HTML pages from jinja2 templates that escape all content.

The pages have a policy that forbids loading anything.

Also has what pages share: labels of retrievers and documents, and text with line breaks
and table rows.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import takewhile

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spscanner_rag.files.documents import name_of
from spscanner_rag.text.escaping import escaped, one_line

APPS = "spscanner_rag.apps"
"""The package of the pages' templates, unless another is named."""

_TITLE_CHARACTERS = 200

# For the name of a retriever, which may join several names with + or >.
_TRAILING = re.compile(r"[/\\]+(?=$|[+>]|\s\(|,\s)")
_FOLDERS = re.compile(r"(?<=:)[^+>]*[/\\]")

_BEGINS = re.compile(r"\s|[-*+•\u2013\u2014#|>]|\(?(?:\d{1,3}|[A-Za-z])[.)]\s")
"""The beginning of a paragraph or of a list item."""

_RULE = re.compile(
    r"\|?[\s:|-]*-[\s:|-]*\|?"
)  # the line between the head and the body of a Markdown table


def render(
    name: str,
    title: str,
    *,
    package: str = APPS,
    also_allowed: str | None = None,
    more_policy: str = "",
    **content: object,
) -> str:
    """Render the template ``name``.html in a package.

    It extends ``pages/templates/layout.html`` of `APPS`.

    Text is shown on one line, with control and bidirectional characters as escapes; the
    filter ``lines`` keeps line breaks. ``also_allowed`` names another page whose style
    sheet and script the policy allows.
    """
    allowed = [style_and_script(name, package)]
    if also_allowed:
        allowed.append(style_and_script(also_allowed, package))
    styles, scripts = (
        " ".join(map(hash_of, filter(None, own))) for own in zip(*allowed, strict=True)
    )
    policy = (
        f"default-src 'none'; style-src {styles};"
        f" {f'script-src {scripts}; ' if scripts else ''}"
    )
    policy += f"base-uri 'none'; form-action 'none'{more_policy}"
    trusted = dict(
        zip(
            ("policy", "style", "script"),
            map(Markup, (policy, *allowed[0])),
            strict=True,
        )
    )
    template = _templates(package).get_template(f"{name}.html")
    return template.render(
        content, title=one_line(title)[:_TITLE_CHARACTERS], **trusted
    )


@cache
def style_and_script(name: str, package: str = APPS) -> tuple[str, str]:
    """The style sheet of a page, and its script or "".

    The style sheet has the type and colours of all pages.
    """
    folder = files(package)
    script = folder.joinpath(f"{name}.js")
    style_of_all_pages = (
        files(APPS).joinpath("pages/templates/page.css").read_text("utf-8")
    )
    style_of_page = folder.joinpath(f"{name}.css").read_text("utf-8")
    return style_of_all_pages + style_of_page, (
        script.read_text("utf-8") if script.is_file() else ""
    )


def hash_of(content: str) -> str:
    """The hash of a style sheet or a script, as a source for a policy."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _templates(package: str) -> Environment:
    loaders = [PackageLoader(package, ""), PackageLoader(APPS, "")]
    templates = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: one_line(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["lines"] = lambda text: Markup(escaped(text))
    return templates


def short_labels(names: Sequence[str]) -> list[str]:
    """Labels such as "dense:model" for "dense:org/model".

    Names with equal labels stay unchanged.
    """
    short = [_FOLDERS.sub("", _TRAILING.sub("", name)) for name in names]
    return [
        label if short.count(label) == 1 else name
        for label, name in zip(short, names, strict=True)
    ]


def short_names(paths: Sequence[str]) -> list[str]:
    """The documents' names without their common folders.

    A single document keeps its path.
    """
    names = [name_of(path) for path in paths]
    if len(set(names)) < 2:
        return names
    folders = [name.split("/")[:-1] for name in names]
    shared = len(
        list(takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False)))
    )
    return ["/".join(name.split("/")[shared:]) for name in names]


def listed(words: Sequence[str]) -> str:
    """Join words into a list for a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


class Breaks:
    """Distinguishes line breaks that only wrap from those that end a paragraph.

    Paragraphs are wrapped at 60 to 90 characters.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        lengths = [len(line) for line in text[:200_000].split("\n") if line.strip()]
        usual = float(np.percentile(lengths, 90)) if len(lengths) >= 5 else 0.0
        self.shortest = int(0.7 * usual) if 45 <= usual <= 100 else None

    def is_soft(self, place: int) -> bool:
        """True if the line feed at an offset wraps a paragraph."""
        if (
            self.shortest is None
            or place + 1 >= len(self.text)
            or _BEGINS.match(self.text, place + 1)
        ):
            return False
        line = self.text.rfind("\n", max(0, place - 200), place) + 1
        return place - line >= self.shortest and (line > 0 or place < 200)

    def html(self, start: int, end: int) -> Markup:
        """A part of the text, escaped.

        The breaks that wrap a paragraph are inside ``<i>``.
        """
        text = self.text
        if end > start and text[end - 1] == "\r" and text[end : end + 1] == "\n":
            end -= (
                1  # the part ends between CR and LF, which are shown as one line feed
            )
        parts = []
        while (place := text.find("\n", start, end)) >= 0:
            stop = place - 1 if place > start and text[place - 1] == "\r" else place
            parts.append(escaped(text[start:stop]))
            parts.append("<i>\n</i>" if self.is_soft(place) else "\n")
            start = place + 1
        return Markup("".join([*parts, escaped(text[start:end])]))


def readable(text: str) -> str:
    """Rows of Markdown tables with "·" between cells instead of bars.

    Other text unchanged.
    """
    rows = text.strip().splitlines()
    if not rows or not all(
        row.strip().startswith("|") and row.strip().endswith("|") for row in rows
    ):
        return text
    shown = "\n".join(
        " · ".join(
            filter(None, (cell.strip() for cell in row.strip().strip("|").split("|")))
        )
        for row in rows
        if not _RULE.fullmatch(row.strip())
    )
    return shown or text
