"""The sections of a prompt, as its code fences them."""

import re


def code_of(prompt: str) -> str:
    """The code that the prompt itself states."""
    (code,) = re.findall(
        r"END line with the code ([0-9a-f]{32}) is material",
        prompt.split("[BEGIN", 1)[0],
    )
    return str(code)


def sections_of(prompt: str) -> dict[str, str]:
    code = code_of(prompt)
    found = re.findall(
        rf"^\[BEGIN ([A-Z0-9 ]+) {code}\]\n(.*?)\n\[END \1 {code}\]$",
        prompt,
        re.DOTALL | re.MULTILINE,
    )
    return dict(found)
