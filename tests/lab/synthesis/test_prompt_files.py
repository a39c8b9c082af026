"""Files of prompts that are refused."""

from pathlib import Path

import pytest

from spscanner_lab.synthesis.prompt_files import read_prompts


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "link_question.txt",
            "Ask.\n===\nWrite.",
            "expected a first line 'version: NAME'",
        ),
        ("link_question.txt", "version: 1\n\nAsk.", "a line ===, and a closing"),
        ("mine.txt", "version: 1\n\nAsk.\n===\nWrite.", "no prompt has this name"),
    ],
)
def test_prompts_that_are_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_prompts(tmp_path)
