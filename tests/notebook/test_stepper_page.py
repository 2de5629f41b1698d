"""What travels between a stepper and its page: messages both ways, and nothing in any trait."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.exceptions import install_command
from agentbench.notebook import Stepper, stepper
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.page import StepperPart

WAIT_S = 20.0  # only a bound for a test that hangs
SECRET = "correct-horse-battery-staple"


@dataclass
class Draft:
    prompt: str
    api_key: str = SECRET


class Plan(Executor):
    @handler
    async def plan(self, topic: str, ctx: WorkflowContext[dict[str, Any]]) -> None:
        print("planning", topic)
        ctx.set_state("topic", {"name": topic, "words": list(range(450)), "password": SECRET})
        await ctx.send_message({"topic": topic, "long": "x" * 5000})


class Review(Executor):
    @handler
    async def review(self, message: dict[str, Any], ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(Draft(f"Publish {message['topic']}?"), bool)

    @response_handler
    async def answered(self, asked: Draft, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        if not ok:
            raise ValueError(f"rejected {asked.prompt}")
        await ctx.yield_output(asked.prompt)


def flow() -> Workflow:
    plan, review = Plan(id="plan"), Review(id="review")
    return WorkflowBuilder(start_executor=plan, name="flow").add_edge(plan, review).build()


class Wire:
    """Everything that parts send, and a way to wait for what is to come."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self._more = threading.Condition()

    def take(self, part: str, message: dict[str, Any]) -> None:
        json.dumps(message)  # it has to travel
        with self._more:
            self.sent.append((part, message))
            self._more.notify_all()

    def last(self, part: str, kind: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The newest message of a kind; waits until there is one."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            found[:] = [m for p, m in self.sent if p == part and m["kind"] == kind and where(m)]
            return bool(found)

        with self._more:
            assert self._more.wait_for(there, WAIT_S), f"no {kind} message came to {part}"
        return found[-1]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    wire = Wire()
    monkeypatch.setattr(StepperPart, "send", lambda self, content, buffers=None: wire.take(self.part, content))
    return wire


@pytest.fixture
def panel(wire: Wire) -> Iterator[Stepper]:
    made = stepper(flow(), "cats")
    assert made._screen.widget is made._screen.widget
    yield made
    made.close()


def page_of(panel: Stepper) -> Any:
    return panel._screen.page


def say(panel: Stepper, kind: str, **more: Any) -> None:
    """What the page would say."""
    page_of(panel)._on_message({"kind": kind, "view": "view-1", **more})


def settled(panel: Stepper) -> None:
    """Let everything be drawn that has happened so far, where it is always drawn: on the loop of the runs."""
    done = threading.Event()
    panel._session.call_on_loop(panel._screen._draw)
    panel._session.call_on_loop(done.set)
    assert done.wait(WAIT_S)


def status_is(words: str) -> Callable[[dict[str, Any]], bool]:
    return lambda message: bool(message["header"]["status"].startswith(words))


# --- buttons ----------------------------------------------------------------------------------------------------------


def test_a_page_that_is_ready_gets_everything_at_once(panel: Stepper, wire: Wire) -> None:
    say(panel, "ready")
    for_it = {"view": "view-1"}.items()
    view = wire.last("top", "view", lambda m: for_it <= m.items())
    assert (view["header"]["name"], view["status"], view["stops"]) == ("flow", "ready", (("input", "input"),))
    assert wire.last("side", "side", lambda m: for_it <= m.items())["tab"] == "state"


def test_a_press_on_step_takes_a_superstep_and_the_page_hears_of_it(panel: Stepper, wire: Wire) -> None:
    say(panel, "press", name="step")
    view = wire.last("top", "view", status_is("paused"))
    assert view["header"]["superstep"] == "superstep 0"
    assert wire.last("log", "log")["headline"] == ("step", "superstep 0: plan got 1 message")
    assert panel.superstep == 0


def test_pause_is_confirmed_at_once_even_while_an_executor_keeps_the_loop_busy(wire: Wire) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Busy(Executor):
        @handler
        async def work(self, topic: str, ctx: WorkflowContext[str]) -> None:
            entered.set()
            go_on.wait(WAIT_S)
            await ctx.send_message(topic)

    busy = Busy(id="busy")
    panel = stepper(WorkflowBuilder(start_executor=busy, name="busy").add_edge(busy, busy).build(), "cats")
    _ = panel._screen.widget
    say(panel, "press", name="run")
    assert entered.wait(WAIT_S)
    say(panel, "press", name="pause")
    pausing = wire.last("top", "view")["banner"]["text"] == "Pausing after this superstep."
    go_on.set()
    wire.last("top", "view", status_is("paused"))
    assert pausing
    panel.close()


def test_a_press_that_is_not_possible_now_changes_nothing_and_the_page_is_reminded(panel: Stepper, wire: Wire) -> None:
    before = len(wire.sent)
    say(panel, "press", name="back")
    wire.last("top", "view")
    with wire._more:
        assert wire._more.wait_for(lambda: len(wire.sent) > before, WAIT_S)
    assert panel.status == "ready"


def test_save_sends_the_page_of_the_run_to_the_view_that_asks_and_writes_nothing(
    panel: Stepper, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    panel.run()
    say(panel, "press", name="save")
    sent = wire.last("top", "file")
    assert (sent["view"], sent["name"]) == ("view-1", "flow.html")
    assert sent["text"] == panel.save("kept.html").read_text(encoding="utf-8")
    assert SECRET not in sent["text"]
    assert [each.name for each in tmp_path.iterdir()] == ["kept.html"]


def test_keep_as_test_writes_a_test_under_a_free_name_and_logs_it_or_the_reason(
    panel: Stepper, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logged(words: str) -> object:
        return wire.last("log", "log", lambda message: any(words in line for _, line in message["lines"]))

    monkeypatch.chdir(tmp_path)
    say(panel, "press", name="keep_as_test")
    panel.run()
    say(panel, "press", name="keep_as_test")
    logged("could not be kept")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys.modules[__name__], "kept_flow", panel.workflow, raising=False)
    for name in ("test_flow.py", "test_flow_2.py"):
        say(panel, "press", name="keep_as_test")
        logged(f"Kept as {name}")
        assert SECRET not in (tmp_path / name).read_text(encoding="utf-8")


def test_what_no_page_of_ours_would_say_is_passed_over(panel: Stepper) -> None:
    messages: list[dict[str, Any]] = [
        {"kind": "nonsense"},
        {"kind": "press"},
        {"kind": "press", "name": "__class__"},
        {"kind": "press", "name": ["step"]},
        {"kind": "goto", "id": "../../etc/passwd"},
        {"kind": "goto", "id": 3},
        {"kind": "tab", "name": "secrets"},
        {"kind": "level", "path": ["a"], "start": 0, "stamp": 1},
        {"kind": "level", "path": [99], "start": 0, "stamp": 1},
        {"kind": "level", "path": [0], "start": -5, "stamp": 1},
        {"kind": "level", "path": [0], "start": 0, "stamp": 999},
        {"kind": "full", "path": [99], "stamp": 1},
        {"kind": "full"},
        {"kind": "confirm"},
        {"kind": "press", "name": "confirm"},
        {"kind": "press", "name": "cancel"},
        {"kind": "press", "name": "run_steps", "value": "many"},
        {"kind": "press", "name": "run_breakpoint"},
        {"kind": "break", "sort": "nonsense", "choice": 0},
        {"kind": "break", "sort": "before", "choice": 99},
        {"kind": "break", "sort": ["before"], "choice": 0},
        {"kind": "break_node", "when": "before", "on": True},
        {"kind": "unbreak", "id": "bp-99"},
        {"kind": "unbreak", "id": 3},
        {"kind": "draft", "path": [99], "stamp": 1},
        {"kind": "edit", "path": [0], "stamp": 1, "text": 3},
        {"kind": "typed", "path": "topic", "stamp": 1, "text": "x"},
        {"kind": "discard", "path": 7},
        {"kind": "discard", "path": "not.there"},
    ]
    for message in messages:
        say(panel, **message)
    assert panel.step().superstep == 0


def stops_seen(wire: Wire) -> list[tuple[str, str]]:
    """The line of checkpoints as a page puts it together."""
    line: list[tuple[str, str]] = []
    for part, message in list(wire.sent):
        if part == "top" and "stops" in message and "view" not in message:
            line = [*line[: message["stopsFrom"]], *message["stops"]]
    return line


def test_of_the_line_of_checkpoints_only_what_is_new_is_sent(panel: Stepper, wire: Wire) -> None:
    for _ in range(2):
        panel.step()
        settled(panel)
    sent = [m for part, m in wire.sent if part == "top" and m.get("stops")]
    assert [(m["stopsFrom"], len(m["stops"])) for m in sent] == [(0, 1), (1, 1), (2, 1)]
    panel.back()
    panel.step(2)
    settled(panel)
    ids = [info.checkpoint_id for info in panel.checkpoints]
    assert [checkpoint_id for _, checkpoint_id in stops_seen(wire)] == ["input", *ids]
    settled(panel)
    assert not any(m.get("stops") for part, m in wire.sent[-3:] if part == "top")


def test_going_to_a_checkpoint_shows_it(panel: Stepper, wire: Wire) -> None:
    panel.run()
    say(panel, "goto", id=panel.checkpoints[0].checkpoint_id)
    view = wire.last("top", "view", lambda m: m["banner"]["tone"] == "past")
    assert view["banner"]["text"].startswith("Viewing checkpoint 1 of 2 (superstep 0).")
    side = wire.last("side", "side", lambda m: m["title"] == "Shared state after superstep 0")
    assert [row[0] for row in side["level"]["rows"]] == ["topic"]


def test_the_focus_goes_to_a_question_only_after_a_press_on_this_page(panel: Stepper, wire: Wire) -> None:
    say(panel, "press", name="run")
    assert wire.last("top", "focusRequest")["view"] == "view-1"
    by_code = stepper(flow(), "cats")
    _ = by_code._screen.widget
    by_code.run()
    wire.last("top", "view", lambda m: m["header"]["run"].endswith(by_code.run_id[:8]) and status_is("waiting")(m))
    assert sum(message["kind"] == "focusRequest" for _, message in wire.sent) == 1
    by_code.close()


# --- tabs -------------------------------------------------------------------------------------------------------------


def test_a_level_of_values_is_sent_on_request(panel: Stepper, wire: Wire) -> None:
    panel.step()
    side = wire.last("side", "side", lambda m: bool(m["level"]["rows"]))
    [(name, kind, _, note, opens, _, _)] = side["level"]["rows"]
    assert (name, kind, note, opens) == ("topic", "dict (3)", "changed", True)
    say(panel, "level", path=[0, 1], start=200, stamp=side["stamp"])
    level = wire.last("side", "level")
    assert (level["path"], level["view"], level["level"]["more"]) == ([0, 1], "view-1", 50)
    assert level["level"]["rows"][0][:3] == ("200", "int", "200")


class Table:
    def _repr_html_(self) -> str:
        return "<table><tr><td>1993</td></tr></table>"


def test_outputs_are_displayed_as_they_display_themselves_and_else_as_values(wire: Wire) -> None:
    class Report(Executor):
        @handler
        async def report(self, topic: str, ctx: WorkflowContext[Any, Any]) -> None:
            await ctx.yield_output({"topic": topic, "api_key": SECRET})
            await ctx.yield_output(Table())
            await ctx.yield_output("the end")

    panel = stepper(WorkflowBuilder(start_executor=Report(id="report"), name="report").build(), "cats")
    _ = panel._screen.widget
    panel.run()
    view = wire.last("top", "view", status_is("finished"))
    assert view["banner"]["text"] == "Finished. Output (the last of 3): the end"
    assert view["banner"]["actions"] == (("see_output", "See output"),)
    say(panel, "press", name="see_output")
    side = wire.last("side", "side", lambda m: m["tab"] == "output")
    assert side["title"] == "3 outputs, newest first"
    newest, oldest = side["level"]["rows"]
    assert (newest[0], newest[2], oldest[1]) == ("report, superstep 0", "the end", "dict (2)")
    assert side["displays"] == ((1, "report, superstep 0: Table", "text/html", Table()._repr_html_()),)  # between them
    assert SECRET not in json.dumps(wire.sent)
    panel.close()


def test_an_earlier_checkpoint_shows_what_was_done_until_then(wire: Wire) -> None:
    class Twice(Executor):
        @handler
        async def count(self, number: int, ctx: WorkflowContext[int, str]) -> None:
            await ctx.yield_output(f"pass {number}")
            if number < 2:
                await ctx.send_message(number + 1)

    twice = Twice(id="twice")
    panel = stepper(WorkflowBuilder(start_executor=twice, name="twice").add_edge(twice, twice).build(), 1)
    _ = panel._screen.widget
    panel.run()
    say(panel, "press", name="see_output")
    assert wire.last("side", "side", lambda m: m["tab"] == "output")["title"] == "2 outputs, newest first"
    panel.back()
    assert wire.last("side", "side", lambda m: m["tab"] == "output" and m["title"] == "1 output")["level"]["rows"]
    page_of(panel).panel.select("twice")
    facts = dict(wire.last("side", "side", lambda m: m["tab"] == "node" and m["facts"])["facts"])
    assert facts["visits"] == "1, the last in superstep 0"
    panel.close()


# --- breakpoints ------------------------------------------------------------------------------------------------------


def test_a_breakpoint_is_offered_set_listed_ringed_and_removed(panel: Stepper, wire: Wire) -> None:
    say(panel, "offers")
    offers = wire.last("top", "offers", lambda m: m["view"] == "view-1")["offers"]
    assert [offer[0] for offer in offers][:4] == ["before", "after", "superstep", "message"]
    say(panel, "break", sort="before", choice=1, value=None, once=False)
    view = wire.last("top", "view", lambda m: bool(m["breakpoints"]))
    [(breakpoint_id, text, reached)] = view["breakpoints"]
    assert (text, reached) == ("before review", False)
    assert page_of(panel).panel.breakpoint_ids == ("review",)
    panel.run()
    view = wire.last("top", "view", status_is("paused (breakpoint: review)"))
    assert view["breakpoints"] == ((breakpoint_id, text, True),)
    say(panel, "unbreak", id=breakpoint_id)
    settled(panel)
    assert page_of(panel).panel.breakpoint_ids == ()


# --- edits ------------------------------------------------------------------------------------------------------------


def state_side(wire: Wire) -> dict[str, Any]:
    return wire.last("side", "side", lambda m: m["tab"] == "state" and bool(m["level"]["rows"]))


def test_a_value_is_edited_in_its_place_and_staged(panel: Stepper, wire: Wire) -> None:
    panel.step()
    settled(panel)
    stamp = state_side(wire)["stamp"]
    say(panel, "draft", path=[0, 0], stamp=stamp)
    draft = wire.last("side", "draft")
    assert (draft["text"], draft["help"], draft["draft"]) == ("cats", "text", None)
    say(panel, "edit", path=[0, 0], stamp=stamp, text="dogs", key="k")
    assert wire.last("side", "edited")["problem"] == ""
    view = wire.last("top", "view", lambda m: "not applied" in m["banner"]["text"])
    assert view["banner"]["actions"] == (("see_edits", "See it"), ("discard_edits", "Discard"))
    assert [(edit.path, edit.after) for edit in panel._session.model.edits] == [("topic.name", "dogs")]
    say(panel, "tab", name="diff")
    side = wire.last("side", "side", lambda m: m["tab"] == "diff" and bool(m["changes"]))
    assert side["title"] == "1 edit, not applied yet"
    assert side["changes"][0][1][0][2] == "topic.name"
    say(panel, "discard", path="topic.name", stamp=side["stamp"])
    wire.last("top", "view", lambda m: "is next" in m["banner"]["text"])
    assert panel._session.model.edits == ()


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [([0, 1], "[1, 2", "Not valid JSON"), ([0, 1], "{}", "list"), ([0, 1, 0], '"a"', "integer")],
)
def test_a_refused_edit_says_why_and_keeps_what_was_typed(
    panel: Stepper, wire: Wire, path: list[int], text: str, problem: str
) -> None:
    panel.step()
    settled(panel)
    stamp = state_side(wire)["stamp"]
    say(panel, "typed", path=path, stamp=stamp, text=text)
    say(panel, "edit", path=path, stamp=stamp, text=text, key="k")
    told = wire.last("side", "edited")
    assert problem in told["problem"]
    assert told["key"] == "k"
    assert panel._session.model.edits == ()
    say(panel, "draft", path=path, stamp=stamp)
    assert wire.last("side", "draft")["draft"] == text


def test_what_was_typed_comes_back_with_the_page(panel: Stepper, wire: Wire) -> None:
    panel.step()
    settled(panel)
    say(panel, "typed", path=[0], stamp=state_side(wire)["stamp"], text='{"half": ')
    say(panel, "ready")
    side = wire.last("side", "side", lambda m: m.get("view") == "view-1")
    assert side["level"]["rows"][0][6] == 2
    say(panel, "typed", path=[0], stamp=side["stamp"], text=None)
    say(panel, "ready")
    settled(panel)
    assert state_side(wire)["level"]["rows"][0][6] == 1


def test_what_is_typed_and_not_saved_goes_along_with_a_fork(panel: Stepper, wire: Wire) -> None:
    panel.step()
    settled(panel)
    stamp = state_side(wire)["stamp"]
    say(panel, "typed", path=[0, 1], stamp=stamp, text="[1, 2", key="words")
    wire.last("top", "view", lambda m: "typed here" in m["banner"]["text"])
    say(panel, "press", name="fork")  # it cannot be used as it is: nothing happens but that its field says why
    edited = wire.last("side", "edited")
    assert (edited["key"], "Not valid JSON" in edited["problem"]) == ("words", True)
    before = panel.run_id
    say(panel, "typed", path=[0, 1], stamp=stamp, text="[1, 2]", key="words")
    say(panel, "press", name="fork")
    wire.last("log", "log", lambda m: any(kind == "edit" for kind, _ in m["lines"]))
    assert panel.run_id != before
    assert panel.state["topic"]["words"] == [1, 2]
    assert wire.last("side", "edited")["problem"] == ""
    assert page_of(panel).drafts == {}


def test_an_edit_is_one_of_the_checkpoint_that_its_writer_looked_at(panel: Stepper, wire: Wire) -> None:
    panel.run()
    panel.respond(panel.pending[0].request_id, True)
    panel.run()
    first, second = (info.checkpoint_id for info in panel.checkpoints[:2])
    panel.goto(first)
    settled(panel)
    seen = wire.last("side", "side", lambda m: m["checkpoint"] == first and m["tab"] == "state")
    say(panel, "typed", path=[0, 0], stamp=seen["stamp"], text="do")
    panel.goto(second)  # somebody else, in another panel
    settled(panel)
    there = wire.last("side", "side", lambda m: m["checkpoint"] == second)
    say(panel, "level", path=[0], start=0, stamp=there["stamp"])
    assert wire.last("side", "level")["level"]["rows"][0][6] == 1  # nobody has begun to edit this one
    say(panel, "edit", path=[0, 0], stamp=seen["stamp"], text="dogs", key="k")
    assert wire.last("side", "edited")["problem"] == ""
    model = panel._session.model
    assert ([edit.after for edit in model.staged_edits.of(first)], model.staged_edits.of(second)) == (["dogs"], ())
    say(panel, "discard", path="topic.name", stamp=seen["stamp"])
    assert model.staged_edits.of(first) == ()


def test_what_holds_a_secret_is_not_handed_out_to_be_edited(panel: Stepper, wire: Wire) -> None:
    panel.step()
    settled(panel)
    stamp = state_side(wire)["stamp"]
    say(panel, "draft", path=[0], stamp=stamp)
    assert "secret" in wire.last("side", "draft")["problem"]
    say(panel, "edit", path=[0, 2], stamp=stamp, text="x", key="k")  # the secret itself
    settled(panel)
    assert panel._session.model.edits == ()
    assert SECRET not in json.dumps(wire.sent)


# --- requests ---------------------------------------------------------------------------------------------------------


def test_an_open_request_has_a_form_that_stays_until_the_run_moves_on(panel: Stepper, wire: Wire) -> None:
    panel.run()
    settled(panel)
    page = page_of(panel)
    requests = page._requests
    [form] = requests._forms.values()
    form.set_raw("approved", "Approve")
    assert form.submit()
    wire.last("top", "view", status_is("paused"))
    assert list(requests._forms.values()) == [form]
    panel.run()
    settled(panel)
    assert requests.box.children == ()


def test_the_form_of_a_question_is_not_shown_at_an_earlier_checkpoint_and_is_back_in_the_present(
    panel: Stepper, wire: Wire
) -> None:
    panel.run()
    settled(panel)
    page = page_of(panel)
    [form] = page._requests._forms.values()
    form.set_raw("approved", "Approve")
    say(panel, "press", name="back")
    settled(panel)
    assert page._requests.box.children == ()
    assert "; answer " not in panel.text
    say(panel, "press", name="live")
    settled(panel)
    assert list(page._requests._forms.values()) == [form]
    assert form.raw["approved"] == "Approve"


# --- what is kept, and what is not ------------------------------------------------------------------------------------


def widget_states(panel: Stepper) -> str:
    """The state of every widget of a panel, as a page or a file would keep it."""
    seen: dict[str, Any] = {}

    def gather(widget: Any) -> None:
        seen[widget.model_id] = widget.get_state()
        for child in getattr(widget, "children", ()):
            gather(child)

    gather(panel._screen.widget)
    return json.dumps(seen, default=str)


def test_nothing_that_a_run_holds_is_in_the_state_of_any_widget(wire: Wire) -> None:
    panel = stepper(flow(), SECRET, name="kept")
    _ = panel._screen.widget
    panel.run()
    settled(panel)
    for tab in ("messages", "events", "node"):
        page_of(panel)._open_tab(tab)
        settled(panel)
    panel.respond(panel.pending[0].request_id, False)
    panel.run()
    settled(panel)
    assert panel.status == "failed"
    assert SECRET not in widget_states(panel)
    assert SECRET not in json.dumps(panel._repr_mimebundle_(), default=str)
    panel.close()


def test_masked_values_are_not_even_sent(panel: Stepper, wire: Wire) -> None:
    panel.run()
    settled(panel)
    side = wire.last("side", "side")
    say(panel, "level", path=[0], start=0, stamp=side["stamp"])
    assert wire.last("side", "level")["level"]["rows"][2][2] == "•••"
    assert SECRET not in json.dumps(wire.sent)


def test_a_closed_panel_leaves_no_widget_in_the_kernel(wire: Wire) -> None:
    known = ipywidgets.widgets.widget._instances
    before = set(known)
    made = stepper(flow(), "cats")
    _ = made._screen.widget
    made.step()
    settled(made)
    assert set(known) > before
    made.close()
    settled(made)
    left = [type(known[key]).__name__ for key in set(known) - before]
    assert left == []


# --- without a live panel ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["anywidget", "ipywidgets", None])
def test_without_a_live_panel_a_cell_shows_a_picture_the_text_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    if missing is None:
        settings.configure(live_graph=False)
    else:
        for module in [name for name in sys.modules if re.match(r"agentbench\.notebook\..*(page|widgets)", name)]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, missing, None)
    panel = stepper(flow(), "<b>cats</b>")
    panel.run()
    bundle = panel._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    first, *_, last = bundle["text/plain"].splitlines()
    assert "waiting" in first
    assert f"answer {panel.pending[0].request_id}" in bundle["text/plain"]
    assert (missing or "live_graph=False") in last
    assert install_command("notebook") in last
    panel.close()
