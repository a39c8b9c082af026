"""Documents in which the scripted model finds links, and a run on them in a folder."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.synthesis.making import synthesize
from spscanner_lab.synthesis.settings import SynthesisSettings

NAMES = (
    "Harbour Lantern Orchard Granite Thimble Meadow Copper Falcon Barley Saddle Quarry"
    " Willow".split()
)
SETTINGS = SynthesisSettings(
    sizes=(400, 800), weights=(1.0, 1.0), language_probability=0.0
)

Make = Callable[..., dict[str, Any]]


def story(number: int, sentences: int = 60) -> str:
    """A text in which names come back after a while."""
    draw = random.Random(number)
    lines = []
    for place in range(sentences):
        name = NAMES[(place // 2 + number) % len(NAMES)]
        verb = draw.choice(["carried", "painted", "counted", "watched"])
        lines.append(
            f"In year {place + 1} of the {number} count the keeper of {name} house"
            f" {verb} the {draw.choice(NAMES).lower()} boxes before the winter came."
        )
    return " ".join(lines)


@pytest.fixture(scope="session")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stories") / "stories.jsonl"
    lines = [
        {"doc_id": f"story-{number}", "source": "stories", "text": story(number)}
        for number in range(12)
    ]
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


@pytest.fixture
def make(stories: Path, tmp_path: Path) -> Make:
    """Runs the synthesis in a folder with a function as the model, for its summary."""

    def make(
        ask: Callable[[str], object],
        out: Path = tmp_path / "out",
        settings: SynthesisSettings = SETTINGS,
        **options: Any,
    ) -> dict[str, Any]:
        own = {
            "sources": (stories,),
            "llm": LanguageModel("scripted", ask),
            "workers": 2,
            **options,
        }
        return synthesize(settings, out, **own)

    return make
