import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import RenderFailed
from agentbench.notebook.graph.dot_reader import read_dot
from agentbench.workflows.draw.drawing import WorkflowViz
from tests.notebook import graphs


def test_escapes_entities_comments_and_ports_are_understood():
    graph = read_dot('/* c */ strict digraph { a:port -> b; // note\n a [label="x\\ny &lt;b&gt; \\"q\\" \\\\"] }')
    assert graph.nodes["a"]["label"] == 'x\ny <b> "q" \\'
    assert graph.edges[0].source == "a"


def test_what_the_engine_writes_can_be_read():
    graph = read_dot(WorkflowViz(graphs.nested()).to_digraph())
    assert any(attributes.get("label", "").startswith("before") for attributes in graph.nodes.values())
    assert len(graph.clusters) == 2


def test_what_is_no_dot_is_named_with_its_line():
    for text, reason in [
        ("", "expected 'digraph' in line 1"),
        ("digraph { a -> }", "expected a name, found '}' in line 1"),
        ("digraph {\n a [label=<b>] }", "unexpected '<' in line 2"),
        ("digraph { a", "expected '}' in line 1"),
        ("digraph " + "{" * 60, "more than 50 levels of braces"),
    ]:
        with pytest.raises(RenderFailed) as caught:
            read_dot(text)
        assert caught.value.reason.startswith(reason)
        assert caught.value.renderer == "builtin"


@given(st.text(alphabet='digraph {}[];,=:->"\\\n ab/*#', max_size=80))
def test_any_text_is_read_or_refused(text: str):
    try:
        read_dot(f"digraph {text}")
    except RenderFailed as failure:
        assert failure.reason  # noqa: PT017 - being refused is one of the two right outcomes
