"""Talk: subtitles, and plain text that is a transcript or a chat. A turn is a unit with its time and speaker."""

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import TextBuilder, decoded
from spscanner_rag.text.turns import LINE, NAME, turns_of

_TIMING = re.compile(r"[ \t]*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]+-->")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,40})?[ \t]+([^>]{1,60})>")
_TAG = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_SPEAKER = re.compile(rf"(?:-|>>)?[ \t]*\[?({NAME})\]?:[ \t]+(?=\S)")
_SENTENCE_ENDS = tuple('.!?…"”')
_LONG_TURN, _LONG_UNKNOWN = 600, 200
"""A turn goes on to the end of a sentence behind so many characters; one of an unknown speaker is short."""


class _Cue(NamedTuple):
    time: str
    speaker: str
    text: str


def read_subtitles(name: str, data: bytes) -> TextFile:
    """Read a WebVTT or SRT file; ``ValueError`` if it is not UTF-8."""
    built = TextBuilder()
    turn: _Cue | None = None
    for cue in _cues(decoded(name, data)):
        if turn and _goes_on(turn, cue):
            turn = turn._replace(text=f"{turn.text} {cue.text}")
        else:
            _add(built, turn)
            turn = cue
    _add(built, turn)
    return built.converted()


def _add(built: TextBuilder, turn: _Cue | None) -> None:
    if turn:
        label = f"{turn.time} {turn.speaker}".strip()
        built.turn(label, turn.text, after=": " if turn.speaker else " ")


def _goes_on(turn: _Cue, cue: _Cue) -> bool:
    longest = _LONG_TURN if turn.speaker else _LONG_UNKNOWN
    if turn.speaker != cue.speaker or len(turn.text) > 1.5 * longest:
        return False
    whole = turn.text.endswith(_SENTENCE_ENDS)
    return not whole if not turn.speaker or len(turn.text) > longest else True


def _cues(text: str) -> Iterator[_Cue]:
    """What is said at which time; a speaker goes on until another one is named."""
    speaker = last = ""
    for time, lines in _timed(text):
        for line in lines:
            for voice, said in _voices(line):
                if match := _SPEAKER.match(said):
                    voice, said = match[1], said[match.end() :]
                speaker = voice or speaker
                if said and said != last:  # captions that roll repeat their lines
                    yield _Cue(time, speaker, said)
                last = said or last


def _voices(line: str) -> Iterator[tuple[str, str]]:
    parts = _VOICE.split(line)
    for voice, said in zip(["", *parts[1::2]], parts[::2], strict=True):
        yield " ".join(html.unescape(voice).split()), " ".join(html.unescape(_TAG.sub("", said)).split())


def _timed(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    time, lines, ended = "", list[str](), True
    for match in LINE.finditer(text):
        line = match[0].strip()
        if timing := _TIMING.match(line):
            if time:
                yield time, lines
            hours, minutes, seconds = timing.groups()
            time, lines, ended = f"{int(hours or 0):02}:{int(minutes):02}:{seconds}", [], False
        elif not line:
            ended = True
        elif not ended:  # behind a blank line there are numbers, names of cues, and notes
            if line.isdecimal() and _TIMING.match(text, match.end()):
                continue
            lines.append(line)
    if time:
        yield time, lines


def read_text(name: str, data: bytes) -> TextFile:
    """Read plain text, as it is; ``ValueError`` if it is not UTF-8."""
    text = decoded(name, data)
    return TextFile("", text, turns_of(text))
