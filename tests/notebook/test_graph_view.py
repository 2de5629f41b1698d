import itertools
import json
import sys
from xml.etree import ElementTree

import pytest

from agentbench.exceptions import MissingExtraError, RenderFailed, install_command
from agentbench.notebook import GraphView, draw
from agentbench.notebook.graph import renderers
from agentbench.notebook.graph.renderers import Renderer
from agentbench.notebook.runtime import settings
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode
from tests.notebook import graphs
from tests.parts.errors import raises

PURE = renderers._look_for("pure") is not None
THEMES = ["light", "dark"]
RENDERERS = ["builtin", *(["pure"] if PURE else [])]
SVG = "{http://www.w3.org/2000/svg}"


def classes(view: GraphView) -> dict[str, str]:
    root = ElementTree.fromstring(view.svg)
    found = {group.get("id", ""): group.get("class", "") for group in root.iter(f"{SVG}g")}
    return {element: name for element, name in found.items() if element[:1] in "nec" and element[1:].isdigit()}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_the_pause_sign_is_drawn_also_where_a_start_asks_a_person(renderer: str):
    asks = ShapeNode(id="ask", name="ask", kinds=("start", "hitl"))
    ends = ShapeNode(id="end", name="end", kinds=("output",))
    shape = GraphShape(nodes=(asks, ends), edges=(ShapeEdge(source="ask", target="end"),))
    view = draw(shape, renderer=renderer)
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(view.svg).iter(f"{SVG}text")]
    assert [text.strip() for text in texts] == ["▷ ask", "end"]
    assert view.svg.count('class="ab_icon"') == 1


@pytest.mark.parametrize("renderer", RENDERERS)
def test_all_renderers_give_the_same_elements_with_the_same_classes(renderer: str):
    view = draw(graphs.research(), run={"plan": "done", ("plan", "search"): "done"}, renderer=renderer)
    assert classes(view) == {
        "e0": "ab_edge ab_e_direct ab_s_done",
        "e1": "ab_edge ab_e_direct",
        "e2": "ab_edge ab_e_conditional",
        "e3": "ab_edge ab_e_direct",
        "e4": "ab_edge ab_e_loop",
        "n0": "ab_node ab_k_start ab_s_done",
        "n1": "ab_node ab_k_executor",
        "n2": "ab_node ab_k_executor",
        "n3": "ab_node ab_k_hitl",
        "n4": "ab_node ab_k_output",
    }


@pytest.mark.skipif(not PURE, reason="graphviz-pure is not installed")
@pytest.mark.parametrize("n_nodes", [1, 30])
def test_positions_are_those_that_graphviz_gave_before(n_nodes: int):
    # A chain from left to right: equal steps along x, one height. A renderer that drifts breaks this first.
    root = ElementTree.fromstring(draw(graphs.chain([f"n{i:02}" for i in range(n_nodes)]), renderer="pure").svg)
    texts = [
        text
        for group in root.iter(f"{SVG}g")
        if "ab_node" in group.get("class", "")
        for text in group.iter(f"{SVG}text")
    ]
    xs, ys = ([float(text.get(axis, "0")) for text in texts] for axis in "xy")
    assert len({round(y) for y in ys}) == 1
    steps = {round(b - a) for a, b in itertools.pairwise(xs[1:])}
    assert len(steps) <= 2


async def test_a_run_is_marked_in_picture_and_text():
    run = graphs.research().start("x")
    await run.result()
    view = draw(run)
    assert "review (asks a person) [waiting]" in view.text
    assert classes(view)["n3"] == "ab_node ab_k_hitl ab_s_waiting"


def test_a_large_graph_is_drawn_around_what_happens_in_it():
    view = draw(graphs.layers(1300), run={"step_0700": "waiting"})
    assert "step_0700" in [node.id for node in view.shape.nodes]


def test_wrong_choices_are_refused_with_the_right_ones():
    for wrong in [{"direction": "up"}, {"detail": "tiny"}, {"theme": "pink"}, {"renderer": "magic"}]:
        with raises(ValueError, "one of"):
            draw(graphs.research(), **wrong).svg  # type: ignore[arg-type]  # noqa: B018 - rendered when read


@pytest.mark.parametrize("renderer", RENDERERS)
def test_png_grows_with_its_scale_and_shows_states_in_the_theme(renderer: str):
    view = draw(graphs.research(), renderer=renderer)
    assert len(view.png(1)) < len(view.png(2))
    marked = [draw(graphs.research(), run={"plan": "failed"}, theme=theme, renderer=renderer).png() for theme in THEMES]
    assert len({view.png(), *marked}) == 3


