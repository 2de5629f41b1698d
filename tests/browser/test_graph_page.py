"""Graphs in a real page: states, selection, keys, themes, and hostile text that must not run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agentbench.notebook.look.states import STATES
from tests.browser.page_parts import expect
from tests.notebook.look.test_states import contrast
from tests.parts.nightly import nightly

PANEL = """
from IPython.display import display
from agentbench.notebook import make_graph_panel
from tests.notebook.graphs import research, nested
panel = make_graph_panel(research())
display(panel)
told = display('nothing', display_id=True)
panel.on_select(lambda executor_id: told.update(f'selected {executor_id}'))
panel.on_breakpoints(lambda ids: told.update(f'stops {",".join(ids)}'))
"""

# Gives a panel a part of the width that its picture has.
NARROW = "(panel, part) => { panel.style.width = `${part * panel.querySelector('svg').width.baseVal.value}px`; }"

STATES_CELL = """
from agentbench.notebook import make_graph_panel
from tests.notebook.graphs import chain
names = {names!r}
panel = make_graph_panel(chain(names))
panel.update(dict(zip(names, names)))
panel
"""

TAMPERED = """
panel.svg = panel.svg.replace('</svg>', '''
  <script>window.pwned=1</script><foreignObject><p xmlns="http://www.w3.org/1999/xhtml" onclick="pwned=1"/>
  </foreignObject><image href="x" onerror="window.pwned=1"/><style>*{fill:url(http://example.invalid)}</style>
  <a href="javascript:window.pwned=1"><rect width="9" height="9" style="x:y" onmouseover="pwned=1"/></a></svg>''')
"""

HOSTILE = """
from IPython.display import display
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.notebook import draw, make_graph_panel
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from tests.notebook.attacks import ATTACKS
from tests.notebook.graphs import Ask, Step
class Shown:
    def __init__(self, bundle): self.bundle = bundle
    def _repr_mimebundle_(self, **_): return self.bundle
storage = InMemoryCheckpointStorage()
async def show(attack):
    first, second = Step(attack), Ask(attack + ' 2')
    workflow = WorkflowBuilder(start_executor=first, name=attack).add_edge(first, second).build()
    panel = make_graph_panel(workflow)
    panel.update({attack: 'waiting'}, {attack: attack})
    run = workflow.start(attack, checkpoint_storage=storage)
    result = await run.result()
    checkpoint = await storage.load(run.checkpoints[-1].checkpoint_id)
    display(panel, workflow, result, run, Shown(checkpoint._repr_mimebundle_()))
    for event in {event.type: event for event in run.events}.values(): display(Shown(event._repr_mimebundle_()))
