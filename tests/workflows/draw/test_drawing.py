import hashlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import MissingExtraError
from agentbench.workflows.draw.drawing import RunOverlay, WorkflowViz
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup
from agentbench.workflows.run.workflow import Workflow
from tests.parts.errors import raises

Case, Default = SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault


def is_spam(data):
    return True


def graph(ids, *groups, inner=None, starts=None) -> Any:
    executors = {key: SimpleNamespace(id=key, type="Step", asks_person=False) for key in ids}
    for key, workflow in (inner or {}).items():
        executors[key].workflow = workflow
    return SimpleNamespace(
        name="flow",
        executors=executors,
        edge_groups=[*groups, *[InternalEdgeGroup(key) for key in ids]],
        start_executor_ids=starts or ids[:1],
        get_output_executors=list,
    )


def dot(*args, internal=False, overlay=None, **kwargs):
    return WorkflowViz(graph(*args, **kwargs), overlay=overlay).to_digraph(internal)


def mermaid(*args, internal=False, overlay=None, **kwargs):
    return WorkflowViz(graph(*args, **kwargs), overlay=overlay).to_mermaid(internal)


def lines(text):
    return [line.strip() for line in text.splitlines()]


# ---- nodes, edges ---------------------------------------------------------------------------------


def test_a_drawing_begins_with_its_header_and_marks_the_start():
    assert lines(dot(["a", "b"], SingleEdgeGroup("a", "b"))) == [
        "digraph Workflow {",
        "rankdir=TD;",
        "node [shape=box, style=filled, fillcolor=lightblue];",
        "edge [color=black, arrowhead=vee];",
        r'"a" [fillcolor=lightgreen, label="a\n(Start)"];',
        '"b" [label="b"];',
        '"a" -> "b";',
        "}",
    ]
    text = lines(mermaid(["a", "b"], SingleEdgeGroup("a", "b")))
    assert text == ["flowchart TD", 'a["a (Start)"];', 'b["b"];', "a --> b;"]


def test_a_condition_is_drawn_as_a_broken_line():
    edge = SingleEdgeGroup("a", "b", is_spam)
    assert '"a" -> "b" [style=dashed, label="conditional"];' in dot(["a", "b"], edge)
    assert "a -. conditional .-> b;" in mermaid(["a", "b"], edge)


def test_a_fan_in_has_one_node_between():
    digits = hashlib.sha256(b"t|a|b").hexdigest()[:8]
    parts = ["b", "a", "t"], FanInEdgeGroup(["b", "a"], "t")
    text, join = lines(dot(*parts)), f'"fan_in::t::{digits}"'
    assert sum(line.startswith(f"{join} [shape=ellipse") and 'label="fan-in"' in line for line in text) == 1
    assert [line for line in text if "->" in line] == [f'"b" -> {join};', f'"a" -> {join};', f'{join} -> "t";']
    text, join = lines(mermaid(*parts)), f"fan_in__t__{digits}"
    assert f"{join}((fan-in))" in text
    assert [line for line in text if "-->" in line] == [f"b --> {join};", f"a --> {join};", f"{join} --> t;"]


def test_switch_edges_are_labelled_with_their_conditions():
    group = SwitchCaseEdgeGroup("a", [Case(is_spam, "b"), Case(lambda data: True, "c"), Default("b")])
    text = dot(["a", "b", "c"], group)
    assert '"a" -> "b" [style=dashed, label="is_spam / default"];' in text
    assert '"a" -> "c" [style=dashed, label="<lambda>"];' in text
    chart = mermaid(["a", "b", "c"], group)
    assert 'a -. "is_spam / default" .-> b;' in chart
    assert 'a -. "#lt;lambda#gt;" .-> c;' in chart
    restored = SwitchCaseEdgeGroup.from_dict(SwitchCaseEdgeGroup("a", [Case(None, "b"), Default("c")]).to_dict())
    assert 'label="<missing>"' in dot(["a", "b", "c"], restored)
    assert "a -. default .-> c;" in mermaid(["a", "b", "c"], restored)


def test_a_selection_is_labelled_with_its_function_and_a_broadcast_is_plain():
    chosen = FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: targets, selection_func_name="by_tag")
    assert dot(["a", "b", "c"], chosen).count('[style=dashed, label="by_tag"]') == 2
    assert "dashed" not in dot(["a", "b", "c"], FanOutEdgeGroup("a", ["b", "c"]))


# --------------------------------------------------------------------------------------------------------------- names


def test_quotes_backslashes_line_ends_and_markup_are_escaped():
    text = dot(['say "hi"', "c:\\n", "two\nlines"])
    assert r'"say \"hi\"" [fillcolor=lightgreen, label="say \"hi\"\n(Start)"];' in text
    assert r'"c:\\n" [label="c:\\n"];' in text
    assert r'"two\nlines" [label="two\nlines"];' in text
    chart = mermaid(['say "hi" <b>#1</b>\nnow'])
    assert '["say #quot;hi#quot; #lt;b#gt;#35;1#lt;/b#gt; now (Start)"];' in chart


