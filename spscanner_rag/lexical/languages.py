# ruff: noqa: RUF001 (Cyrillic letters that look like Latin ones)
"""The language of a text, as far as its words and their stems depend on it, and its stop words.

Stop words are two fifths of running text. So counting those of each language identifies the language of a
paragraph, without a model. Whatever is not clearly another language counts as English.
"""

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

ENGLISH: Final = "english"

_ENGLISH = (
    "a about after all also am an and any are as at be because been before being between both but by can could "
    "did do does doing done during each for from had has have having he her here hers him his how i if in into "
    "is it its itself just me more most my no nor not of on once only or other our out over own s same she "
    "should so some such t than that the their them then there these they this those through to too under "
    "until up upon us very was we were what when where which while who whom whose why will with would you your"
)
_GERMAN = (
    "aber alle allem allen aller alles als also am an auch auf aus bei beim bevor bin bis da damals damit dann "
    "das dass dem den denn der deren des dessen die dies diese diesem diesen dieser dieses doch durch ein eine "
    "einem einen einer eines er es etwas für gegen haben hat hatte hatten hier ich ihm ihn ihnen ihr ihre "
    "ihrem ihren ihrer ihres im in ins ist jede jedem jeden jeder jedes kann kein keine keinen konnte man mehr "
    "mich mir mit nach nachdem nicht noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner "
    "seines seit sich sie sind so soll sondern um und uns unser unter vom von vor wann war waren warum was "
    "weil welche welchem welchen welcher welches wem wen wenn wer werden wessen wie wieder wieso wieviel wird "
    "wo wodurch woher wohin womit worden wurde wurden während zu zum zur zwischen über"
)
_FRENCH = (
    "a ai alors après au aucun aussi autre aux avait avaient avant avec avoir c car ce ceci cela celle celui "
    "ces cet cette ceux chez comme comment d dans de depuis des donc dont du elle elles en encore entre est et "
    "eux furent fut il ils j je jusque jusqu l la laquelle le lequel les lesquelles lesquels leur leurs "
    "lorsque lui m ma mais me mes moi mon même n ne nos notre nous on ont ou où par parce pas pendant peu peut "
    "plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont "
    "sous sur t ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y à était étaient "
    "été être"
)
_SPANISH = (
    "a al algo ante antes aquel aquella así aunque bajo cada como con cual cuales cuando cuándo cuál cuáles "
    "cuánto cuántos cómo de del desde después donde dónde durante e el ella ellas ellos en entre era eran es "
    "esa ese eso esta estaba este esto estos está están fue fueron ha había han hasta hay la las le les lo los "
    "me mi mientras mismo muy más nada ni no nos o otra otro otros para pero poco por porque que quien quienes "
    "quién qué se ser si sin sobre son su sus sí también tan tanto te tiene todo todos tras tu tú un una uno "
    "unos y ya yo él"
)
_ITALIAN = (
    "a ad agli ai al alla alle allo anche ancora aveva avevano c che chi ci come con contro cosa cui d da "
    "dagli dai dal dalla dalle dallo degli dei del della delle dello di dopo dove e ed era erano essere fino "
    "fra fu furono gli ha hanno i il in io l la le lei li lo loro lui ma mentre mi mia mio molto ne negli nei "
    "nel nella nelle nello no noi non o ogni per perché perciò più poi prima quale quali quando quanti quanto "
    "quella quelle quelli quello questa queste questi questo se senza si sia solo sono sopra sotto stata stato "
    "su sua sue sugli sui sul sulla suo suoi tra tu tutti tutto un una uno voi è"
)
_PORTUGUESE = (
    "a ainda ao aos as assim até cada com como da das de depois do dos durante e ela elas ele eles em entre "
    "era eram essa esse esta este está eu foi foram há isso isto já lhe mais mas me mesmo muito na nas nem no "
    "nos nós não o onde os ou para pela pelas pelo pelos por porque porquê quais qual quando quanto quantos "
    "que quem sem ser seu seus se sobre sua suas são só também tem teve tinha tinham tudo um uma umas uns você "
    "à às é"
)
_DUTCH = (
    "aan al als altijd ben bij daar dan dat de deze die dit door dus een en er ge geen had hadden heb hebben "
    "heeft hem het hier hij hoe hoeveel hun ik in is ja je kan kon maar meer men met mijn na naar niet niets "
    "nog nu of om onder ons ook op over reeds te tegen toch toen tot tussen u uit uw van veel voor waar waarom "
    "waarmee wanneer want waren was wat welk welke wel werd werden wie wij wordt ze zich zij zijn zo zonder "
    "zou"
)
_SWEDISH = (
    "alla att av blev bli blir dem den denna deras dess dessa det detta dig din du då där efter ej eller en er "
    "ett från för genom ha hade han hans har henne hennes hon honom hur här i icke ingen inom inte jag ju kan "
    "kunde man med mellan men mig min mot mycket ni nu när någon något några och om oss på sedan sig sin sina "
    "sitt skulle som så till under upp ur ut utan vad var vara varför varit vart vem vems vi vid vilka vilken "
    "vilket än är åt över"
)
_RUSSIAN = (
    "а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее "
    "ей если есть ещё еще же за здесь и из или им их к как какая какие какой какую когда кого которая которые "
    "который кто куда ли мне может мы на над нас не него нет ни них но ну о об он она они оно от откуда перед "
    "по под после потом потому почему при с сам своей свой свою себя сколько со так такой там тем то тоже "
    "только том тот ту ты у уже чего чем через что чтобы чье чьё чья эта эти это этого этой этом этот я"
)

