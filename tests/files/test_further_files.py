"""Further small files of all kinds, and what a result of each is.

Cases are as in `test_files_of_users`.
"""

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

from tests.files.test_files_of_users import Case, check_results, mail, notebook
from tests.small_files import epub, odt, pptx, shape, sheet_row, xlsx
from tests.word import docx, paragraph


def run(text: str) -> str:
    return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"


CASES: dict[str, Case] = {
    "urls.txt": (
        (
            "See https://example.org/a.b?c=1. It rained. Mail ann"
            "e.reed@example.org. She left."
        ),
        ["It rained.", "She left."],
        [],
    ),
    "versions.txt": (
        (
            "Version 2.10.1 fixed it. Use v3.0. Then restart. The"
            " file is app.log. Open it."
        ),
        [
            "Version 2.10.1 fixed it.",
            "Use v3.0.",
            "Then restart.",
            "The file is app.log.",
            "Open it.",
        ],
        [],
    ),
    "dialog.txt": (
        (
            "\u201cWho signed it?\u201d asked Anne. \u201cI did!\u201d said Bob. He l"
            "aughed."
        ),
        [
            "\u201cWho signed it?\u201d asked Anne.",
            "\u201cI did!\u201d said Bob.",
            "He laughed.",
        ],
        [],
    ),
    "emoji.txt": (
        "\u2705 Rent is paid\n\u274c Oil is missing\n\U0001f449 Call Anne\n",
        ["\u2705 Rent is paid", "\u274c Oil is missing", "\U0001f449 Call Anne"],
        [],
    ),
    "tabbed.txt": (
        "Flour\t12 marks\nOil\t40 marks\nRope\t3 marks\n",
        ["Flour 12 marks", "Oil 40 marks", "Rope 3 marks"],
        [],
    ),
    "mac.txt": (
        "It rained.\rNobody came.\rAnne left.\r",
        ["It rained.", "Nobody came.", "Anne left."],
        [],
    ),
    "nbsp.txt": (
        "The rent is 40\xa0marks. M.\xa0Reed paid\xa0it.\u2028Nobody came.",
        ["The rent is 40 marks.", "Nobody came."],
        [],
    ),
    "money.txt": (
        ("It cost $4.50. He paid \xa33. She had 5 \u20ac. Nobody laughed."),
        ["It cost $4.50.", "He paid \xa33.", "She had 5 \u20ac.", "Nobody laughed."],
        [],
    ),
    "wrapped.txt": (
        (
            "The keeper of the light-\nhouse signed the treaty and"
            "\nleft the town in the year\n1811. Nobody came.\n"
        ),
        [
            (
                "The keeper of the light- house signed the treaty and"
                " left the town in the year 1811."
            ),
            "Nobody came.",
        ],
        [],
    ),
    "task.md": (
        "- [x] Pay the rent\n- [ ] Call Anne\n",
        ["- [x] Pay the rent", "- [ ] Call Anne"],
        [],
    ),
    "entities.md": (
        ("The firm Reed &amp; Low sells oil &mdash; and rope. It&nbsp;rained.\n"),
        ["The firm Reed & Low sells oil \u2014 and rope.", "It rained."],
        ["&amp;", "&nbsp;"],
    ),
    "deflist.md": ("Lessee\n: The tenant. He pays.\n", ["He pays."], []),
    "template.html": (
        (
            "<noscript>Turn on scripts.</noscript><p>It rained.</"
            "p><template><p>Old.</p></template>"
        ),
        ["It rained."],
        ["Old."],
    ),
    "abbr.html": (
        ("<p>H<sub>2</sub>O boils at 100&deg;C<sup>[1]</sup>. It rained.</p>"),
        ["It rained."],
        [],
    ),
    "rowspan.html": (
        (
            "<table><tr><th>Ship<th>Year<th>Toll</tr><tr><td rows"
            "pan=2>Heron<td>1811<td>12</tr><tr><td>1812<td>40</tr"
            "></table>"
        ),
        ["Heron | 1811 | 12"],
        [],
    ),
    "aria.html": (
        (
            "<div aria-hidden='true'>\u2605\u2605\u2605</div><p>It rained.</p><p"
            " style='visibility:hidden'>Gone.</p><p class='sr-onl"
            "y'>Rated five.</p>"
        ),
        ["It rained."],
        ["Gone."],
    ),
    "pre.html": ("<pre>a = 1\nb = 2</pre><p>It rained. Oh.</p>", ["It rained."], []),
    "ordered.html": (
        ("<ol start=3><li>Oil it<li>Pay</ol><ol type=a><li>Call</ol>"),
        ["3. Oil it", "4. Pay", "a. Call"],
        [],
    ),
    "latin1.html": (
        (b"<html><head><meta charset='iso-8859-1'></head><p>Z\xfcrich z\xe4hlt.</p>"),
        ["Z\xfcrich z\xe4hlt."],
        [],
    ),
    "comment.docx": (
        docx(
            paragraph("The rent is due.")
            + (
                "<w:p><w:commentRangeStart w:id='0'/><w:r><w:t>Pay it.</w:t>"
                "</w:r><w:commentRangeEnd w:id='0'/></w:p>"
            ),
            comments=(
                "<w:comment w:id='0'><w:p><w:r><w:t>Why?</w:t></w:r></w:p></w:comment>"
            ),
        ),
        ["The rent is due.", "Pay it."],
        ["Why?"],
    ),
    "moved.docx": (
        docx(
            "<w:p><w:moveFrom w:id='1'><w:r><w:t>It rained.</w:t></w:r>"
            "</w:moveFrom><w:r><w:t xml:space='preserve'>Anne left. </w:t>"
            "</w:r><w:moveTo w:id='2'><w:r><w:t>It rained.</w:t></w:r>"
            "</w:moveTo></w:p>"
        ),
        ["Anne left.", "It rained."],
        [],
    ),
    "sdt.docx": (
        docx(
            "<w:sdt><w:sdtContent>"
            + paragraph("The rent is due. Pay it.")
            + "</w:sdtContent></w:sdt>"
        ),
        ["The rent is due.", "Pay it."],
        [],
    ),
    "field.docx": (
        docx(
            "<w:p><w:r><w:t xml:space='preserve'>See page </w:t></w:r><w:r>"
            "<w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>"
            "PAGEREF _Toc1</w:instrText></w:r><w:r><w:fldChar "
            "w:fldCharType='separate'/></w:r><w:r><w:t>7</w:t></w:r><w:r>"
            "<w:fldChar w:fldCharType='end'/></w:r><w:r><w:t>. It "
            "rained.</w:t></w:r></w:p>"
        ),
        ["See page 7.", "It rained."],
        ["PAGEREF"],
    ),
    "vanish.docx": (
        docx(
            paragraph("It rained.")
            + paragraph("Secret.", run="<w:rPr><w:vanish/></w:rPr>")
            + paragraph("Loud.", run="<w:rPr><w:caps/></w:rPr>")
        ),
        ["It rained."],
        ["Secret."],
    ),
    "long.xlsx": (
        xlsx(
            {
                "Q&A": sheet_row(1, "Question", "Answer")
                + sheet_row(2, "Who pays?", "The tenant pays. He pays in May.")
            }
        ),
        ["Who pays? | The tenant pays. He pays in May."],
        [],
    ),
    "hiddenslide.pptx": (
        pptx(
            shape("Ships pay"),
            shape("Old toll"),
            hidden=[2],
            notes={1: "Say it twice."},
        ),
        ["Ships pay", "Say it twice."],
        [],
    ),
    "notes.epub": (
        epub(
            "<p>It rained<a href='#n1' epub:type='noteref' xmlns:epub='e'>"
            "1</a>. Oh.</p><aside id='n1'><p>In May. Cold.</p></aside>"
        ),
        ["Cold."],
        [],
    ),
    "tab.odt": (
        odt(
            "<text:p>Rent<text:tab/>40</text:p><text:p>It "
            "rained.<text:note text:note-class='footnote'>"
            "<text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>In May.</text:p></text:note-body></text:note> "
            "Oh.</text:p>"
        ),
        ["In May."],
        [],
    ),
    "uni.rtf": (
        (
            "{\\rtf1\\ansi\\uc1 Z\\u252?rich z\\'e4hlt.\\par Anne\\~left"
            ".\\line\\bullet  Oil it\\par\\u8220?Pay.\\u8221?}"
        ),
        ["Z\xfcrich z\xe4hlt."],
        [],
    ),
    "table.rtf": (
        (
            "{\\rtf1\\trowd\\cellx100\\cellx200 Heron\\cell 12\\cell\\ro"
            "w\\trowd\\cellx100\\cellx200 Swan\\cell 40\\cell\\row It r"
            "ained.\\par}"
        ),
        ["Heron | 12", "Swan | 40", "It rained."],
        [],
    ),
    "qp.eml": (
        (
            b"Subject: =?utf-8?q?Miete_f=C3=BCr_Mai?=\nContent-Ty"
            b"pe: text/plain; charset=utf-8\nContent-Transfer-Enc"
            b"oding: quoted-printable\n\nDie Miete f=C3=BCr Mai is"
            b"t f=C3=A4llig. Zahlen=\n Sie.\n"
        ),
        ["Zahlen Sie."],
        ["=C3"],
    ),
    "list.eml": (
        mail(
            "Hello,\n\nThe rent is due:\n * in May\n * in June\n\n-- "
            "\nAnne Reed\nReed Ltd.\n",
            Subject="Rent",
        ),
        ["* in May"],
        [],
    ),
    "calendar.eml": (
        (
            b"Subject: Meeting\nContent-Type: multipart/mixed; bo"
            b"undary=B\n\n--B\nContent-Type: text/plain\n\nCome in Ma"
            b"y.\n--B\nContent-Type: text/calendar\n\nBEGIN:VCALENDA"
            b"R\nSUMMARY:Council\nEND:VCALENDAR\n--B--\n"
        ),
        ["Come in May."],
        [],
    ),
    "comments.jsonl": ('{"a": 1}\n\n{"a": "2\\n3"}\n', ["a: 1"], []),
    "attrs.xml": (
        ("<ships><ship name='Heron' toll='12'/><ship name='Swan' toll='40'/></ships>"),
        ["name: Heron | toll: 12", "name: Swan | toll: 40"],
        [],
    ),
    "acro.tex": (
        (
            "\\begin{document}The \\textbf{rent}~is 40\\,\\% of \\$5 -"
            "-- see \\ref{a} and \\cite{Reed1811}. It ``rained''.\\b"
            "egin{itemize}\\item Oil\\item[x] Pay\\end{itemize}\\end{"
            "document}"
        ),
        ["It \u201crained\u201d."],
        ["textbf"],
    ),
    "trace.log": (
        (
            "2024-05-01 10:00:00 INFO start\n2024-05-01 10:00:01 E"
            "RROR failed\nTraceback:\n  File a.py\nValueError: x\n202"
            "4-05-01 10:00:02 INFO end\n"
        ),
        [
            "2024-05-01 10:00:02 INFO end",
            ("2024-05-01 10:00:01 ERROR failed Traceback: File a.py ValueError: x"),
        ],
        [],
    ),
    "excel.csv": ('sep=;\nname;note\nAnne;"a ""b"" c"\nBob;\'x\'\n', ["Bob;'x'"], []),
    "env.txt": (
        (
            "# database\nDB_HOST=mill.example\nDB_PORT=5432\n\n# mail"
            "\nMAIL_FROM=anne@reed.example\n"
        ),
        ["DB_HOST=mill.example", "DB_PORT=5432"],
        [],
    ),
    "keys.txt": (
        (
            "Invoice no.: 4711\nDate: 4 March 1811\nTotal due: 1,25"
            "0 marks\n\nPayable in May.\n"
        ),
        ["Date: 4 March 1811", "Total due: 1,250 marks"],
        [],
    ),
    "receipt.txt": (
        (
            "Flour 2 x 12.00      24.00\nOil 1 x 40.00        40.0"
            "0\nTOTAL                64.00\n"
        ),
        ["TOTAL 64.00", "Oil 1 x 40.00 40.00"],
        [],
    ),
    "outline.txt": (
        (
            "I. Fees\n   A. Rent\n      1. It is due in May.\n      "
            "2. It is paid in gold.\n   B. Tolls\n"
        ),
        ["1. It is due in May.", "2. It is paid in gold."],
        [],
    ),
    "agenda.txt": (
        ("09:00 Opening\n09:30 Report of the treasurer\n10:15 Break\n"),
        ["09:30 Report of the treasurer", "10:15 Break"],
        [],
    ),
    "citations.txt": (
        (
            "It burned (Reed 1811, p. 4; cf. Low et al. 1812). It"
            " was rebuilt [3, 4]. In 1813 it fell.\u2075 Nobody came."
        ),
        [
            "It burned (Reed 1811, p. 4; cf. Low et al. 1812).",
            "It was rebuilt [3, 4].",
            "Nobody came.",
        ],
        [],
    ),
    "decimals.txt": (
        (
            "It rose by 4.5 percent. In Q3 it fell by .5 points. "
            "Profit was $1.2m. It closed."
        ),
        [
            "It rose by 4.5 percent.",
            "In Q3 it fell by .5 points.",
            "Profit was $1.2m.",
            "It closed.",
        ],
        [],
    ),
    "chinese.txt": (
        "\u5408\u540c\u5df2\u7b7e\u7f72\u3002\u79df\u91d1\u4e3a\u6bcf\u6708\u56db\u5341\u5143\uff01\u8c01\u4ed8\u6b3e\uff1f\u79df\u6237\u3002",
        [
            "\u5408\u540c\u5df2\u7b7e\u7f72\u3002",
            "\u79df\u91d1\u4e3a\u6bcf\u6708\u56db\u5341\u5143\uff01",
            "\u8c01\u4ed8\u6b3e\uff1f",
        ],
        [],
    ),
    "arabic.txt": (
        "\u0648\u0642\u0639 \u0627\u0644\u062d\u0627\u0631\u0633 "
        "\u0627\u0644\u0639\u0642\u062f. \u0645\u0646 "
        "\u062f\u0641\u0639 "
        "\u0627\u0644\u0625\u064a\u062c\u0627\u0631\u061f "
        "\u062f\u0641\u0639\u0647 "
        "\u0627\u0644\u0645\u0633\u062a\u0623\u062c\u0631.",
        [
            "\u0648\u0642\u0639 \u0627\u0644\u062d\u0627\u0631\u0633 "
            "\u0627\u0644\u0639\u0642\u062f.",
            "\u0645\u0646 \u062f\u0641\u0639 "
            "\u0627\u0644\u0625\u064a\u062c\u0627\u0631\u061f",
        ],
        [],
    ),
    "lower.txt": (
        "the rent is due. pay it. nobody came.",
        ["the rent is due.", "pay it.", "nobody came."],
        [],
    ),
    "semis.txt": (
        (
            "The tenant shall:\n(i) pay the rent;\n(ii) keep it dry"
            "; and\n(iii) leave in May.\n"
        ),
        ["(i) pay the rent;", "(ii) keep it dry; and", "(iii) leave in May."],
        [],
    ),
    "ocrish.txt": (
        "The rent  is   due .  Pay it .  Nobody came .",
        ["The rent is due .", "Pay it ."],
        [],
    ),
    "bom.txt": (
        b"\xef\xbb\xbfIt rained. Nobody came.",
        ["It rained.", "Nobody came."],
        ["\ufeff"],
    ),
    "utf16.txt": (
        "It rained. Nobody came.".encode("utf-16"),
        ["It rained.", "Nobody came."],
        [],
    ),
    "autolink.md": (
        ("See <https://example.org/a> now. Mail <anne@reed.example>. It rained.\n"),
        ["It rained."],
        [],
    ),
    "html.md": (
        (
            "<details>\n<summary>More</summary>\n\nThe mill burned. "
            "Oh.\n\n</details>\n\n<kbd>Ctrl</kbd>+<kbd>C</kbd> stops "
            "it.\n"
        ),
        ["The mill burned.", "Ctrl+C stops it."],
        ["<kbd>"],
    ),
    "footlist.md": (
        "1. Oil it. Wait.\n2. Pay.\n   - in May\n   - in gold\n",
        ["2. Pay."],
        [],
    ),
    "toc.html": (
        (
            "<nav><ul><li><a href='#a'>Fees</a></li><li><a href='"
            "#b'>Term</a></li></ul></nav><main><h1>Lease</h1><p>H"
            "e pays. She leaves.</p></main><footer>Reed Ltd.</foo"
            "ter>"
        ),
        ["He pays.", "She leaves.", "Reed Ltd."],
        [],
    ),
    "ins.html": (
        ("<p>The rent is <del>40</del> <ins>50</ins> marks. It rained.</p>"),
        ["The rent is ~~40~~ 50 marks."],
        [],
    ),
    "q.html": (
        ("<p>She said <q>It rained</q>. <em>No</em>body came.</p>"),
        ["Nobody came."],
        [],
    ),
    "divs.html": (
        (
            "<div>Heron</div><div>12 marks</div><div><span>Swan</"
            "span><span>40</span></div>"
        ),
        ["Heron", "12 marks"],
        [],
    ),
    "entity.html": (
        "<p>5 &lt; 6 &amp;&amp; 7. It rained&hellip;</p>",
        ["It rained\u2026"],
        [],
    ),
    "colspan.html": (
        (
            "<table><tr><th colspan=2>Tolls</th></tr><tr><td>Hero"
            "n</td><td>12</td></tr></table>"
        ),
        ["Heron | 12"],
        [],
    ),
    "foot.docx": (
        docx(
            "<w:p>"
            + run("He pays")
            + "<w:r><w:footnoteReference w:id='2'/></w:r>"
            + run(" in May. It rained.")
            + "</w:p>",
            footnotes=(
                "<w:footnote w:id='2'><w:p><w:r><w:t>In gold. Not in oil.</w:t>"
                "</w:r></w:p></w:footnote>"
            ),
        ),
        ["It rained.", "Not in oil."],
        [],
    ),
    "gap.xlsx": (
        xlsx(
            {
                "Log": sheet_row(1, "Tolls of 1811")
                + sheet_row(3, "Ship", "Toll")
                + sheet_row(4, "Heron", 12)
                + sheet_row(6, "Sum", 12)
            }
        ),
        ["Heron | 12"],
        [],
    ),
    "change.odt": (
        odt(
            "<text:tracked-changes><text:changed-region text:id='c'>"
            "<text:deletion><text:p>Old rent.</text:p></text:deletion>"
            "</text:changed-region></text:tracked-changes><text:p>New "
            "rent.</text:p>"
        ),
        ["New rent."],
        ["Old"],
    ),
    "field.rtf": (
        (
            '{\\rtf1 See {\\field{\\*\\fldinst HYPERLINK "http://a.or'
            'g"}{\\fldrslt the lease}}. It rained.\\par{\\*\\generato'
            "r Word}\\pard\\bullet\\tab Oil it\\par}"
        ),
        ["See the lease.", "It rained."],
        ["HYPERLINK", "Word"],
    ),
    "html.eml": (
        (
            b"Subject: Rent\nContent-Type: text/html; charset=utf"
            b"-8\n\n<html><style>p{}</style><p>The rent is due.</p"
            b"><p>Pay it.<br>Thanks</p></html>"
        ),
        ["The rent is due.", "Pay it."],
        ["p{}"],
    ),
    "latin.eml": (
        (
            b"Subject: Miete\nContent-Type: text/plain; charset=i"
            b"so-8859-1\nContent-Transfer-Encoding: 8bit\n\nDie Mie"
            b"te ist f\xe4llig. Zahlen Sie.\n"
        ),
        ["Die Miete ist f\xe4llig."],
        [],
    ),
    "digest.eml": (
        (
            b"Subject: Rent\nContent-Type: multipart/mixed; bound"
            b"ary=B\n\n--B\nContent-Type: text/plain\n\nSee it.\n--B\nC"
            b"ontent-Type: application/pdf; name=lease.pdf\nConte"
            b"nt-Disposition: attachment; filename=lease.pdf\n\nJV"
            b"BERi0=\n--B--\n"
        ),
        ["See it."],
        ["JVBER"],
    ),
    "error.ipynb": (
        notebook(
            {
                "cell_type": "code",
                "source": "1/0",
                "outputs": [
                    {
                        "output_type": "error",
                        "ename": "ZeroDivisionError",
                        "evalue": "division by zero",
                        "traceback": [
                            "\x1b[31mZeroDivisionError\x1b[0m: division by zero"
                        ],
                    }
                ],
            },
            {"cell_type": "raw", "source": "It rained."},
        ),
        ["It rained."],
        ["\x1b", "[31m"],
    ),
    "strings.json": (
        '["The rent is due.","Pay it."]',
        ["The rent is due.", "Pay it."],
        [],
    ),
    "ns.xml": (
        (
            "<a:feed xmlns:a='urn:a'><a:entry><a:title>Rent</a:ti"
            "tle><a:sum>12</a:sum></a:entry><a:entry><a:title>Tol"
            "l</a:title><a:sum>40</a:sum></a:entry></a:feed>"
        ),
        ["title: Rent | sum: 12", "title: Toll | sum: 40"],
        [],
    ),
    "verb.tex": (
        (
            "\\begin{document}Run \\verb|mill -d| now. It stops. % "
            "old\n\\begin{equation}a=b.\\end{equation} So it ends.\\f"
            "ootnote{Oh. Yes.}\\end{document}"
        ),
        ["It stops."],
        ["old"],
    ),
    "wide.csv": ("name,rent,\nAnne,,\n,12,\n\nBob,3,x\n", ["Bob,3,x"], []),
    "esc.json": (
        ('{"name":"Z\\u00fcrich\\nMill","url":"https:\\/\\/a.org","n":1e3}'),
        ["name: Z\xfcrich Mill | url: https://a.org | n: 1e3"],
        ["\\u00fc", "\\/"],
    ),
    "chat.srt": (
        ("1\n00:00:01,000 --> 00:00:02,000\n- Who signed it?\n- Anne did.\n"),
        ["00:00:01 - Anne did."],
        ["-->"],
    ),
    "radio.html": (
        (
            "<label><input type=radio checked name=a> Monthly</la"
            "bel><label><input type=radio name=a> Yearly</label><"
            "textarea>Call Anne. Pay.</textarea>"
        ),
        ["\u25c9 Monthly \u25cb Yearly Call Anne.", "Pay."],
        [],
    ),
    "settings.txt": (
        ("[server]\nport = 8080\nhost = mill.example\n\n[log]\nlevel = debug\n"),
        ["port = 8080", "host = mill.example"],
        [],
    ),
    "math.md": (
        "The sum is $a+b$. Then $$c = d.$$ It rained.\n",
        ["The sum is $a+b$.", "It rained."],
        [],
    ),
    "list.yaml": (
        "- The rent is due.\n- Pay it.\n",
        ["The rent is due.", "Pay it."],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_of_a_small_file(name: str) -> None:
    check_results(name, CASES[name])
