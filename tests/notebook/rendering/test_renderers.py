import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from agentbench import WorkflowViz
from agentbench.exceptions import RendererUnavailable, RenderFailed
from agentbench.notebook import draw
from agentbench.notebook.graph import renderers
from agentbench.notebook.graph.renderers import Renderer, automatic, render_dot
from agentbench.notebook.runtime import settings
from tests.notebook import graphs
from tests.parts.errors import raises, warns

DOT = 'digraph { a [label="<b>x</b>" URL="javascript:1"]; a -> b }'

needs_pure = pytest.mark.skipif(renderers._look_for("pure") is None, reason="graphviz-pure is not installed")
needs_shebang = pytest.mark.skipif(os.name == "nt", reason="a script cannot stand in for a program on Windows")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a Python script in the place of the program of `pure`."""

    def put(body: str) -> None:
        script = tmp_path / "stand-in"
        script.write_text(f"#!{sys.executable}\nimport sys\n{body}\n", encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        stand_in = Renderer("pure", "0", str(script))
        monkeypatch.setattr(renderers, "_look_for", lambda name: {"pure": stand_in}.get(name, Renderer("builtin", "1")))
        renderers.automatic.cache_clear()

    return put


@needs_pure
def test_pure_is_found_beside_the_interpreter_and_taken_first():
    assert automatic().name == "pure"
    assert Path(str(automatic().program)).is_file()
    assert render_dot(DOT, "png").startswith(b"\x89PNG")


def test_the_choice_is_made_once(monkeypatch: pytest.MonkeyPatch):
    first = automatic()
    monkeypatch.setattr(renderers, "_look_for", lambda name: pytest.fail("looked again"))
    assert automatic() is first


def test_a_named_renderer_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with raises(RendererUnavailable, "apt install graphviz"):
        render_dot(DOT, "svg", renderer="dot")


def test_a_format_that_the_renderer_does_not_write_is_refused():
    with raises(RenderFailed, "builtin", "png", "graphviz-pure"):
        render_dot(DOT, "png", renderer="builtin")


@needs_pure
def test_links_and_comments_are_gone():
    svg = render_dot(DOT, "svg").decode()
    assert "javascript" not in svg
    assert "<!--" not in svg
    assert "<!DOCTYPE" not in svg
    assert "&lt;b&gt;x&lt;/b&gt;" in svg


@needs_pure
def test_a_syntax_error_names_the_line_when_the_renderer_was_named():
    with pytest.raises(RenderFailed) as caught:
        render_dot("digraph {\n a -> ;\n}", "svg", renderer="pure")
    assert "line 2" in caught.value.reason
    assert caught.value.dot_line == "a -> ;"


@needs_shebang
def test_the_builtin_draws_when_the_automatic_choice_fails(program):
    program("print('Error: out of paint', file=sys.stderr); sys.exit(3)")
    view = draw(graphs.research())
    assert "<svg" in view.svg
    assert "out of paint" in view._repr_mimebundle_()["text/plain"]
    with warns(RuntimeWarning, "'builtin'"):
        assert "publish" in Path(WorkflowViz(graphs.research()).export("svg")).read_text(encoding="utf-8")


@needs_shebang
def test_a_named_renderer_that_fails_is_not_replaced(program):
    program("sys.exit(3)")
    with raises(RenderFailed, "exit status 3"):
        render_dot(DOT, "svg", renderer="pure")


@needs_shebang
def test_a_renderer_that_takes_too_long_is_ended(program):
    program("sys.stdin.read(); import threading; threading.Event().wait()")
    settings.configure(render_timeout_s=0.05)
    with raises(RenderFailed, "0.05 s"):
        render_dot(DOT, "svg", renderer="pure")


@needs_pure
def test_many_threads_may_draw_at_once():
    pictures: list[bytes] = []
    dots = [f'digraph {{ a [label="{index % 4}"] }}' for index in range(16)]
    threads = [threading.Thread(target=lambda dot=dot: pictures.append(render_dot(dot, "svg"))) for dot in dots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pictures) == 16
    assert len(set(pictures)) == 4
