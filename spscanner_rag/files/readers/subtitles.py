"""Reads subtitles as turns of a conversation."""

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import TextBuilder, decoded
from spscanner_rag.text.turns import LINE, NAME

_TIMING = re.compile(r"[ \t]*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]+-->")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,40})?[ \t]+([^>]{1,60})>")
_TAG = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_SPEAKER = re.compile(rf"(?:-|>>)?[ \t]*\[?({NAME})\]?:[ \t]+(?=\S)")
_SENTENCE_ENDS = tuple('.!?…"”')
_LONG_TURN = 600
_LONG_UNKNOWN = 200
"""A turn longer than so many characters ends with its sentence; turns of unknown
speakers are shorter."""


class _Cue(NamedTuple):
    time: str
    speaker: str
    text: str


def read_subtitles(data: bytes) -> TextFile:
    """Read a WebVTT or SRT file.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    turns: list[_Cue] = []
    for cue in _cues(decoded(data)):
        if turns and _goes_on(turns[-1], cue):
            turns[-1] = turns[-1]._replace(text=f"{turns[-1].text} {cue.text}")
        else:
            turns.append(cue)
    built = TextBuilder()
    for time, speaker, text in turns:
        built.turn(f"{time} {speaker}".strip(), text, after=": " if speaker else " ")
    return built.converted()


def _goes_on(turn: _Cue, cue: _Cue) -> bool:
    longest = _LONG_TURN if turn.speaker else _LONG_UNKNOWN
    if turn.speaker != cue.speaker or len(turn.text) > 1.5 * longest:
        return False
    ends_sentence = turn.text.endswith(_SENTENCE_ENDS)
    if turn.speaker and len(turn.text) <= longest:
        return True
    return not ends_sentence


def _cues(text: str) -> Iterator[_Cue]:
    """Yield what is said at each time.

    A speaker continues until another one is named.
    """
    speaker = last = ""
    for time, lines in _timed(text):
        for line in lines:
            parts = _VOICE.split(line)
            for voice, words in zip(["", *parts[1::2]], parts[::2], strict=True):
                voice = _shown(voice)
                words = _shown(_TAG.sub("", words))
                if match := _SPEAKER.match(words):
                    voice = match[1]
                    words = words[match.end() :]
                speaker = voice or speaker
                if words and words != last:  # rolling captions repeat their lines
                    yield _Cue(time, speaker, words)
                last = words or last


def _shown(text: str) -> str:
    return " ".join(html.unescape(text).split())


def _timed(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    time = ""
    lines = list[str]()
    ended = True
    for match in LINE.finditer(text):
        line = match[0].strip()
        if timing := _TIMING.match(line):
            if time:
                yield time, lines
            hours, minutes, seconds = timing.groups()
            time = f"{int(hours or 0):02}:{int(minutes):02}:{seconds}"
            lines = []
            ended = False
        elif not line:
            ended = True
        elif not ended:  # after a blank line come numbers, names of cues, and notes
            if line.isdecimal() and _TIMING.match(text, match.end()):
                continue
            lines.append(line)
    if time:
        yield time, lines
