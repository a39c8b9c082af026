"""Walks with questions of all kinds, pages of animals, and settings to ask of them."""

from dataclasses import replace

from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines.settings import Setting
from tests.lab.evaluation.tiny_study import ANIMALS, page

WALK = " ".join(
    f"On day {number} of the walk an otter crossed the road slowly."
    for number in range(20)
)


NARROW, WIDE = (
    Question("narrow", "Where?", ((0, 5),)),
    Question("wide", "When?", ((0, len(WALK)),)),
)


ABSENT = Question("absent", "Who?", (), answerable=False)


WALKS = [
    Document("d1", "walks", "", WALK, (NARROW, WIDE, ABSENT)),
    Document("d2", "roads", "", WALK, (ABSENT, replace(ABSENT, qid="gone"))),
]


PAGES = [page(animal) for animal in ANIMALS]


SETTINGS = [Setting("scanner"), Setting("bm25"), Setting("bm25", "chunk")]


OF_CORPORA = [
    Setting("scanner"),
    Setting("bm25"),
    Setting("dense", "chunk"),
    Setting("hybrid:bm25+dense"),
]
