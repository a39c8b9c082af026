"""Where clauses begin in Thai and Lao, whose sentences have no mark at their end.

Words stand without spaces, and a space ends a phrase, a clause or a sentence. Of the
sentences that people marked in encyclopedia articles, most begin after a space with a
conjunction.
"""

import re
from collections.abc import Iterator
from typing import Final

SHORTEST: Final = 60
"""Characters: a clause that begins with a conjunction starts no earlier."""

LONGEST: Final = 280
"""Characters: what is longer is cut at the next space."""

_LETTERS = "\u0e01-\u0e4f\u0e80-\u0edf"
_SPACE = re.compile(rf"(?<=[{_LETTERS}\d”\"]) +(?=[{_LETTERS}])")
_CONJUNCTION = re.compile(
    "ซึ่ง|โดย|เนื่องจาก|อย่างไรก็|นอกจาก|ในขณะ|ขณะที่|เมื่อ|ดังนั้น|เพราะ|แต่|ทั้งนี้|ต่อมา"
    "|หลังจาก|จากนั้น|ถึงแม้|แม้|เพื่อ|อีกทั้ง|ส่วน|ทำให้|ເຊິ່ງ|ໂດຍ|ເມື່ອ|ແຕ່|ເພາະ|ດັ່ງນັ້ນ|ຫຼັງຈາກ"
)
_ANY_LETTER = re.compile(f"[{_LETTERS}]")


def clause_starts(text: str, starts: list[int]) -> Iterator[int]:
    """Starts of further clauses between some starts of sentences.

    Examples
    --------
    >>> text = "เรือออกจากท่าเวลาเที่ยงวันทุกวันจันทร์และวันพุธตลอดฤดูร้อนของปีนั้น แต่ไม่มีใครรอ"
    >>> [text[start:] for start in clause_starts(text, [0])]
    ['แต่ไม่มีใครรอ']
    """
    if not _ANY_LETTER.search(text):
        return
    for number, start in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(text)
        begin = start
        for space in _SPACE.finditer(text, start, stop):
            length = space.start() - begin
            has_conjunction = _CONJUNCTION.match(text, space.end()) is not None
            is_clause = has_conjunction and length >= SHORTEST
            if is_clause or length >= LONGEST:
                begin = space.end()
                yield begin