def test_files_hold_what_their_suffix_says(tmp_path):
    for suffix in [".svg", ".dot", ".gv", ".txt", ".mmd"]:
        view = draw(graphs.research())
        path = view.save(tmp_path / f"graph{suffix}")
        expected = {".svg": view.svg, ".dot": view.dot, ".gv": view.dot, ".txt": view.text, ".mmd": view.mermaid}
        assert path.read_text(encoding="utf-8") == expected[suffix]


def test_a_suffix_that_names_no_format_is_refused(tmp_path):
    with raises(ValueError, ".dot", ".gv"):
        draw(graphs.research()).save(tmp_path / "graph.jpeg")


def test_the_bundle_holds_a_picture_and_text_and_nothing_else():
    bundle = draw(graphs.research())._repr_mimebundle_()
    assert set(bundle) - {"image/png"} == {"image/svg+xml", "text/plain"}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_notebook_with_fifty_nodes_in_it_stays_small(renderer: str):
    nodes = tuple(ShapeNode(id=f"executor_{i:02}", name=f"executor_{i:02}", type_name="Step") for i in range(50))
    pairs = [(i, i + 1 + i % 5) for i in range(45)] + [(i, i + 2) for i in range(0, 40, 2)]
    edges = tuple(
        ShapeEdge(source=f"executor_{a:02}", target=f"executor_{b:02}", kind="conditional", label="if needs_review")
        for a, b in dict.fromkeys(pairs)
    )
    shape = GraphShape(nodes=nodes, edges=edges)
    bundle = draw(shape, run={node.id: "done" for node in nodes}, renderer=renderer)._repr_mimebundle_()
    stored = {mime: data.splitlines(keepends=True) for mime, data in bundle.items()}
    assert len(json.dumps(stored, indent=1)) < 80_000


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_small_picture_is_also_a_png_for_notebooks_that_are_not_trusted(renderer: str):
    assert draw(graphs.research(), renderer=renderer)._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")
    assert "image/png" not in draw(graphs.layers(100), renderer=renderer)._repr_mimebundle_()
    settings.configure(static_png=False)
    assert "image/png" not in draw(graphs.research(), renderer=renderer)._repr_mimebundle_()


def test_without_resvg_the_svg_is_shown_and_a_file_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    view = draw(graphs.chain(["never", "drawn", "before"]))
    assert set(view._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}
    with raises(MissingExtraError, extra="notebook"):
        view.save(tmp_path / "graph.png")


def test_a_failing_renderer_gives_text_with_the_reason_and_never_raises(monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> bytes:
        raise RenderFailed("builtin", "out of paint")

    monkeypatch.setattr("agentbench.notebook.graph.renderers.place", fail)
    bundle = draw(graphs.research(), renderer="builtin")._repr_mimebundle_()
    assert list(bundle) == ["text/plain"]
    assert bundle["text/plain"].endswith(
        "No picture: The renderer 'builtin' failed: out of paint. Try another renderer."
    )


def test_not_even_a_bug_keeps_a_cell_from_its_text(monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> bytes:
        raise IndexError("pop from empty list")

    monkeypatch.setattr("agentbench.notebook.graph.renderers.place", fail)
    bundle = draw(graphs.research(), renderer="builtin")._repr_mimebundle_()
    assert list(bundle) == ["text/plain"]
    assert bundle["text/plain"].endswith("No picture: IndexError: pop from empty list")


def test_a_picture_by_the_second_choice_says_so_in_the_text(monkeypatch: pytest.MonkeyPatch, tmp_path):
    broken = Renderer("pure", "0", str(tmp_path))
    monkeypatch.setattr(renderers, "_look_for", lambda name: broken if name == "pure" else Renderer("builtin", "1"))
    renderers.automatic.cache_clear()
    bundle = draw(graphs.research())._repr_mimebundle_()
    assert "<svg" in bundle["image/svg+xml"]
    assert "Drawn with 'builtin' instead." in bundle["text/plain"]
    renderers.automatic.cache_clear()


def test_a_workflow_draws_itself():
    bundle = graphs.research()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("research-flow: 5 nodes")
    assert "<svg" in bundle["image/svg+xml"]


def test_without_graphviz_the_text_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    bundle = graphs.research("not drawn before")._repr_mimebundle_()
    assert list(bundle) == ["text/plain"]
    assert "plan (start) -> search" in bundle["text/plain"]
    assert install_command("notebook") in bundle["text/plain"]
