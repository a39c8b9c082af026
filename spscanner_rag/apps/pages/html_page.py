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

_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
"""The line between the head and the body of a Markdown table."""


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
    style, script = allowed[0]
    template = _templates(package).get_template(f"{name}.html")
    return template.render(
        content,
        title=one_line(title)[:_TITLE_CHARACTERS],
        policy=Markup(_policy(allowed) + more_policy),
        style=Markup(style),
        script=Markup(script),
    )


def _policy(allowed: Sequence[tuple[str, str]]) -> str:
    """The policy that allows some style sheets and scripts, and nothing else."""
    styles, scripts = zip(*allowed, strict=True)
    sources = f"default-src 'none'; style-src {_hashes(styles)}; "
    if any(scripts):
        sources += f"script-src {_hashes(scripts)}; "
    return sources + "base-uri 'none'; form-action 'none'"


def _hashes(contents: Sequence[str]) -> str:
    return " ".join(hash_of(content) for content in contents if content)


@cache
def style_and_script(name: str, package: str = APPS) -> tuple[str, str]:
    """The style sheet of a page, and its script or "".

    The style sheet has the type and colours of all pages.
    """
    shared_style = files(APPS).joinpath("pages/templates/page.css")
    folder = files(package)
    style = folder.joinpath(f"{name}.css")
    script_file = folder.joinpath(f"{name}.js")
    script = script_file.read_text("utf-8") if script_file.is_file() else ""
    return shared_style.read_text("utf-8") + style.read_text("utf-8"), script


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
    labels: list[str] = []
    for label, name in zip(short, names, strict=True):
        labels.append(label if short.count(label) == 1 else name)
    return labels


def short_names(paths: Sequence[str]) -> list[str]:
    """The documents' names without their common folders.

    A single document keeps its path.
    """
    names = [name_of(path) for path in paths]
    if len(set(names)) < 2:
        return names
    folders = [name.split("/")[:-1] for name in names]
    n_shared = 0
    for folders_at_depth in zip(*folders, strict=False):
        if len(set(folders_at_depth)) > 1:
            break
        n_shared += 1
    return ["/".join(name.split("/")[n_shared:]) for name in names]


def listed(words: Sequence[str]) -> str:
    """Join words into a list for a sentence: "a, b and c"."""
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} and {words[-1]}"


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
            # the part ends between CR and LF, which are shown as one line feed
            end -= 1
        parts: list[str] = []
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
    readable_rows: list[str] = []
    for line in text.strip().splitlines():
        row = line.strip()
        if not row.startswith("|") or not row.endswith("|"):
            return text
        if not _RULE.fullmatch(row):
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            readable_rows.append(" · ".join(filter(None, cells)))
    return "\n".join(readable_rows) or text
