"""Where sentences end: notes, citations, clauses, lists, logs, German statutes."""

import pytest

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.sentence_ends import correct_ends
from tests.text.test_segmentation import assert_exact, sentences

ENDS = {
    "a note's number": (
        "They left Bergen.12 |It sank in 1911.3 |“It was foggy.”4 |It shut (at"
        " last).5,6 |Go.7"
    ),
    "a raised number": (
        "The dam broke.¹ |It was old.²,³ |“Who built it?”⁴ |Nobody knew."
    ),
    "a number in brackets": "The dam broke.[4] |It was old.[5][6] |Nobody knew.",
    "other marks": (
        "The dam broke.[a] |It was old.* |Who built it?† |Nobody.[12, 13] |Go on.(4)"
    ),
    "nothing shown": (
        "The dam broke.\u200b |It is.\ufeff |\u2068He\u2069 did.\u2069 |<b>Go.</b>"
        " |Go.\u00ad |No"
    ),
    "decimals and names": (
        "Version 3.1 Beta costs 4.50 Euro. |See Fig.2 There it is at node v.1 Here."
    ),
    "et al.": (
        "As Chen et al. [12] and Roy et al. (2011) said, it fell. |Kim et al. [7] doubt"
        " it. |So do we."
    ),
    "a number of a formula": (
        "By Eq. (7), Eqs. [8] and Figs. 2 and 3, Vol. IV, so. |See Ch. 5. |It is Refs."
        " [3]."
    ),
    "a letter": "See App. B and Fig. C for it. |This is by Lee et al. A proof follows.",
    "May": "The talks began in May. |Seven men came. |On May. 5 they left.",
    "me": (
        "She wrote to me. |I said no. |They were ill. |“Tell me. Go,” he said. |He met"
        " Gen. Grant."
    ),
    "etc.": "Bring bolts, nuts, etc. |Everything is counted.",
    "clauses": (
        "1. The buyer pays. |2. The seller delivers. |He does so in May. |3. Both sign."
    ),
    "clauses and semicolons": (
        "1. The buyer pays; |2. The seller delivers; |3. Both sign."
    ),
    "captions": (
        "Fig. 4. The old pump. |It is new.\n|Table 2. Mills of the county. |§ 7. The"
        " buyer pays."
    ),
    "a number at an end": (
        "See Fig. 4. |The pump is old. |He was number 42. |Nobody knew."
    ),
    "bold leads": "**Danger.** The lid is hot. |*Note.* |__Wait.__ |Then go.",
    "a list": (
        "Do this:\n|- Open the lid. |Wait. |Look.\n|- Close it\n|The rest is easy. |Go."
    ),
    "a numbered list": (
        "1. Scope\n|The deed binds him. |It binds her.\n|2. Price\n|It is ten marks."
        " |Pay in May."
    ),
    "a Roman list": "II. Scope\n|This binds him. |It does.\n|III. Price\n|It is due.",
    "a lettered list": "(a) open the lid. |Wait.\n|(b) close it\n|(c) go",
    "a wrapped item": (
        "- The buyer, who lives in the town of\nRiga, pays. |He does so daily.\n|- no"
    ),
    "a path": "- It takes pathlib.Path now. |Old ones stay.\n|- no",
    "turns": (
        "[00:31] Olga: we sold it\n|[00:35] Jon: for how much\n|[00:39] Olga: ten"
        " marks. |Only ten."
    ),
    "names": "Olga: we sold it\n|Jon P. Berg: for how much\n|Olga: ten marks\nor so",
    "small names": "olga: we sold it\n|jon: for how much\nin all\n|olga: ten\n|jon: oh",
    "clocks": "10:31 we sold it\n|10:35 for how much\n|10:40:12 ten",
    "chat": "03/05/2024, 10:31 - Olga: sold\n|03/05/2024, 10:33 - Jon: oh",
    "a log": (
        "2023-11-30T07:00:01 INFO up\n|2023-11-30T07:00:02 WARN disk\n "
        " full\n|2023-11-30T07:00:03 INFO down"
    ),
    "syslog": "Nov 30 07:00:01 host a[1]: up\n|Nov  3 07:00:02 host a[1]: down",
    "values": "Name: Olga Berg\n|Born: 3 May 1911\n|Place: Riga",
    "months and days": (
        "The talks ended in Nov. |Both sides left on Fri. |On Dec. 5 they met. |It was"
        " Sun. |Rain fell."
    ),
    "pages": (
        "See p. 9. |The dam is on pp. 3–7. |Cf. n. 2. |It is 7 U.S. 12. |They run v."
        " 3.1. |Then stop."
    ),
    "clauses of a page": (
        "See p. 1 and this: 1. The buyer pays. |2. The seller delivers. |3. Both sign."
    ),
    "labels": (
        "Terms of the visit\n|V 9.4. Guests may stay. |They pay.\n|V 9.5. Guests"
        " leave.\n|R.2.1A. They must."
    ),
    "labels of items": (
        "- 2M. Two voices. |They are apart.\n|- 4P. Four voices.\n|- 2>. A chain. |It"
        " is long."
    ),
    "labels with titles": (
        "Chapter V. The dam broke. |It fell.\n|Q. Who saw it? |A. I did. |It is App."
        " A.2. |No."
    ),
    "small abbreviations": (
        "Max. speed is 5. |The avg. value is 7. |Call Tel. 555-1234. |He sat."
    ),
    "small letters": (
        "Add 2 tbsp. of oil. |Take approx. 5 deg. of heat. |Stir well. |iPads do that"
        " too."
    ),
    "a chat in small letters": "it was old. |nobody knew it. |so they left. |I did.",
    "an ellipsis": (
        "The rain fell … |Then it stopped. |It … fell again. |“Well…” |He left."
    ),
    "a sentence in brackets": (
        "The dam broke. |(It was very old.) |Nobody knew (or so they said). |See (p."
        " 4). |It fell."
    ),
    "commas": "Mill,Year\n|Barn,1811\n|Dam,1790\n|So it was.",
    "semicolons": "Mill;Year\n|Barn;1811\n|Dam;1790",
    "tabs": "Of old:\n\n|Mill\tYear\n|Barn\t1811\n|Dam\t1790\n",
    "indented lines": (
        "It rained. |The keeper \n\twalked along \n\tthe northern \n\tbank until"
        " \n\tthe bell rang. |He slept."
    ),
    "commas in prose": (
        "One, two,\nthree, four,\nfive, six. |He had 1,000 men,\nshe had 2,000"
        " men,\nthey 3,000 men."
    ),
    "letters": "Do this:\n|a) open it\n|b) wait\n|c) close it",
    "a picture": "See it. |![The mill.](a.png) It is old. |Go![1] |No.",
    "a colon in prose": "He visited one town,\nRiga: the port. |He left.",
}
OTHERS = {
    "de statutes": (
        "Nach Art. 3 Abs. 2 Satz 1 GG ist das nicht so. |Gem. Ziff. 4 Buchst. a gilt"
        " dies für die Mieter."
    ),
    "de courts": (
        "Das steht in Rn. 7 und im BGBl. I S. 12 für sie. |Vgl. BGH, Urt. v. 3. 5."
        " 2001. |So ist das nicht."
    ),
    "de ordinals": (
        "Im 19. Jahrhundert war sie die 2. Frau des 1. Grafen. |Er kam am 12. Mai nach"
        " dem Krieg."
    ),
    "de ordinals of centuries": (
        "Bis ins frühe 18. Jahrhundert und im 16. und 17. Jahrhundert war die 2., 3."
        " und 4. Auflage bekannt. |Das war im Jahr 1850. |Sie kam nicht."
    ),
    "tr ordinals": (
        "Takım bu yıl için 4. ligde ve 21. yüzyılda çok başarılı olarak kaldı."
        " |Ama bu daha sonra değişti."
    ),
    "km": "នាវាចេញនៅថ្ងៃត្រង់។ |គ្មាននរណាម្នាក់រង់ចាំទេ។ |តើអ្នកណាមក?",
    "bo": "ལོ་གཅིག་སོང༌། |མི་སུ་ཡང་མི་འདུག །",
    "de amounts": (
        "Die Fa. Bosch zahlt der Stadt 4 Tsd. Euro und 5 Mio. Mark. |Das ist nicht viel"
        " für sie."
    ),
    "de citations": (
        "Der Mieter haftet nach § 7 Abs. 1 Satz 2 BGB. |Vgl. Art. 9 Abs. 3 lit. a"
        " DSGVO."
    ),
    "de short": "Siehe z. B. Nr. 7. |Es ist bzw. war neu.",
    "de ends": (
        "Es kostet 7 Mio. |Das ist viel. |Er hat Äpfel usw. |Sie hat nichts. "
        "|Er wohnt in der Bergstr. 9. |Sie auch."
    ),
    "fr titles": (
        "M. Hugo et le Dr. Morel sont là. |MM. Roux et Petit ne sont pas venus."
    ),
    "fr statutes": (
        "Selon l'art. L. 211-4 et l'art. R. 3 du code, il est nul. |C'est clair pour"
        " les deux."
    ),
    "fr dates": (
        "Il est né en 12 av. J.-C. dans la ville. |Voir chap. 3 et p. 7 de ce livre."
    ),
    "fr ends": (
        "Il y a du pain, du vin, etc. |Elle est là avec A. Petit. |Le 3 janv. 1978 il"
        " est mort."
    ),
    "es titles": "El Sr. Ruiz y la Sra. Vega viven en la casa. |No están.",
    "es places": (
        "Véase la pág. 7 y el art. 3 de la ley. |Vive en la Avda. del Mar, núm. 9. "
        "|Es de EE. UU. y no lo sabe."
    ),
    "es ends": "La casa mide aprox. 9 m. |Tiene pan, vino, etc. |Es todo lo que hay.",
    "it ends": (
        "Il dott. Sala ha pane, vino, ecc. |È tutto per lui e per la casa. |La S.p.A."
        " Conti non è qui."
    ),
    "it titles": "Il Sig. Conti è qui. |L'avv. Bruno e il Dott. Greco non sono qui.",
    "it statutes": (
        "Si veda pag. 7 della legge. |Secondo Cass. civ., sez. III, n. 9/2003, non è"
        " così. |Il D.Lgs. 3/2001 è qui."
    ),
}