def test_ids_that_look_alike_keep_names_of_their_own():
    names = re.findall(r'^ {2}"(.+?)" \[', dot(["a\r", "a\n", "a\r\n", "a"]), flags=re.MULTILINE)
    assert len(set(names)) == 4
    text = lines(mermaid(["a b", "a_b", "a-b", "1st", "été"]))
    assert text[1:] == ['a_b["a b (Start)"];', 'a_b_2["a_b"];', 'a_b_3["a-b"];', 'n_1st["1st"];', 'été["été"];']


def test_words_that_mean_something_to_mermaid_are_no_ids():
    words = ["end", "End", "graph", "subgraph", "style", "class", "click"]
    assert lines(mermaid(["a", *words]))[2:] == [f'n_{word}["{word}"];' for word in words]


# ---------------------------------------------------------------------------------------------- unprintable characters


def test_control_and_bidirectional_characters_are_written_as_codes():
    ids = ["nul\0", "esc\x1b[31m", "over\u202eride", "tag\U000e0041", "half\ud800"]
    chart, text = mermaid(ids), dot(ids)
    for label in (r"nul\u0000", r"esc\u001b[31m", r"over\u202eride", r"tag\U000e0041", r"half\ud800"):
        assert f'["{label}' in chart
        in_dot = label.replace("\\", "\\\\")  # a label reads two backslashes as one
        assert f'"{in_dot}" [' in text
        assert f'label="{in_dot}' in text
    assert not set("\0\x1b\u202e\U000e0041\ud800") & set(chart + text)


# ------------------------------------------------------------------------------------------------------ internal edges


def test_internal_edges_are_drawn_on_request_only():
    for draw in (dot, mermaid):
        assert "internal" not in draw(["a"])
    assert '"internal:a" -> "a";' in dot(["a"], internal=True)
    assert "internal_a --> a;" in mermaid(["a"], internal=True)


# ------------------------------------------------------------------------------------------------------- sub-workflows


def nested():
    deep = graph(["x", "y"], SingleEdgeGroup("x", "y"))
    middle = graph(["in", "mid"], SingleEdgeGroup("in", "mid"), inner={"mid": deep})
    return {"ids": ["a", "we"], "inner": {"we": middle}}


def test_sub_workflows_are_framed_two_levels_deep_in_dot():
    case = nested()
    text = dot(case["ids"], SingleEdgeGroup("a", "we"), inner=case["inner"])
    assert len(re.findall(r"subgraph cluster_[0-9a-f]{8} \{", text)) == 2
    assert len(set(re.findall(r"cluster_[0-9a-f]{8}", text))) == 2
    assert 'label="sub-workflow: we";' in text
    assert 'label="sub-workflow: mid";' in text
    assert r'"we/in" [fillcolor=lightgreen, label="in\n(Start)"];' in text
    assert '"we/mid/x" -> "we/mid/y";' in text
    assert '"a" -> "we";' in text
    assert '"we" -> "we/in" [style=dotted, arrowhead=none];' in text
    assert text.count("{") == text.count("}") == 3


def test_sub_workflows_are_framed_two_levels_deep_in_mermaid():
    case = nested()
    text = lines(mermaid(case["ids"], SingleEdgeGroup("a", "we"), inner=case["inner"]))
    assert 'subgraph we["sub-workflow: we"]' in text
    assert 'subgraph we__mid["sub-workflow: mid"]' in text
    assert "we__mid__x --> we__mid__y;" in text
    assert "a --> we;" in text
    assert text.count("end") == 2
    assert 'we["we"];' not in text


def test_a_workflow_inside_itself_is_drawn_once():
    loop = graph(["a"])
    loop.executors["a"].workflow = loop
    assert "cluster" not in WorkflowViz(loop).to_digraph()


# ------------------------------------------------------------------------------------------------------------- overlay


def test_an_overlay_marks_nodes_by_text_class_and_colour():
    overlay = {"executed": ["a"], "failed": ["b", "e"], "pending": ["c"]}
    text = dot(["a", "b", "c", "d", "e"], overlay=overlay)
    assert r'"a" [fillcolor="#c8e6c9", class=executed, label="a\n(Start)\n[executed]"];' in text
    assert r'"b" [fillcolor="#ffcdd2", class=failed, label="b\n[failed]"];' in text
    assert r'"c" [fillcolor="#fff3c4", class=pending, label="c\n[pending]"];' in text
    assert '"d" [label="d"];' in text
    chart = mermaid(["a", "b", "c", "d", "e"], overlay=overlay)
    assert 'a["a (Start) [executed]"];' in chart
    assert "class b,e failed;" in chart
    assert "classDef pending " in chart


