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
from agentbench.notebook.graph.renderers import Renderer, automatic, find_renderer, run_program
from agentbench.notebook.runtime import settings
from tests.notebook import graphs
from tests.parts.errors import raises, warns

DOT = "digraph { a -> b }"

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
    assert [each["name"] for each in run_program(automatic(), DOT)["objects"]] == ["a", "b"]


def test_the_choice_is_made_once(monkeypatch: pytest.MonkeyPatch):
    first = automatic()
    monkeypatch.setattr(renderers, "_look_for", lambda name: pytest.fail("looked again"))
    assert automatic() is first


def test_a_named_renderer_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with raises(RendererUnavailable, "apt install graphviz"):
        find_renderer("dot")


@needs_pure
def test_a_syntax_error_names_the_line_when_the_renderer_was_named():
    with pytest.raises(RenderFailed) as caught:
        run_program(find_renderer("pure"), "digraph {\n a -> ;\n}")
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
@pytest.mark.parametrize("answer", ["<svg/>", "{}", '{"bb": "0,0,9,9", "objects": [{"name": "n9"}]}'])
def test_an_answer_that_is_no_layout_is_a_failure(program, answer: str):
    program(f"print({answer!r})")
    assert "Drawn with 'builtin' instead." in draw(graphs.research())._repr_mimebundle_()["text/plain"]


@needs_shebang
def test_a_named_renderer_that_fails_is_not_replaced(program):
    program("sys.exit(3)")
    with raises(RenderFailed, "exit status 3"):
        draw(graphs.research(), renderer="pure").svg  # noqa: B018 - rendered when read


@needs_shebang
def test_a_renderer_that_takes_too_long_is_ended(program):
    program("sys.stdin.read(); import threading; threading.Event().wait()")
    settings.configure(render_timeout_s=0.05)
    with raises(RenderFailed, "0.05 s"):
        draw(graphs.research(), renderer="pure").svg  # noqa: B018 - rendered when read


@needs_pure
def test_many_threads_may_draw_at_once():
    pictures: list[str] = []
    views = [draw(graphs.chain([f"node{index % 4}", "end"]), renderer="pure") for index in range(16)]
    threads = [threading.Thread(target=lambda view=view: pictures.append(view.svg)) for view in views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pictures) == 16
    assert len(set(pictures)) == 4
