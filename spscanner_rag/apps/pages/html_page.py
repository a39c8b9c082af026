"""Every HTML page: a jinja2 template that escapes all it shows, under a policy that lets nothing be loaded."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spscanner_rag.text.escaping import escaped, one_line

_TITLE_CHARACTERS = 200


def render(
    template: str,
    title: str,
    style: str,
    script: str = "",
    *,
    also_allowed: Sequence[tuple[str, str]] = (),
    more_policy: str = "",
    **content: object,
) -> str:
    """A page from a template in ``spscanner_rag/apps`` that extends ``pages/templates/layout.html``.

    Text is shown on one line, with control and bidirectional characters as escapes; the filter ``lines`` keeps
    line breaks. ``also_allowed`` has further pairs of style sheet and script that the policy allows.
    """
    styles, scripts = zip((style, script), *also_allowed, strict=True)
    rules = ["default-src 'none'", _sources("style-src", styles)]
    if any(scripts):
        rules.append(_sources("script-src", scripts))
    policy = "; ".join([*rules, "base-uri 'none'", "form-action 'none'"]) + more_policy
    trusted = {name: Markup(value) for name, value in
               {"policy": policy, "style": style, "script": script}.items()}  # fmt: skip
    return (
        _templates()
        .get_template(template)
        .render(content, title=one_line(title)[:_TITLE_CHARACTERS], **trusted)
    )


def page_style(name: str) -> str:
    """A style sheet after the one of all pages: type and colours, one for each retriever."""
    return resource("pages/templates/page.css") + resource(name)


@cache
def resource(name: str) -> str:
    """A style sheet or a script, by its path in ``spscanner_rag/apps``."""
    return files("spscanner_rag.apps").joinpath(name).read_text(encoding="utf-8")


def hash_of(content: str) -> str:
    """A style sheet or a script as a source of a policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("spscanner_rag", "apps"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: one_line(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["lines"] = lambda text: Markup(escaped(text))
    return templates


def _sources(rule: str, contents: Sequence[str]) -> str:
    return " ".join([rule, *map(hash_of, contents)])