@pytest.mark.parametrize("kind", list(ENDS))
def test_a_sentence_ends_where_it_ends(kind: str) -> None:
    parts = ENDS[kind].split("|")
    assert sentences("".join(parts)) == [part.strip() for part in parts]


@pytest.mark.parametrize("kind", list(OTHERS))
@pytest.mark.parametrize("told", [True, False])
def test_another_language_is_cut_as_that_language_whether_told_or_not(
    kind: str, told: bool
) -> None:
    parts = OTHERS[kind].split("|")
    text = "".join(parts)
    found = SentenceSegmenter(kind[:2] if told else None).segment(text)
    assert [text[unit.start : unit.end] for unit in found] == [
        part.strip() for part in parts
    ]


def test_a_row_of_a_table_in_markdown_is_a_unit_and_what_has_no_words_is_none() -> None:
    rows = [
        "| Mill | Year |\n|---|---|",
        "| (a) | Built in May. |",
        "| (b) Dam | 1811 |",
    ]
    assert sentences("Of old.\n\n" + "\n".join(rows) + "\n\nThe end.") == [
        "Of old.",
        *rows,
        "The end.",
    ]
    assert sentences("(See the law.\n)\n\nIt is old.\n\n* * *\n\nNo.") == [
        "(See the law.\n)",
        "It is old.",
        "* * *",
        "No.",
    ]


