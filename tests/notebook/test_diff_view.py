"""A diff in a notebook: a table and its twin in text, a frame; nothing secret, nothing that acts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agentbench import InMemoryCheckpointStorage, WorkflowCheckpoint
from agentbench._text.changes import diff_text
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.exceptions import CheckpointNotFoundError
from agentbench.notebook import DiffPlot, diff, diff_frame
from tests.notebook.graphs import research
from tests.parts.errors import raises


def checkpoint(**state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint("flow", "hash", checkpoint_id="cp", timestamp="2026-01-01", state=state)


def between(before: dict[str, Any], after: dict[str, Any]) -> CheckpointDiff:
    return diff_checkpoints(checkpoint(**before), checkpoint(**after))


def forms(found: CheckpointDiff | DiffPlot) -> tuple[str, str]:
    """Its text and its HTML."""
    bundle = found._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    return bundle["text/plain"], bundle["text/html"]


def rows(html: str) -> list[list[str]]:
    """The cells of the last table, with their markup."""
    body = html.rpartition("<tbody>")[2]
    return [re.findall("<td[^>]*>(.*?)</td>", row, flags=re.DOTALL) for row in re.findall("<tr>(.*?)</tr>", body)]


def test_a_table_and_its_text_say_the_same():
    text, html = forms(between({"n": 1, "gone": "x", "o": [1, 2]}, {"n": "1", "new": {"a": 1}, "o": [2, 1]}))
    assert text.splitlines() == [
        "CheckpointDiff: 1 added, 1 removed, 1 changed, 1 reordered",
        "  before  cp  chain flow, superstep 0, 2026-01-01",
        "  after   cp  chain flow, superstep 0, 2026-01-01",
        "~ state.n: 1 -> '1'",
        "- state.gone = 'x'",
        "> state.o: reordered [1, 2] -> [2, 1]",
        "+ state.new = {'a': 1}",
    ]
    assert rows(html) == [
        ["~ changed", "<code>state.n</code>", "1", "&#x27;1&#x27;"],
        ["- removed", "<code>state.gone</code>", "x", ""],
        ["&gt; reordered", "<code>state.o</code>", "[1, 2]", "[2, 1]"],
        ["+ added", "<code>state.new</code>", "", "{&#x27;a&#x27;: 1}"],
    ]


def test_of_changed_texts_the_words_are_marked():
    found = between({"t": "the quick brown fox"}, {"t": "the slow brown fox, again"})
    ((_, _, before, after),) = rows(forms(found)[1])
    assert before == "<span>the <del>quick</del> brown fox</span>"
    assert after == "<span>the <ins>slow</ins> brown fox<ins>, again</ins></span>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a " * 100_000 + "x", "a " * 100_000 + "y"),
        ("word " * 50_000, "other " * 50_000),
        ("x" * 300_000, "y" * 300_000),
    ],
)
def test_the_changed_place_of_a_long_text_is_visible(before: str, after: str):
    found = between({"t": before}, {"t": after})
    text, html = forms(found)
    assert max(map(len, text.splitlines())) < 400
    assert len(html) < 60_000
    ((_, _, old, new),) = rows(html)
    assert "<del>" in old
    assert "<ins>" in new


def test_changes_beyond_the_sixtieth_are_counted():
    found = between({}, {f"k{i}": i for i in range(100)})
    text, html = forms(found)
    assert text.splitlines()[-1] == "… 40 more"
    assert len(rows(html)) == 61
    assert "… 40 more" in html
    assert len(str(found).splitlines()) == 103


def secret_states() -> tuple[dict[str, Any], dict[str, Any]]:
    def state(word: str) -> dict[str, Any]:
        return {
            "api_key": f"sk-{word}",
            "login": {"password": {f"pw-{word}"}, "user": {"headers": {"x": f"hd-{word}"}}},
            "new": {word: {"nested": {"client_secret": f"cs-{word}"}}},
            "texts": [{"token": f"tk-{word}"}, word],
        }

    return state("first"), state("other")


SECRET = re.compile("(sk|pw|hd|cs|tk)-(first|other)")


def test_secrets_are_masked_in_every_form():
    found = between(*secret_states())
    text, html = forms(found)
    frame = diff_frame(checkpoint(**secret_states()[0]), checkpoint(**secret_states()[1]))
    for form in (text, html, str(found), repr(found[0]), frame.to_csv()):
        assert not SECRET.search(form)
        assert "•••" in form
    assert "~ state.api_key: ••• -> •••" in text
    assert "- state.login.password = •••" in text, "the member of a set is not told by its path"


def test_secrets_are_displayed_with_secrets_true():
    text = diff_text(between(*secret_states()), secrets=True)
    assert "~ state.api_key: 'sk-first' -> 'sk-other'" in text
    assert "- state.login.password{'pw-first'} = 'pw-first'" in text
    assert "+ state.new.other = {'nested': {'client_secret': 'cs-other'}}" in text


# ------------------------------------------------------------------------------------------------------------- frames


async def test_checkpoints_are_loaded_by_info_or_id():
    storage = InMemoryCheckpointStorage()
    run = research().start("x", checkpoint_storage=storage)
    await run.result()
    first, last = run.checkpoints[0], run.checkpoints[-1]
    whole = diff(await storage.load(first.checkpoint_id), await storage.load(last.checkpoint_id))
    assert len(whole) > 1
    for source in (storage, run):
        assert [str(c) for c in diff(first, last.checkpoint_id, source=source)] == [str(c) for c in whole]
    assert list(diff_frame(first, last, source=run).index) == [change.path for change in whole]
    with pytest.raises(CheckpointNotFoundError):
        diff("nobody", last, source=storage)
    with raises(TypeError, "source=storage"):
        diff(first, last)


async def test_an_added_or_removed_request_is_displayed_as_its_data():
    storage = InMemoryCheckpointStorage()
    run = research().start("x", checkpoint_storage=storage)
    await run.result()
    ((request_id, event),) = ((e.request_id, e) for e in run.pending_requests)
    first, last = run.checkpoints[0], run.checkpoints[-1]
    came, went = diff(first, last, source=run), diff(last, first, source=run)
    line = f"requests[{request_id!r}] = {event.data!r}"
    assert f"+ {line}" in str(came).splitlines()
    assert any(text.startswith(f"- requests[{request_id!r}]") for text in str(went).splitlines())
    assert "source_executor_id" not in forms(came)[1] + forms(went)[1]
