"""The beginning of every HTML page: a policy that lets nothing be loaded, the shared style, and the question."""

import base64
import hashlib
import html
from importlib.resources import files

from spscanner_rag.text.escaping import escaped, one_line

_TITLE_CHARACTERS = 200


def page_head(title: str, style: str, script: str | None = None, more: str = "") -> str:
    """A page up to the end of its head.

    Its policy (CSP) allows this style sheet and, if there is one, this script, and nothing from anywhere else but
    what ``more`` allows.
    """
    allowed = f"style-src {hash_of(style)}" + (
        f"; script-src {hash_of(script)}" if script is not None else ""
    )
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'{more}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html.escape(one_line(title)[:_TITLE_CHARACTERS])}</title>\n<style>{style}</style>\n</head>\n"
    )


def page_style(package: str, name: str) -> str:
    """A style sheet of a package, after the one of all pages: type and colours, one for each retriever."""
    return resource(__package__, "page.css") + resource(package, name)


def question_header(query: str, facts: str) -> str:
    """The header of a page without its end tag: the question, and ``facts``, which are HTML."""
    return (
        f'<header>\n<p class="label">Question</p>\n<h1 dir="auto">{escaped(query)}</h1>\n'
        f'<p class="facts">{facts}</p>\n'
    )


def resource(package: str, name: str) -> str:
    """A style sheet or a script from the folder of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def hash_of(content: str) -> str:
    """A style sheet or a script as a source of a policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
