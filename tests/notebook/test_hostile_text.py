"""Whatever people and models write, views show it and do nothing else. One test for each view, forty texts each."""

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from agentbench import (
    AgentSession,
    CheckpointInfo,
    FunctionTool,
    InMemoryCheckpointStorage,
    LocalEvaluator,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowErrorDetails,
    WorkflowEvent,
    keyword_check,
    run_sync,
)
from agentbench.evaluation import compare_evaluations
from agentbench.notebook import compare, diff, draw, lineage, timeline, usage
from agentbench.notebook.graph import renderers
from agentbench.notebook.graph_panel.panel import make_graph_panel
from tests.evaluation.conversations import item
from tests.notebook import graphs
from tests.notebook.attacks import ATTACKS

RENDERERS = [name for name in ("pure", "builtin") if renderers._look_for(name) is not None]

SVG_ELEMENTS = {
    "svg", "g", "title", "desc", "style", "path", "polygon", "ellipse", "rect", "circle", "text", "defs", "pattern",
    "line",
}  # fmt: skip
HTML_ELEMENTS = {
    "div", "style", "p", "b", "span", "svg", "path", "table", "caption", "thead", "tbody", "tr", "th", "td", "img",
    "code", "pre", "ins", "del", "details", "summary", "figure", "figcaption",
}  # fmt: skip
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\U000e0041]")


def named(attack: str) -> Any:
    """A workflow in which everything that has a name is called like the attack."""

    def condition(message: str) -> bool:
        return True

    condition.__name__ = attack.replace("\x00", "")  # Python allows no NUL there
    first, second = graphs.Step(attack), graphs.Ask(f"{attack} 2")
    return WorkflowBuilder(start_executor=first, name=attack).add_edge(first, second, condition=condition).build()


def check_svg(svg: str) -> None:
    assert not HIDDEN.search(svg)
    root = ElementTree.fromstring(svg)
    for each in root.iter():
        assert each.tag.rpartition("}")[2] in SVG_ELEMENTS
        for name, value in each.attrib.items():
            assert not name.startswith("on")
            assert "href" not in name
            assert name != "style"
            assert name.startswith("data-") or "javascript" not in value
        if each.tag.endswith("}style"):
            assert not re.search(r"pwned|url\(|expression|<", each.text or "")
    assert len(svg) < 100_000


class Elements(HTMLParser):
    """Collects what a browser would build."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def check_html(text: str) -> None:
    assert not HIDDEN.search(text)
    found = Elements()
    found.feed(text)
    assert found.tags <= HTML_ELEMENTS
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "srcdoc", "style", "action")
        assert name != "src" or value.startswith("data:image/svg+xml;base64,")
    assert len(text) < 400_000


def check_text(text: str) -> None:
    assert not HIDDEN.search(text)
    assert max(map(len, text.splitlines()), default=0) < 1000


def check_bundle(bundle: dict[str, Any]) -> None:
    for mime, form in bundle.items():
        if mime == "image/png":
            continue
        assert type(form) is str  # some hosts write a subclass of str as an object
        {"text/plain": check_text, "text/html": check_html, "image/svg+xml": check_svg}[mime](form)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_graph(renderer: str):
    for attack in ATTACKS:
        view = draw(named(attack), run={attack: "failed"}, renderer=renderer)
        check_svg(view.svg)
        check_svg(view.live_svg)
        check_text(view.text)
        check_text(view.table)
        texts = [each.text or "" for each in ElementTree.fromstring(view.svg).iter() if each.tag.endswith("}text")]
        assert len(texts) == 3  # two nodes and one edge: nothing was added to the graph


def test_a_panel_and_its_badges():
    for attack in ATTACKS:
        panel: Any = make_graph_panel(named(attack))
        panel.update({attack: "waiting"}, {attack: attack})
        panel.flush()
        check_svg(panel.svg)
        for text in (*panel.badges.values(), panel.label, panel.note):
            check_text(text)
        check_text(repr(panel))
        panel.close()


async def test_a_run_with_its_result_and_its_checkpoints():
    for attack in ATTACKS:
        storage = InMemoryCheckpointStorage()
        run = named(attack).start(attack, checkpoint_storage=storage)
        result = await run.result()
        for bundle in (result._repr_mimebundle_(), run._repr_mimebundle_()):
            check_bundle(bundle)
        for info in run.checkpoints:
            check_bundle(info._repr_mimebundle_())
            checkpoint = await storage.load(info.checkpoint_id)
            checkpoint.state[attack] = {attack: attack}
            check_bundle(checkpoint._repr_mimebundle_())
        for event in run.events:
            check_bundle(event._repr_mimebundle_())


def test_failures_warnings_and_odd_facts():
    for attack in ATTACKS:
        details = WorkflowErrorDetails(attack, attack, traceback=attack)
        for event in (
            WorkflowEvent.executor_failed(attack, details),
            WorkflowEvent.failed(details),
            WorkflowEvent.warning(attack),
            WorkflowEvent(attack, attack),
        ):
            check_bundle(event._repr_mimebundle_())
        check_bundle(CheckpointInfo(attack, attack, 1, attack, source=attack, run_id=attack)._repr_mimebundle_())


def test_what_is_shown_is_what_was_written():
    for attack in ATTACKS:
        shown = html.unescape(WorkflowEvent.warning(attack)._repr_mimebundle_()["text/html"])
        assert attack[:20].split("\n")[0] in shown or HIDDEN.search(attack)


# ---- what has a view and comes from people or models in other ways than a run


def evaluated(attack: str) -> list[Any]:
    results = run_sync(LocalEvaluator(keyword_check("paris")).evaluate([item(attack, attack)], eval_name=attack))
    return [results, results.items[0], compare_evaluations(results, results)]


def changed(attack: str) -> list[Any]:
    before = {"same": attack, "text": attack, attack: 1, "list": [attack]}
    after = {"same": attack, "text": f"{attack} more", "list": ["x", attack], "new": {attack: attack}}
    first, second = (
        WorkflowCheckpoint(attack, "hash", checkpoint_id=attack, timestamp=attack, state=state)
        for state in (before, after)
    )
    return [diff(first, second)]


def drawn(attack: str) -> list[Any]:
    events: list[WorkflowEvent[Any]] = [
        WorkflowEvent.executor_invoked(attack),
        WorkflowEvent("model_usage", {"model": attack, "usage": {"input_token_count": 1}}, executor_id=attack),
        WorkflowEvent.executor_failed(attack, WorkflowErrorDetails("ValueError", attack)),
    ]
    infos = [
        CheckpointInfo(attack, attack, 0, attack, run_id=attack, source=attack, writers=(attack,)),
        CheckpointInfo(attack, attack + "2", 1, attack, previous_checkpoint_id=attack, run_id=attack),
    ]
    uses = [usage(events, by=by) for by in ("superstep", "executor", "model")]
    return [timeline(events), lineage(infos), *uses, compare(events, [])]


def filled(attack: str) -> list[Any]:
    session = AgentSession(session_id=attack)
    session.state[attack] = attack
    schema = {"properties": {attack: {"type": attack, "description": attack, "default": attack}}, "required": []}
    return [session, FunctionTool(name="made", description=attack, kind=attack, input_model=schema)]


@pytest.mark.parametrize("make", [evaluated, changed, drawn, filled])
def test_what_else_is_displayed(make: Callable[[str], list[Any]]):
    for attack in ATTACKS:
        for shown in make(attack):
            check_bundle(shown._repr_mimebundle_())