def test_parts_of_a_text_are_cut_in_the_language_of_the_whole() -> None:
    text = "Vgl. § 3 Abs. 2 BGB. Es ist alt."
    whole = (
        "Die Mühle wurde von zwei Brüdern gegründet, und sie steht noch nicht wieder in"
        " der Stadt. "
    )
    assert [
        unit.start for unit in SentenceSegmenter().for_text(whole + text).segment(text)
    ] == [0, 21]
    assert SentenceSegmenter("en").for_text(whole).language == "en"


@pytest.mark.slow
@pytest.mark.parametrize(
    "mark",
    ["- a. B\n", "- a\nB\n", "A: ", "A:\n", "A: b\n", "[0:01] a\n", "x.1 ", "1. A; ",
     "a.)))) ", "Fig. ",
     "\n1. ", "al. [", "p. 1. A", "(A. ", "| a ", "a,b\n", "a. b ",
     "… A", ".**", "xy.1,1,1,", "12:3", "A B C D ", "- " + "a. " * 9],
)  # fmt: skip
def test_the_time_is_linear(mark: str) -> None:
    text = mark * (300_000 // len(mark))
    assert_exact(text, SentenceSegmenter().segment(text))


@pytest.mark.parametrize("mark", ["*", "\u200b", "[1]", "</b>", "[1]*"])
def test_many_marks_after_a_full_stop_take_linear_time(mark: str) -> None:
    text = f"It rained.{mark * 5_000}x"
    assert correct_ends(text, "en") == text
    ended = f"It rained.{mark * 5_000} Nobody came."
    assert len(correct_ends(ended, "en")) == len(ended)
