from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowCheckpoint, WorkflowContext, handler
from agentbench.notebook import DiffPlot, diff
from agentbench.notebook.stepping.stepper import stepper
from tests.notebook.attacks import ATTACKS


def checkpoint(name: str, state: dict[str, Any]) -> WorkflowCheckpoint:
    return WorkflowCheckpoint("flow", "hash", checkpoint_id=name, timestamp="2026-01-01", state=state)


def between(before: dict[str, Any], after: dict[str, Any], **more: Any) -> DiffPlot:
    return diff(checkpoint("one", before), checkpoint("two", after), **more)


class Note(Executor):
    @handler
    async def note(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("last", self.id)
        await ctx.send_message(text)


def one_step() -> Workflow:
    one, two = Note(id="one"), Note(id="two")
    return WorkflowBuilder(start_executor=one).add_edge(one, two).build()


def parts(svg: str, tag: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("}" + tag)]


def test_only_the_words_that_changed_are_marked():
    svg = between({"text": "the quick brown fox"}, {"text": "the slow brown fox, again"}).svg
    root = ElementTree.fromstring(svg)
    marked = [(each.get("class"), each.text) for each in root.iter() if each.tag.endswith("}tspan")]
    assert marked == [("ab_del", "quick"), ("ab_ins", "slow"), ("ab_ins", ","), ("ab_ins", " "), ("ab_ins", "again")]
    assert "the quick brown fox" in parts(svg, "text")


def test_a_diff_iterates_over_its_changes_and_is_false_without_any():
    plot = between({"n": 1}, {"n": 2})
    assert [change.path for change in plot] == ["state.n"] == [change.path for change in plot.changes]
    assert (len(plot), plot[0].after, bool(between({}, {}))) == (1, 2, False)
    assert str(plot) == str(plot.found)
    assert repr(plot) == "DiffPlot('one and two: 1 changed')"


def test_ids_are_loaded_from_a_stepper_a_run_or_a_storage():
    panel = stepper(one_step(), "a")
    panel.run()
    ids = [info.checkpoint_id for info in panel.handle.checkpoints]
    found = [diff(ids[0], ids[-1], source=source).text for source in (panel, panel.handle, panel.handle.storage)]
    assert len(set(found)) == 1
    assert "no difference" not in found[0]


def test_secrets_are_in_no_form():
    plot = between(
        {"api_key": "sk-1", "draft": {"password": "hunter2"}}, {"api_key": "sk-2", "draft": {"password": "x9"}}
    )
    bundle = plot._repr_mimebundle_()
    for form in (plot.svg, plot.text, *bundle.values()):
        assert not any(secret in form for secret in ("sk-", "hunter2", "x9"))


def test_long_texts_wrap_and_end(tmp_path: Path):
    plot = between({"text": "word " * 2000}, {"text": "other " * 2000, "list": ["y" * 300] * 30}, width=600)
    root = ElementTree.fromstring(plot.svg)
    assert root.get("width") == "600"
    assert float(root.attrib["height"]) < 500
    assert plot.save(tmp_path / "diff.svg").read_text(encoding="utf-8") == plot.svg


def test_a_front_end_gets_a_table_and_text():
    plot = between({"n": 1}, {"n": 2})
    assert set(plot._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert set(plot._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert set(plot._repr_mimebundle_(exclude=["text/html"])) == {"text/plain"}


def test_values_and_keys_are_text_in_every_form():
    for attack in ATTACKS:
        plot = between({"text": attack, attack: 1}, {"text": f"{attack} now", attack: attack})
        root = ElementTree.fromstring(plot.svg)
        assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {
            *("svg", "title", "desc", "style", "rect", "text", "tspan", "path", "g"),
        }
        assert not any(key.startswith("on") or "href" in key for each in root.iter() for key in each.attrib)
        assert not re.search("[\x00-\x08\u202e]", plot.svg + plot.text)
