from xml.etree import ElementTree

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