STOP_WORDS_OF: Mapping[str, frozenset[str]] = {
    ENGLISH: frozenset(_ENGLISH.split()),
    "german": frozenset(_GERMAN.split()),
    "french": frozenset(_FRENCH.split()),
    "spanish": frozenset(_SPANISH.split()),
    "italian": frozenset(_ITALIAN.split()),
    "portuguese": frozenset(_PORTUGUESE.split()),
    "dutch": frozenset(_DUTCH.split()),
    "swedish": frozenset(_SWEDISH.split()),
    "russian": frozenset(_RUSSIAN.split()),
}
"""The stop words of each language, English first."""

STOP_WORDS: Final = STOP_WORDS_OF[ENGLISH]


CJK: Final = "cjk"
"""Chinese and Japanese: no white space between words, so that two neighbouring characters count as a word."""

LANGUAGES: Final = (*STOP_WORDS_OF, CJK)

CJK_CHARACTER: Final = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U000323af"
)
"""Han, hiragana and katakana, as the inside of a character class."""

_CJK = re.compile(f"[{CJK_CHARACTER}]")

# Latin letters alone are left out: "d" and "l" are French stop words, and names in formulas.
_TELLING: Mapping[str, frozenset[str]] = {
    language: frozenset(word for word in words if len(word) > 1 or word >= "\u0400")
    for language, words in STOP_WORDS_OF.items()
}

_ENGLISH_SHARE = 0.2
"""Of the words of a text: with so many English stop words, nothing else is looked for."""

_SHARE = 0.25
"""Least share of another language's stop words."""

_DISTINCT = 6
"""Least number of different ones: a list of Spanish place names has a few."""

_TIMES_ENGLISH = 2
"""They are at least so many times as frequent as English ones."""


def language_of(vocabulary: Mapping[str, int], numbers: NDArray[np.int32]) -> str:
    """The language, of `LANGUAGES`, of a text with the words ``numbers``, (words,); English without words."""
    times = np.bincount(numbers, minlength=len(vocabulary))  # (vocabulary,)
    english = sum(_times(ENGLISH, vocabulary, times))
    if english >= len(numbers) * _ENGLISH_SHARE:
        return ENGLISH
    if max(vocabulary) >= "\u3005" and _mostly_cjk(vocabulary, times):
        return CJK
    found, most = ENGLISH, max(len(numbers) * _SHARE, english * _TIMES_ENGLISH)
    for language in _TELLING:
        own = _times(language, vocabulary, times)
        if language != ENGLISH and len(own) >= _DISTINCT and sum(own) > most:
            found, most = language, sum(own)
    return found


def _times(language: str, vocabulary: Mapping[str, int], times: NDArray[np.int64]) -> list[int]:
    """Occurrences of each of the language's stop words that occurs at all."""
    return [int(times[vocabulary[word]]) for word in _TELLING[language] if word in vocabulary]


def _mostly_cjk(vocabulary: Mapping[str, int], times: NDArray[np.int64]) -> bool:
    """True if at least half of the characters of the words are Han or kana."""
    characters = cjk = 0
    for word, number in vocabulary.items():
        characters += len(word) * int(times[number])
        cjk += len(_CJK.findall(word)) * int(times[number])
    return cjk * 2 >= characters