def event(kind, executor_id=None):
    return SimpleNamespace(type=kind, source_id=executor_id)


def test_the_events_of_a_run_make_an_overlay():
    overlay = RunOverlay.of(
        [
            event("started"),
            event("executor_invoked", "done"),
            event("executor_completed", "done"),
            event("executor_invoked", "broken"),
            event("executor_failed", "broken"),
            event("executor_invoked", "busy"),
            event("executor_invoked", "waits"),
            event("request_info", "waits"),
            event("executor_completed", "waits"),
            event("executor_invoked", "answered"),
            event("request_info", "answered"),
            event("executor_completed", "answered"),
            event("executor_invoked", "answered"),
            event("executor_completed", "answered"),
            event("output", "other"),
        ]
    )
    assert overlay.executed == {"done", "answered"}
    assert overlay.failed == {"broken"}
    assert overlay.pending == {"busy", "waits"}


# -------------------------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize("name", ["gif", "SVG"])
def test_an_unknown_format_is_refused(name):
    with raises(ValueError, "'svg'", "'png'", "'pdf'", "'dot'"):
        WorkflowViz(graph(["a"])).export(name)


def test_dot_goes_to_a_temporary_file_without_any_renderer():
    viz = WorkflowViz(graph(["a"]))
    path = Path(viz.export("dot"))
    try:
        assert path.suffix == ".dot"
        assert path.read_text(encoding="utf-8") == viz.to_digraph()
    finally:
        path.unlink()


def test_a_named_file_is_written_and_gets_the_extension_of_the_format(tmp_path):
    viz = WorkflowViz(graph(["a"]))
    assert viz.export("dot", tmp_path / "one.gv") == str(tmp_path / "one.gv")
    assert viz.export("dot", str(tmp_path / "two")) == str(tmp_path / "two.dot")
    assert viz.export("dot", tmp_path / "three.v1") == str(tmp_path / "three.v1.dot")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.gv", "three.v1.dot", "two.dot"]


def test_an_extension_that_contradicts_the_format_is_refused(tmp_path):
    viz = WorkflowViz(graph(["a"]))
    for save in (viz.save_svg, viz.save_pdf, lambda name: viz.export("dot", name)):
        with raises(ValueError, "'png'"):
            save(tmp_path / "graph.PNG")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("thing", [None, Workflow])
def test_what_is_no_workflow_is_refused_by_its_type(thing):
    with raises(TypeError, "got", type(thing).__name__):
        WorkflowViz(thing)


def test_pictures_come_from_the_renderer_of_the_notebook_layer(tmp_path, monkeypatch):
    calls = []

    def call_view(view, shape, file_format, states):
        calls.append((view, [node.id for node in shape.nodes], file_format, states))
        return f"<{file_format}>".encode()

    monkeypatch.setattr("agentbench.workflows.draw.drawing.call_view", call_view)
    viz = WorkflowViz(graph(["a"]), overlay={"executed": {"a"}})
    for save, name in ((viz.save_svg, "svg"), (viz.save_png, "png"), (viz.save_pdf, "pdf")):
        path = Path(save(tmp_path / "graph", include_internal_executors=True))
        assert path.name == f"graph.{name}"
        assert path.read_bytes() == f"<{name}>".encode()
    view = "agentbench.notebook.graph.view:render"
    assert calls == [(view, ["a", "internal:a"], name, {"a": "done"}) for name in ("svg", "png", "pdf")]


def test_without_the_notebook_packages_a_picture_says_what_to_install_and_leaves_no_file(tmp_path, monkeypatch):
    missing = ModuleNotFoundError("No module named 'graphviz'", name="graphviz")

    def import_module(name):
        raise missing

    monkeypatch.setattr("agentbench._display.importlib.import_module", import_module)
    with raises(MissingExtraError, "notebook") as caught:
        WorkflowViz(graph(["a"])).save_svg(tmp_path / "graph.svg")
    assert isinstance(caught.value, ImportError)
    assert list(tmp_path.iterdir()) == []


@given(ids=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6, unique=True))
def test_names_stay_apart_and_quotes_closed_for_all_ids(ids):
    found = re.findall(r'^ {2}(\S+)\["(.*)"\];$', mermaid(ids), flags=re.MULTILINE)
    assert len({name for name, _ in found}) == len(found) == len(ids)
    assert all(re.fullmatch(r"[^\W\d_]\w*", name) and '"' not in label for name, label in found)
    nodes = [line for line in dot(ids).split("\n")[4:-2] if line]
    assert len(nodes) == len(ids)
    assert all(len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) == 4 for line in nodes)
