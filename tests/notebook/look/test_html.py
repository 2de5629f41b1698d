from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook import prose
from agentbench.notebook.look.html import MAX_ROWS, Page, Table, element


def test_children_and_values_are_escaped_unless_they_are_markup():
    assert element("p", "<b>", element("i", "x"), title='"<') == '<p title="&quot;&lt;">&lt;b&gt;<i>x</i></p>'


def test_both_forms_say_the_same():
    page = Page(
        "Thing",
        state="IDLE",
        look="done",
        facts=["2 parts"],
        tables=[Table("Parts", ("a", "b"), [("x", 1), ("yy", 22)])],
    )
    assert page.text() == "Thing: IDLE, 2 parts\nparts\n  x   1\n  yy  22"
    shown = "".join(ElementTree.fromstring(page.html()).itertext())
    for word in ("Thing", "IDLE", "2 parts", "Parts", "yy", "22"):
        assert word in shown


def test_long_tables_are_counted():
    table = Table("Parts", ("a",), [(index,) for index in range(MAX_ROWS + 40)])
    assert table.lines()[-1] == "  … 40 more"
    assert "… 40 more" in table.html()
    assert len(table.lines()) == MAX_ROWS + 2


def test_words_stay_apart_where_a_page_removes_styles():
    html = Page("Thing", state="finished", look="done", facts=["2 parts"]).html()
    assert "".join(ElementTree.fromstring(html).find("p").itertext()) == "Thing finished 2 parts"  # type: ignore[union-attr]


# ---- prose

ALLOWED = {"div", "style", "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "strong", "em", "code", "pre", "a"}


class Reader(HTMLParser):
    """Reads as a browser does: elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def body(text: str) -> str:
    html = prose(text, render="markdown").html
    return re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)[len('<div class="ab_view ab_prose">') : -6]


def test_markdown_becomes_elements_and_nothing_else() -> None:
    for text, html in [
        ("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"),
        ("# Top #\n###### Low", "<h3>Top</h3><h6>Low</h6>"),
        ("**bold**, *leaning*", "<p><strong>bold</strong>, <em>leaning</em></p>"),
        ("__bold__, _leaning_", "<p><strong>bold</strong>, <em>leaning</em></p>"),
        ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
        ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
        ("`a < b` and ``x`y``", "<p><code>a &lt; b</code> and <code>x`y</code></p>"),
        ("```python\nif a < b:\n\n  pass\n```\nafter", "<pre><code>if a &lt; b:\n\n  pass</code></pre><p>after</p>"),
        ("~~~\nnever closed", "<pre><code>never closed</code></pre>"),
        ("- a\n- b\n  more\n\n- c", "<ul><li><p>a</p></li><li><p>b\nmore</p></li><li><p>c</p></li></ul>"),
        ("1. a\n   - b\n   - c\n2. d", "<ol><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ol>"),
        ("3) a", '<ol start="3"><li>a</li></ol>'),
        (r"\*not\* \_this\_", "<p>*not* _this_</p>"),
        ("[a *b*](mailto:x)", "<p>a <em>b</em> (mailto:x)</p>"),
        (
            "![a cat](https://x.test/c.png)",
            '<p>a cat (<a href="https://x.test/c.png" rel="noopener noreferrer" target="_blank">https://x.test/c.png</a>)</p>',
        ),
        ("[x](javascript:alert)", "<p>x (javascript:alert)</p>"),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>"),
    ]:
        assert body(text) == html


def test_plain_text_stays_as_it_is_and_so_does_the_twin() -> None:
    shown = prose("# not a heading\n  <b>")
    assert '<div class="ab_plain"># not a heading\n  &lt;b&gt;</div>' in shown.html
    assert shown._repr_mimebundle_()["text/plain"] == str(shown) == "# not a heading\n  <b>"
    assert repr(shown) == "Prose(21 characters, plain)"


def test_control_characters_are_spelled_and_long_texts_cut() -> None:
    shown = prose("\u202eabc" + "x" * 100, render="markdown", limit=10)
    assert "\\u202eabc" in shown.html
    assert len(re.sub(r"<style>.*?</style>", "", shown.html, flags=re.DOTALL)) < 200


@given(st.text(alphabet=st.sampled_from("ab *_`#-1.[]()!<>&\\\n~:/htps\"'"), max_size=200))
def test_every_text_is_displayed_in_order_with_harmless_elements(text: str) -> None:
    read = Reader(prose(text, render="markdown").html)
    assert read.open == []
    assert set(read.tags) <= ALLOWED
    for name, value in read.attributes:
        assert name != "href" or str(value).lower().startswith(("http://", "https://"))
    # Letters are never lost or moved, but for the name of a language after a fence.
    if "```" not in text and "~~~" not in text:
        assert re.sub("[^ab]", "", "".join(read.words)) == re.sub("[^ab]", "", text)
