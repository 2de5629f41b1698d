import html
import re

import graphviz
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.redact import preview
from tests.notebook.attacks import ATTACKS

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Secret:
    def get_secret_value(self) -> str:
        return "hunter2"

    def __repr__(self) -> str:
        return "Secret(hunter2)"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@given(st.text())
def test_markup_never_survives_and_plain_text_comes_back(text: str):
    escaped = esc(text, limit=None)
    assert not set("<>\"'") & set(escaped)
    if "\\" not in escaped:  # nothing had to be spelled out
        assert html.unescape(escaped) == text.replace("\r\n", "\n")


@given(st.text())
def test_no_control_or_bidi_character_passes_into_any_target(text: str):
    for into in ("html", "svg", "text", "line", "dot"):
        assert not CONTROL.search(esc(text, into=into, limit=None))


def test_hidden_characters_are_spelled_out():
    assert esc("a\u202eb\x00c\U000e0041", into="text") == "a\\u202eb\\u0000c\\U000e0041"


def test_emoji_that_are_joined_stay_whole():
    assert esc("\U0001f468\u200d\U0001f469", into="text") == "\U0001f468\u200d\U0001f469"


def test_a_cut_preview_says_how_much_is_missing():
    assert esc("x" * 5000).endswith("… (2,952 more characters)")


def test_a_dot_label_is_one_quoted_string():
    for attack in ATTACKS:
        graph = graphviz.Digraph()
        graph.node("n0", label=esc(attack, into="dot"))
        line = graph.source.splitlines()[1].strip()
        assert re.fullmatch(r'n0 \[label=(?:"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*)\]', line)


def test_previews_of_large_values_stop_early():
    assert len(preview(list(range(10**6)))) < 200
    assert len(preview(dict.fromkeys(range(1000), "x" * 10**6), limit=500)) < 20_000


def test_previews_hold_no_memory_addresses():
    assert "0x" not in preview([object()])
    assert preview([Broken()]) == "[<Broken: its repr raised RuntimeError>]"
