import warnings
from typing import Any

from agentbench import (
    CheckpointInfo,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowRun,
)
from agentbench.notebook.runtime.settings import configure
from tests.notebook import graphs
from tests.parts.errors import raises


async def stopped_at_a_question() -> tuple[WorkflowRun, InMemoryCheckpointStorage]:
    configure(deterministic=True)
    storage = InMemoryCheckpointStorage()
    run = graphs.research().start("x", checkpoint_storage=storage)
    await run.result()
    return run, storage


def lines(bundle: dict[str, Any]) -> list[str]:
    assert set(bundle) == {"text/plain", "text/html"}
    return str(bundle["text/plain"]).splitlines()


async def test_a_result_tells_state_outputs_requests_and_supersteps():
    configure(deterministic=True)
    result = await graphs.research().run("x")
    assert lines(result._repr_mimebundle_()) == [
        "WorkflowRunResult: waiting for an answer, 15 events",
        "requests",
        "  request-1  review  Question(text='x')  bool",
        "supersteps",
        "  0  plan",
        "  1  search",
        "  2  draft",
        "  3  review  1 request",
    ]


async def test_a_run_shows_its_position_with_a_picture():
    run, _ = await stopped_at_a_question()
    bundle = run._repr_mimebundle_()
    assert lines(bundle)[0] == (
        "WorkflowRun: waiting for an answer, run-1, superstep 3, 0 messages queued, 4 checkpoints"
    )
    assert 'src="data:image/svg+xml;base64,' in bundle["text/html"]
    assert "review (asks a person) [waiting]" in bundle["text/html"]


async def test_displaying_a_run_does_not_move_it():
    run = graphs.research().start("x")
    run._repr_mimebundle_()
    assert (run.superstep, run.events) == (0, [])
    report = await run.step()
    assert report.superstep == 0


async def test_a_failure_tells_executor_error_and_message():
    run = WorkflowBuilder(start_executor=graphs.Fail("a")).build().start("broken & <b>")
    with raises(ValueError, "broken"):
        await run.result()
    bundle = run._repr_mimebundle_()
    assert "  a  ValueError  broken & <b>" in lines(bundle)
    assert "broken &amp; &lt;b&gt;" in bundle["text/html"]
    assert "  0  a (failed)" in lines(bundle)


async def test_times_are_left_out_of_outputs_that_have_to_be_equal():
    for deterministic in (True, False):
        configure(deterministic=deterministic)
        run = graphs.research().start("x")
        await run.step()
        await run.step()
        assert (" ms" in run._repr_mimebundle_()["text/plain"]) is not deterministic


async def test_a_checkpoint_shows_what_waits_in_it_with_secrets_masked():
    run, storage = await stopped_at_a_question()
    checkpoint = await storage.load(run.checkpoints[1].checkpoint_id)
    checkpoint.state.update({"topic": "llamas", "api_key": "sk-123", "login": {"password": "hunter2"}})
    bundle = checkpoint._repr_mimebundle_()
    text = "\n".join(lines(bundle))
    assert "  search" in text
    assert "llamas" in text
    for form in bundle.values():
        assert "sk-123" not in form
        assert "hunter2" not in form


async def test_warnings_are_reported_with_their_superstep_and_reason():
    class Unstorable(graphs.Yield):
        async def on_checkpoint_save(self) -> dict[str, Any]:
            raise ValueError("<b>no</b> room")

    workflow = WorkflowBuilder(start_executor=Unstorable("a")).build()
    run = workflow.start("fine", checkpoint_storage=InMemoryCheckpointStorage())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = await run.result()
    for shown in (result, run):
        bundle = shown._repr_mimebundle_()
        text = lines(bundle)
        told = text[text.index("warnings") + 1]
        assert told.startswith("  1  The checkpoint of superstep 1 was not saved: ")
        assert "<b>no</b> room" in told
        assert "strict_checkpoints=True" in told
        assert "&lt;b&gt;no&lt;/b&gt; room" in bundle["text/html"]
        assert "<b>no</b> room" not in bundle["text/html"]
        assert text[text.index("supersteps") + 1 :] == ["  0  a  1 output"]


def test_times_and_long_ids_are_short_in_html_and_whole_in_text_and_title():
    time, ident = "2026-11-22T02:33:10.123456+00:00", "0f8fad5b-d9cb-469f-a165-70867728950e"
    info = CheckpointInfo("flow", ident, 1, time, run_id=ident)
    bundle = info._repr_mimebundle_()
    assert time in bundle["text/plain"]
    assert ident in bundle["text/plain"]
    html = bundle["text/html"]
    assert f'<span title="{time}">2026-11-22 02:33:10 UTC</span>' in html
    assert html.count(f'<span title="{ident}">0f8fad5b…</span>') == 2
    assert html.count(time) == 1
