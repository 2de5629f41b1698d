"""What if: branches of a run under changed conditions, and whether the change had an effect."""

from __future__ import annotations

import random
from typing import Any, Never, TypedDict

import pytest

from agentbench import (
    Agent,
    Executor,
    InMemoryCheckpointStorage,
    ScriptedChatClient,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRun,
    handler,
    response_handler,
)
from agentbench.batch import Budget, RowStatus, Start, run_many
from agentbench.exceptions import BatchInputError, VariantError, WorkflowCheckpointException
from agentbench.orchestrations import AgentExecutorResponse
from agentbench.stategraph import StateGraph, interrupt
from tests.parts.errors import raises
from tests.parts.nightly import nightly


def coin(chance: float, seed: int = 1) -> ScriptedChatClient:
    """Return a model that answers yes with this chance, and otherwise no."""
    drawn = random.Random(seed)
    return ScriptedChatClient(
        lambda messages, options: "yes" if drawn.random() < chance else "no", on_exhausted="repeat_last"
    )


class Read(Executor):
    """Remembers the tone, and passes the text on."""

    @handler
    async def read(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("tone", "long")
        await ctx.send_message(text)


class Write(Executor):
    """Yields the answer in the tone of the state."""

    @handler
    async def write(self, answer: AgentExecutorResponse, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{answer.agent_response.text}, {ctx.get_state('tone')}")


def judging(client: Any) -> Workflow:
    """Return a workflow of three supersteps, the second of which calls a model."""
    judge = Agent(client, "Judge.", name="judge")
    read, write = Read("read"), Write("write")
    builder = WorkflowBuilder(start_executor=read, name="judging", output_from=[write])
    return builder.add_edge(read, judge).add_edge(judge, write).build()


async def judged(client: Any) -> WorkflowRun:
    run = judging(client).start("a text", checkpoint_storage=InMemoryCheckpointStorage())
    await run.result()
    return run


class Ask(Executor):
    """Asks whether a text may be published, and once more if the answer is `later`."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        if answer == "later":
            await ctx.request_info(question, str)
        else:
            await ctx.yield_output(f"{question}: {answer}")


async def asked(answer: str = "yes") -> WorkflowRun:
    read = Read("read")
    workflow = WorkflowBuilder(start_executor=read, name="asking").add_edge(read, Ask("ask")).build()
    run = workflow.start("a text", checkpoint_storage=InMemoryCheckpointStorage())
    await run.result()
    await run.respond(run.pending_requests[0], answer)
    await run.result()
    return run


async def test_each_variant_changes_its_own_branches_and_nothing_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    client = coin(1)
    run = await judged(client)
    before = len(client.calls), len(run.checkpoints), run.outputs
    other = coin(0)
    result = await run.what_if(
        at=1,
        variants={
            "short": {"state": {"tone": "short"}},
            "other model": {"client": {"judge": other}},
            "new prompt": {"instructions": {"judge": "Be strict."}},
            "another": {"workflow": judging(ScriptedChatClient("perhaps", on_exhausted="repeat_last"))},
            "two changes": {"state": {"tone": "odd"}, "client": {"judge": other}},
        },
        repeat=2,
    )
    assert "14 runs: 'as it was' 4 times, 5 variants 2 times each" in capsys.readouterr().out
    assert [(row.variant, row.output) for row in result.rows if row.repeat == 2] == [
        ("as it was", "yes, long"),
        ("short", "yes, short"),
        ("other model", "no, long"),
        ("new prompt", "yes, long"),
        ("another", "perhaps, long"),
        ("two changes", "no, odd"),
    ]
    assert {row.path for row in result.rows} == {"judge > write"}
    assert len(other.calls) == 4
    prompts = [call.options.get("instructions") for call in client.calls]
    assert prompts.count("Be strict.") == 2
    assert prompts.count("Judge.") == len(prompts) - 2
    assert (len(client.calls) - 8, len(run.checkpoints), run.outputs) == before
    opened = result.batch.open("other model/1", rerun=True)
    assert (await opened.result()).get_outputs() == ["no, long"]


async def test_branches_of_superstep_0_begin_at_the_input() -> None:
    run = judging(coin(1)).start("a text")
    await run.result()
    result = await run.what_if(at=0, variants={"other": {"client": {"judge": coin(0)}}}, repeat=1)
    assert [(row.path, row.output) for row in result.rows] == [
        ("read > judge > write", "yes, long"),
        ("read > judge > write", "no, long"),
    ]
    with raises(WorkflowCheckpointException):
        await run.what_if(at=1, variants={})
    with pytest.raises(ValueError, match="no state"):
        await run.what_if(at=0, variants={"short": {"state": {"tone": "short"}}})


async def test_answers_replace_those_of_the_run_by_request_and_by_executor() -> None:
    run = await asked()
    request = next(event for event in run.events if event.type == "request_info")
    variants: dict[str, Any] = {
        "by id": {"answers": {request.request_id: "no"}},
        "by request": {"answers": {request: "no"}},
        "by executor": {"answers": {"ask": "never"}},
        "again": {"answers": {request: "later"}},
    }
    result = await run.what_if(at=2, variants=variants, repeat=1)
    assert [(row.variant, row.output, str(row.status)) for row in result.rows] == [
        ("as it was", "a text: yes", "finished"),
        ("by id", "a text: no", "finished"),
        ("by request", "a text: no", "finished"),
        ("by executor", "a text: never", "finished"),
        ("again", None, "waiting"),
    ]
    later = await run.what_if(at=1, variants={"approve": {"answers": {"ask": "yes"}}}, repeat=1)
    assert [(str(row.status), row.output) for row in later.rows] == [("waiting", None), ("finished", "a text: yes")]


class Total(TypedDict):
    """The state of a graph."""

    total: int


def double(state: Total) -> dict[str, int]:
    return {"total": state["total"] * 2}


def add(state: Total) -> dict[str, int]:
    return {"total": state["total"] + int(interrupt("How many?"))}


async def test_a_run_of_a_state_graph_takes_state_and_answers() -> None:
    graph = StateGraph(Total)
    graph.add_node("double", double)
    graph.add_node("add", add)
    graph.add_edge("double", "add")
    graph.set_entry_point("double")
    graph.set_finish_point("add")
    run = await graph.compile().astart({"total": 3}, {"thread_id": "t"})
    await run.result()
    (request,) = run.pending_requests
    await run.respond(request, 4)
    await run.result()
    assert run.state["total"] == 10
    variants: dict[str, Any] = {"more": {"state": {"total": 100}}, "fewer": {"answers": {request: 1}}}
    result = await run.what_if(at=run.superstep, variants=variants, repeat=1)
    assert [row.output["total"] for row in result.rows] == [10, 104, 7]
    early = await run.what_if(at=2, variants={"one": {"answers": {"add": 1}}}, repeat=1)
    assert [str(row.status) for row in early.rows] == ["waiting", "finished"]
    fresh = await run.what_if(at=0, variants={}, repeat=1)
    assert str(fresh.rows[0].status) == "waiting"


@pytest.mark.parametrize(
    ("variants", "entry", "nearest"),
    [
        ({"a": {"stat": {}}}, "stat", "state"),
        ({"a": {"client": {"judg": coin(1)}}}, "judg", "judge"),
        ({"a": {"instructions": {"write": "x"}}}, "write", ""),
        ({"a": {"messages": {"rea": ["x"]}}}, "rea", "read"),
        ({"a": {"answers": {"x": "y"}}}, "x", ""),
        ({"as it was": {}}, "", ""),
        ({"a": {"client": {"judge": "gpt"}}}, "client", ""),
    ],
)
async def test_names_that_do_not_exist_are_refused_with_the_nearest(variants: Any, entry: str, nearest: str) -> None:
    run = await judged(coin(1))
    with raises(VariantError, entry=entry, nearest=nearest):
        await run.what_if(at=1, variants=variants)


async def test_differences_name_the_supersteps_of_the_run() -> None:
    run = await asked()
    result = await run.what_if(at=1, variants={"no": {"answers": {"ask": "no"}}}, repeat=1)
    assert [row.divergence for row in result.rows] == ["", "superstep 2: here ask, there waiting"]


async def test_equal_answers_of_agents_are_no_difference() -> None:
    agent = Agent(ScriptedChatClient("yes", on_exhausted="repeat_last"), "Judge.", name="judge")
    run = WorkflowBuilder(start_executor=agent, name="judging").build().start("a text")
    await run.result()
    other = ScriptedChatClient("no", on_exhausted="repeat_last")
    variants: dict[str, Any] = {"same": {"instructions": {"judge": "Be kind."}}, "other": {"client": {"judge": other}}}
    result = await run.what_if(at=0, variants=variants, repeat=3)
    assert str(result.summary()).splitlines() == [
        "as it was: 0 of 6 differ from its most typical outcome",
        "same: 0 of 3 differ; no effect found, p = 1",
        "other: 3 of 3 differ; effect, p = 0.012; output: here no, there yes",
    ]


async def test_what_does_not_fit_is_refused_before_anything_runs() -> None:
    client = coin(1)
    run = await judged(client)
    calls = len(client.calls)
    other = WorkflowBuilder(start_executor=Read("read"), name="other").build()
    wrong: list[tuple[int, Any, type[Exception]]] = [
        (1, {"a": {"messages": {"read": [5]}}}, ValueError),
        (1, {"a": {"messages": {"read": "text"}}}, TypeError),
        (1, {"a": {"state": 3}}, TypeError),
        (1, [], TypeError),
        (1, {"a": {"workflow": other}}, VariantError),
        (1, {"a": {"workflow": "other"}}, TypeError),
        (3, {}, ValueError),
        (9, {}, ValueError),
        (-1, {}, ValueError),
    ]
    for at, variants, error in wrong:
        with pytest.raises(error):
            await run.what_if(at=at, variants=variants)
    assert len(client.calls) == calls


async def test_an_effect_is_reported_and_chance_is_not() -> None:
    run = await judged(coin(0.5, seed=3))
    variants: dict[str, Any] = {
        "better": {"client": {"judge": coin(1)}},
        "same": {"client": {"judge": coin(0.5, seed=9)}},
    }
    result = await run.what_if(at=1, variants=variants, repeat=20, progress=False)
    better, same = result.summary().effects
    assert better.is_found
    assert better.p is not None
    assert better.p < 0.05
    assert not same.is_found
    again = [effect.p for effect in type(result)(result._rows, 1, 20, result.batch).summary().effects]
    assert again == [better.p, same.p]
    assert result.summary().varied > 0


async def test_too_few_repeats_say_that_chance_cannot_be_separated() -> None:
    run = await judged(coin(1))
    for repeat in (1, 2):
        result = await run.what_if(at=1, variants={"no": {"client": {"judge": coin(0)}}}, repeat=repeat)
        assert "chance cannot be separated" in str(result.summary())
        assert not result.summary().effects[0].is_found
        assert result.summary().effects[0].changed == repeat


async def test_failures_are_outcomes_and_a_budget_leaves_variants_alike() -> None:
    run = await judged(coin(1))
    broken = ScriptedChatClient(ConnectionError("down"), on_exhausted="repeat_last")
    result = await run.what_if(at=1, variants={"broken": {"client": {"judge": broken}}}, repeat=5)
    assert [row.status for row in result.rows[10:]] == [RowStatus.FAILED] * 5
    assert result.summary().effects[0].is_found
    limited = await run.what_if(
        at=1, variants={"same": {}}, repeat=10, concurrency=1, budget=Budget(tokens=1), progress=False
    )
    assert "stopped early" in str(limited.summary())


async def test_a_workflow_of_one_row_is_refused_where_it_cannot_go(tmp_path: Any) -> None:
    start = Start(None, workflow=judging(coin(1)), input="a text")
    with raises(BatchInputError, key="a"):
        await run_many(judging(coin(1)), [start], str(tmp_path / "rows.db"), keys=["a"])
    with pytest.raises(BatchInputError, match="keys="):
        await run_many(judging(coin(1)), [start])


async def finds_effect(before: float, after: float, seed: int) -> bool:
    """Return whether a what-if reports that a model with another chance of yes has an effect."""
    run = await judged(coin(before, seed))
    other = {"client": {"judge": coin(after, seed + 100_000)}}
    result = await run.what_if(at=1, variants={"other": other}, repeat=20, progress=False)
    found: bool = result.summary().effects[0].is_found
    result.batch.close()
    return found


@pytest.mark.parametrize("count", [6, nightly(100)])
async def test_most_planted_effects_of_40_points_are_found_and_few_without_one(count: int) -> None:
    shares = [number / (count - 1) for number in range(count)]
    found = [await finds_effect(0.6 * share, 0.6 * share + 0.4, seed) for seed, share in enumerate(shares)]
    assert sum(found) >= 0.8 * count
    found = [await finds_effect(share, share, 1000 + seed) for seed, share in enumerate(shares)]
    assert sum(found) <= max(1, 0.08 * count)