for attack in ATTACKS[FIRST:LAST]: await show(attack)
"""


def node(shown: Any, name: str) -> Any:
    return shown.panel.locator(".ab_panel").get_by_role("button", name=re.compile(f"^{name}(,|$)"))


@pytest.fixture
def graph(open_cells: Any) -> Any:
    shown = open_cells([PANEL])
    node(shown, "plan").wait_for()
    return shown


def test_states_arrive_and_the_focus_stays(graph: Any) -> None:
    node(graph, "draft").focus()
    graph.run("panel.update({'plan': 'done', 'search': 'running'}, {'plan': '2 visits'})")
    expect(node(graph, "plan")).to_have_accessible_name("plan, done, 2 visits")
    expect(node(graph, "search")).to_have_accessible_name("search, running")
    expect(node(graph, "draft")).to_be_focused()
    expect(graph.panel.locator(".ab_badge")).to_have_text("2 visits")
    graph.shot("graph-panel", graph.panel.locator(".ab_panel"))


def test_a_click_and_enter_select_and_both_reach_python(graph: Any) -> None:
    node(graph, "search").click()
    expect(graph.panel.get_by_text("selected search")).to_be_visible()
    expect(node(graph, "search")).to_have_attribute("aria-pressed", "true")
    graph.page.keyboard.press("ArrowRight")
    graph.page.keyboard.press("Enter")
    expect(graph.panel.get_by_text("selected draft")).to_be_visible()
    expect(node(graph, "search")).to_have_attribute("aria-pressed", "false")


def test_the_graph_needs_no_mouse(graph: Any) -> None:
    keyboard = graph.page.keyboard
    stops = graph.panel.locator(".ab_port [tabindex='0']")
    expect(stops).to_have_count(1)
    names = graph.panel.locator(".ab_port [role=button]").evaluate_all("all => all.map(each => each.ariaLabel)")
    assert [name.partition(",")[0] for name in names] == ["plan", "search", "draft", "review", "publish"]
    graph.button("Zoom in (+)").focus()
    keyboard.press("Tab")
    expect(node(graph, "plan")).to_be_focused()
    outline = node(graph, "plan").evaluate("each => getComputedStyle(each).outlineWidth")
    assert outline == "3px"
    for _ in range(3):
        keyboard.press("ArrowRight")
    expect(node(graph, "review")).to_be_focused()
    keyboard.press("b")
    expect(graph.panel.get_by_text("stops review")).to_be_visible()
    expect(node(graph, "review")).to_have_accessible_name("review, breakpoint")
    keyboard.press("Home")
    expect(node(graph, "plan")).to_be_focused()
    width = "document.querySelector('.ab_port svg').getBoundingClientRect().width"
    before = graph.page.evaluate(width)
    keyboard.press("+")
    assert graph.page.evaluate(width) > before
    keyboard.press("0")
    assert graph.page.evaluate(width) <= before
    keyboard.press("Escape")
    expect(graph.button("Fit the graph (0)")).to_be_focused()


@pytest.mark.parametrize(("part", "shrinks"), [(0.9, True), (0.4, False)])
def test_a_picture_that_is_a_little_too_wide_is_shrunk_and_a_wider_one_scrolled(
    open_cells: Any, part: float, shrinks: bool
) -> None:
    shown = open_cells([PANEL])
    node(shown, "plan").wait_for()
    shown.panel.locator(".ab_panel").evaluate(NARROW, part)
    shown.settle()
    port = shown.panel.locator(".ab_port")
    assert port.evaluate("port => port.scrollWidth <= port.clientWidth") is shrinks


def test_the_ground_is_dragged_and_a_drag_selects_nothing(graph: Any) -> None:
    port = graph.panel.locator(".ab_port")
    node(graph, "search").click()
    for _ in range(6):
        graph.button("Zoom in (+)").click()
    expect(node(graph, "search")).to_have_attribute("aria-pressed", "true")
    box, before = port.bounding_box(), port.evaluate("port => port.scrollLeft")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 25
    graph.page.mouse.move(x, y)
    graph.page.mouse.down()
    graph.page.mouse.move(x - 60, y, steps=4)
    graph.page.mouse.up()
    assert port.evaluate("port => port.scrollLeft") == before + 60
    expect(node(graph, "search")).to_have_attribute("aria-pressed", "true")
    graph.page.mouse.click(x, y)
    expect(node(graph, "search")).to_have_attribute("aria-pressed", "false")


def test_the_focus_stays_on_a_sub_workflow_that_is_opened(open_cells: Any) -> None:
    shown = open_cells([PANEL.replace("make_graph_panel(research())", "make_graph_panel(nested())")])
    node(shown, "middle").focus()
    expect(node(shown, "middle")).to_have_accessible_description("sub-workflow")
    shown.page.keyboard.press("Enter")
    expect(shown.panel.get_by_text("selected middle")).to_be_visible()
    shown.page.keyboard.press("Enter")
    expect(node(shown, "deep")).to_be_visible()
    expect(node(shown, "middle")).to_be_focused()
    shown.page.keyboard.press("Enter")
    expect(node(shown, "deep")).to_have_count(0)
    expect(node(shown, "middle")).to_be_focused()
    node(shown, "before").click()
    expect(shown.panel.get_by_text("selected before")).to_be_visible()
    node(shown, "middle").dblclick()
    expect(node(shown, "deep")).to_be_visible()


def test_keys_that_the_graph_does_not_take_go_on_to_what_is_around_it(lab: Any, open_notebook: Any) -> None:
    lab.write("keys", [PANEL])
    graph = open_notebook("keys")
    graph.run_all()
    heard = """(each) => {
        window.heard = [];
        each.closest('.jp-OutputArea').onkeydown = (event) => window.heard.push(event.key);
    }"""
    node(graph, "plan").evaluate(heard)
    node(graph, "plan").focus()
    expect(node(graph, "plan")).to_be_focused()
    for key in ["s", "ArrowRight", "x", "b", "?", "Escape"]:
        graph.page.keyboard.press(key)
    assert graph.page.evaluate("window.heard") == ["s", "x", "?", "Escape"]
    expect(graph.panel.locator(".jp-CodeCell")).to_have_count(2)  # JupyterLab's own keys did nothing


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_states_have_the_colours_of_the_table_and_text_that_can_be_read(open_cells: Any, dark: bool) -> None:
    names = list(STATES)
    shown = open_cells([STATES_CELL.format(names=names)], dark=dark)
    node(shown, "skipped").wait_for()
    # Transitions of the fill last 120 ms: read when nothing moves any more.
    shown.page.wait_for_function(
        "document.getAnimations().every(each => each.playState !== 'running' || each.animationName)"
    )
    for name, style in STATES.items():
        colours = node(shown, name).evaluate(
            "each => ['.ab_shape', 'text'].map(part => getComputedStyle(each.querySelector(part)).fill)"
        )
        fill, text = map(as_hex, colours)
        expected = style.dark if dark else style.light
        assert expected is None or fill == expected
        assert contrast(fill, text) >= 4.5
    shown.shot(f"states-{'dark' if dark else 'light'}", shown.panel.locator(".ab_panel"))


@pytest.mark.parametrize("part", [0, nightly(1)])
def test_hostile_text_does_not_run_and_nothing_leaves_the_machine(lab: Any, open_notebook: Any, part: int) -> None:
    lab.write("hostile", [HOSTILE.replace("FIRST", str(20 * part)).replace("LAST", str(20 * part + 20))])
    shown = open_notebook("hostile", own=True, height=4000)
    asked: list[str] = []
    dialogs: list[str] = []
    shown.page.on("request", lambda request: asked.append(request.url))

    def refuse(dialog: Any) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    shown.page.on("dialog", refuse)
    shown.run_all()
    shown.page.wait_for_function("document.querySelectorAll('.ab_port svg').length > 0")
    # Every element that could react to a pointer or to focus gets both.
    shown.page.evaluate(
        "document.querySelectorAll('.jp-OutputArea *').forEach(each => {"
        "  for (const type of ['mouseover', 'focus', 'click', 'toggle'])"
        "    each.dispatchEvent(new Event(type, {bubbles: type === 'mouseover'}));"
        "})"
    )
    assert shown.page.evaluate("window.pwned") is None
    assert dialogs == []
    assert [
        url for url in asked if not url.startswith((lab.base, lab.base.replace("http", "ws"), "data:", "blob:"))
    ] == []
    assert shown.page.locator(".jp-OutputArea-output script, .jp-OutputArea-output iframe").count() == 0


def test_the_page_checks_a_picture_before_it_adopts_it(open_cells: Any) -> None:
    shown = open_cells([PANEL, TAMPERED])
    node(shown, "plan").wait_for()
    port = shown.panel.locator(".ab_port")
    assert shown.page.evaluate("window.pwned") is None
    assert port.locator("script, foreignObject, image, style, iframe").count() == 0
    attributes = port.evaluate("port => [...port.querySelectorAll('*')].flatMap(each => each.getAttributeNames())")
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert port.locator("a").get_attribute("href") is None


def as_hex(colour: str) -> str:
    red, green, blue = (int(each) for each in re.findall(r"\d+", colour)[:3])
    return f"#{red:02X}{green:02X}{blue:02X}"
