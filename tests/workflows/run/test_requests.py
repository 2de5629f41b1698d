from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import MissingResponseHandlerError, WorkflowWarning
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import MessageType
from tests.parts.errors import raises

IN_PROGRESS, PENDING = WorkflowRunState.IN_PROGRESS, WorkflowRunState.IN_PROGRESS_PENDING_REQUESTS
IDLE, IDLE_PENDING = WorkflowRunState.IDLE, WorkflowRunState.IDLE_WITH_PENDING_REQUESTS


@dataclass
class Question:
    text: str


@dataclass
class Ans:
    ok: bool


class Vote(pydantic.BaseModel):
    party: str


class Review(Executor):
    """Asks one question per word; an answer is yielded with where it came from."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
        for n, word in enumerate(text.split()):
            await ctx.request_info(Question(word), str, request_id=f"R{n}")

    @response_handler
    async def on_answer(self, asked: Question, answer: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.yield_output((asked.text, answer, ctx.request_id, ctx.source_executor_ids))
        await ctx.send_message(answer)


@executor
async def show(text: str, ctx: WorkflowContext[Any, str]) -> None:
    await ctx.yield_output(f"shown {text}")


def review(**settings):
    node = Review("review")
    return WorkflowBuilder(name="review", start_executor=node, **settings).add_edge(node, show).build()


def expecting(response_type):
    """A workflow that asks for a value of one type and yields what it gets."""

    class Asks(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
            await ctx.request_info(text, response_type, request_id="R")

        @response_handler(request=str, response=response_type, workflow_output=object)
        async def on_answer(self, asked, answer, ctx):
            await ctx.yield_output(answer)

    return WorkflowBuilder(start_executor=Asks("asks")).build()


def states(result):
    return [e.state for e in result.status_timeline()]


def open_ids(workflow):
    return list(workflow.run_state.requests)


# ---- asking --------------------------------------------------------------------------------------


async def test_two_questions_are_two_requests_and_one_change_of_state():
    result = await review().run("a b", include_status_events=True)
    assert [(e.request_id, e.source_executor_id, e.request_type, e.response_type, e.data) for e in
            result.get_request_info_events()] == [
        ("R0", "review", Question, str, Question("a")),
        ("R1", "review", Question, str, Question("b")),
    ]  # fmt: skip
    assert states(result) == [IN_PROGRESS, PENDING, IDLE_PENDING]
    kinds = [e.type for e in result]
    assert kinds[kinds.index("request_info") : kinds.index("request_info") + 3] == [
        "request_info",
        "status",
        "request_info",
    ]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_an_id_that_is_open_cannot_be_used_again():
    workflow = review()
    await workflow.run("a")
    with raises(ValueError, "'R0'", "'review'"):
        await workflow.run("b")
    assert workflow.run_state.requests["R0"].data == Question("a")


async def test_a_request_whose_response_no_handler_takes_is_refused_before_anybody_answers():
    class Deaf(Review):
        asks: Any = ("why?", str)

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
            await ctx.request_info(*self.asks, request_id="R")

    for request, response_type in (("why?", str), (Question("why?"), int), (Question("why?"), str | int)):
        node = Deaf("deaf")
        node.asks = (request, response_type)
        workflow = WorkflowBuilder(start_executor=node).build()
        with raises(MissingResponseHandlerError, "@response_handler") as caught:
            await workflow.run("x")
        found = caught.value
        assert (found.executor_id, found.request_type, found.response_type) == ("deaf", type(request), response_type)
        assert isinstance(found, TypeError)
        assert open_ids(workflow) == []


@pytest.mark.parametrize("stepped", [False, True])
async def test_without_any_response_handler_the_run_warns_and_no_response_gets_lost(stepped: bool):
    @executor(id="asks")
    async def asks(text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(text, bool, request_id="R")

    workflow = WorkflowBuilder(start_executor=asks).build()
    run = workflow.start("sure?") if stepped else None
    with pytest.warns(WorkflowWarning, match="'asks'.*@response_handler"):
        result = await workflow.run("sure?") if run is None else await run.result()
    assert len(result.warnings) == 1
    with pytest.raises(MissingResponseHandlerError) as caught:
        await (workflow.run(responses={"R": True}) if run is None else run.respond("R", True))
    assert (caught.value.executor_id, caught.value.response_type) == ("asks", bool)
    still_open = open_ids(workflow) if run is None else [one.request_id for one in run.pending_requests]
    assert still_open == ["R"]


@pytest.mark.parametrize("response_type", [object, Any, str | Ans, list[str]])
async def test_a_request_is_accepted_where_handlers_take_every_member_of_its_response_type(response_type):
    class Hears(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info({"text": text}, response_type)

        @response_handler
        async def on_words(self, asked: dict[str, str], answer: str, ctx: WorkflowContext) -> None:
            """Takes a text."""

        @response_handler
        async def on_others(self, asked: dict[str, str], answer: Ans | list[str], ctx: WorkflowContext) -> None:
            """Takes the others."""

    assert (await WorkflowBuilder(start_executor=Hears("hears")).build().run("x")).final_state is IDLE_PENDING


# ---- answering -----------------------------------------------------------------------------------


async def test_an_answer_reaches_the_response_handler_and_what_it_sends_goes_on():
    workflow = review()
    await workflow.run("a")
    result = await workflow.run(responses={"R0": "yes"})
    assert result.outputs == [("a", "yes", "R0", ["internal:review"]), "shown yes"]
    assert states(result) == [IN_PROGRESS, IDLE]


async def test_what_is_left_unanswered_stays_open():
    workflow = review()
    await workflow.run("a b")
    result = await workflow.run(responses={"R0": "yes"})
    assert result.final_state is IDLE_PENDING
    assert result.get_request_info_events() == []
    assert open_ids(workflow) == ["R1"]
    result = await workflow.run(responses={"R1": "no"})
    assert result.outputs[0] == ("b", "no", "R1", ["internal:review"])
    assert result.final_state is IDLE


async def test_requests_and_their_ids_are_alike():
    workflow = review()
    (request,) = (await workflow.run("a")).get_request_info_events()
    assert (await workflow.run(responses={request: "yes"})).outputs[-1] == "shown yes"
    run = workflow.start("a b c")
    await run.result()
    first, second, third = run.pending_requests
    await run.respond(first, "1")
    await run.respond(second.request_id, "2")
    await run.send_response(third.request_id, "3")
    assert (await run.result()).outputs[3:] == ["shown 1", "shown 2", "shown 3"]


@dataclass
class Report:
    ans: Ans
    votes: int = 0


@pytest.mark.parametrize(
    ("response_type", "wrong", "why"),
    [
        (Ans, {}, "expected Ans: field 'ok' is missing."),
        (Ans, {"okay": True, "ok": True}, "expected Ans: unknown field 'okay'; fields: 'ok'."),
        (Ans, {"ok": "no"}, "expected Ans: field 'ok' is 'no'; expected bool."),
        (Ans | None, {"ok": "no"}, "field 'ok' is 'no'; expected bool."),
        (Report, {"ans": {"ok": 1}, "votes": "x"}, "field 'ans': field 'ok' is 1; expected bool; field 'votes' is 'x'"),
        (Vote, {"party": 5}, "expected Vote: field 'party': Input should be a valid string."),
        (Ans | Vote, {}, "expected Ans | Vote. The request stays open."),
        (Ans, "yes", "expected Ans. The request stays open."),
    ],
)
async def test_the_field_that_is_wrong_is_named(response_type, wrong, why):
    run = expecting(response_type).start("x")
    await run.result()
    with raises(ValueError, why):
        await run.respond(run.pending_requests[0], wrong)
    assert len(run.pending_requests) == 1


@pytest.mark.parametrize(
    ("responses", "reason"),
    [
        ({"R0": "fine", "nobody": "x"}, "'nobody'.*: R0, R1"),
        ({"R0": "fine", "R1": 5}, r"request 'R1' of 'review' is 5 \(int\); expected str. The request stays open"),
    ],
    ids=["unknown id", "wrong type"],
)
async def test_if_one_answer_is_wrong_none_is_taken(responses, reason):
    workflow = review()
    await workflow.run("a b")
    with pytest.raises(ValueError, match=reason):
        await workflow.run(responses=responses)
    assert open_ids(workflow) == ["R0", "R1"]
    result = await workflow.run(responses={"R0": "fine"})
    assert result.outputs[-1] == "shown fine"


async def test_no_answers_run_an_empty_superstep():
    workflow = review()
    await workflow.run("a")
    result = await workflow.run(responses={})
    assert [e.type for e in result] == ["superstep_started", "superstep_completed"]
    assert result.final_state is IDLE_PENDING
    assert open_ids(workflow) == ["R0"]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_open_requests_survive_a_new_message():
    class AsksOnce(Review):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
            if text == "ask":
                await ctx.request_info(Question("a"), str, request_id="R")
            await ctx.yield_output(text)

    workflow = WorkflowBuilder(start_executor=AsksOnce("a")).build()
    await workflow.run("ask")
    result = await workflow.run("other")
    assert result.outputs == ["other"]
    assert result.get_request_info_events() == []
    assert states(result) == [IN_PROGRESS, IDLE_PENDING]
    assert (await workflow.run(responses={"R": "late"})).outputs == [("a", "late", "R", ["internal:a"])]


async def test_answers_do_not_count_against_the_limit_of_supersteps_but_the_numbers_go_on():
    class Chat(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info(text, str, request_id="R")

        @response_handler
        async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info(answer, str, request_id="R")

    workflow = WorkflowBuilder(max_iterations=1, start_executor=Chat("chat")).build()
    await workflow.run("hello")
    numbers = []
    for turn in range(5):
        result = await workflow.run(responses={"R": str(turn)})
        numbers += [e.iteration for e in result if e.type == "superstep_started"]
    assert numbers == [2, 3, 4, 5, 6]


# ---- answers are turned into the type that was asked for -------------------------------------------


@pytest.mark.parametrize(
    ("response_type", "given", "got"),
    [
        (Ans, {"ok": True}, Ans(True)),
        (Ans, Ans(False), Ans(False)),
        (float, 5, 5.0),
        (Vote, {"party": "blue"}, Vote(party="blue")),
        (Ans | None, None, None),
        (list[str], ["a"], ["a"]),
        (Any, object, object),
    ],
    ids=["dataclass", "already right", "float", "model", "optional", "list", "any"],
)
async def test_a_response_is_converted_to_the_requested_type(response_type, given, got):
    workflow = expecting(response_type)
    await workflow.run("x")
    (output,) = (await workflow.run(responses={"R": given})).outputs
    assert output == got
    assert type(output) is type(got)


@pytest.mark.parametrize(
    ("response_type", "given"),
    [(Ans, {"bad": 1}), (Ans, "yes"), (Vote, {}), (int, 5.0), (list[str], [1]), (str, None)],
    ids=["unknown field", "no dict", "invalid model", "float for int", "wrong items", "nothing"],
)
async def test_an_answer_that_cannot_be_turned_is_refused(response_type, given):
    workflow = expecting(response_type)
    await workflow.run("x")
    with raises(ValueError, "request"):
        await workflow.run(responses={"R": given})
    assert open_ids(workflow) == ["R"]


# ---- failure, checkpoints ------------------------------------------------------------------------


async def test_a_failed_superstep_leaves_no_request():
    class AsksAndFails(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info(text, str, request_id="R")
            raise KeyError("k")

        @response_handler
        async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
            """Takes any answer."""

    workflow = WorkflowBuilder(start_executor=AsksAndFails("a")).build()
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert open_ids(workflow) == []


async def test_a_question_whose_answer_could_not_be_handled_is_open_again():
    class FailsOnce(Review):
        failed = False

        @response_handler
        async def on_answer(self, asked: Question, answer: str, ctx: WorkflowContext[str, Any]) -> None:
            if not self.failed:
                self.failed = True
                raise KeyError("k")
            await ctx.yield_output(answer)

    workflow = WorkflowBuilder(start_executor=FailsOnce("f")).build()
    await workflow.run("a")
    with pytest.raises(KeyError):
        await workflow.run(responses={"R0": "yes"})
    assert open_ids(workflow) == ["R0"]
    assert (await workflow.run(responses={"R0": "yes"})).outputs == ["yes"]


async def test_answers_are_saved_before_they_are_handled():
    storage = InMemoryCheckpointStorage()
    workflow = review(checkpoint_storage=storage)
    await workflow.run("a")
    before = len(await storage.list_checkpoints(workflow_name="review"))
    await workflow.run(responses={"R0": "yes"})
    saved = (await storage.list_checkpoints(workflow_name="review"))[before:]
    assert [(c.metadata["source"], c.iteration_count) for c in saved] == [("answer", 1), ("step", 2), ("step", 3)]
    (message,) = saved[0].messages["internal:review"]
    assert (message.data, message.type, message.target_id) == ("yes", MessageType.RESPONSE, "review")
    assert message.original_request_info_event.data == Question("a")
    assert [list(c.pending_request_info_events) for c in saved] == [[], [], []]
