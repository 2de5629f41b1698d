import threading
from typing import Any, Never

import pytest

from agentbench.workflows.by_hand.runner_context import InProcRunnerContext
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from agentbench.workflows.executors.options import ExecutorPolicy
from agentbench.workflows.executors.state import State
from tests.parts.errors import raises


class Upper(Executor):
    @handler
    async def shout(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(text.upper())
        await ctx.yield_output(f"{text}!")


class Asking(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[int]) -> None:
        await ctx.request_info(text, bool, request_id="R")

    @response_handler
    async def on_answer(self, question: str, answer: bool, ctx: WorkflowContext[bytes | int, float]) -> None:
        await ctx.send_message(b"1" if answer else b"0")
        await ctx.yield_output(1.0)


class Bare(Executor):
    pass


async def executed(executor, message, sources=("a",)):
    """What an executor did with one message: its events and the messages it sent."""
    bus = InProcRunnerContext()
    error = None
    try:
        await executor.execute(message, sources, State(), bus)
    except (KeyError, RuntimeError) as raised:
        error = raised
    return bus.log.events(), [m for sent in bus.messages.values() for m in sent], error


def brief(events):
    return [(e.type, e.source_id, e.data) for e in events]


# ---- construction --------------------------------------------------------------------------------


def test_an_executor_needs_an_id_and_has_a_type():
    for nothing in ("", None):
        with raises(ValueError, "non-empty"):
            Upper(nothing)  # type: ignore[arg-type]
    assert (Upper("u").type, Upper("u").type_) == ("Upper", "Upper")
    assert (Upper("u", type_="U").type, Upper("u", type_="U").type_) == ("U", "U")
    assert (Upper("u", type="T", type_="U").type, Upper("u", type="T", type_="U").type_) == ("T", "T")
    assert repr(Upper("u")) == "Upper('u')"


def test_unknown_keywords_are_ignored_with_a_warning(caplog):
    assert Upper("u", time_limit=3).id == "u"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "time_limit" in record.getMessage()


def test_a_class_without_handlers_is_refused_even_with_response_handlers():
    class OnlyAnswers(Executor):
        @response_handler
        async def on_answer(self, question: str, answer: str, ctx: WorkflowContext) -> None: ...

    for cls in (Bare, OnlyAnswers):
        with raises(ValueError, cls.__name__):
            cls("b")


def test_a_deferred_executor_takes_and_gives_nothing():
    bare = Bare("b", defer_discovery=True)
    assert (bare.input_types, bare.output_types, bare.workflow_output_types) == ([], [], [])
    assert not bare.can_handle(WorkflowMessage("x", "a"))
    assert not bare.is_request_response_capable
    assert not bare.is_request_supported(str, str)


def test_two_handlers_for_one_type_are_refused_when_an_instance_is_made():
    class Twice(Upper):
        @handler
        async def whisper(self, text: str, ctx: WorkflowContext) -> None: ...

    with raises(ValueError, "'whisper'", "'shout'"):
        Twice("t")


def test_a_subclass_may_change_the_type_of_a_handler():
    class Longer(Upper):
        @handler
        async def shout(self, numbers: list[int], ctx: WorkflowContext) -> None:  # type: ignore[override]
            ...

    assert Longer("l").input_types == [list[int]]
    assert Upper("u").input_types == [str]


def test_a_handler_that_is_overridden_without_the_decorator_is_gone():
    class Muted(Upper):
        async def shout(self, text: str, ctx: WorkflowContext[str, str]) -> None: ...

        @handler
        async def count(self, number: int, ctx: WorkflowContext) -> None: ...

    class Mute(Upper):
        async def shout(self, text: str, ctx: WorkflowContext[str, str]) -> None: ...

    assert Muted("m").input_types == [int]
    with raises(ValueError, "handler"):
        Mute("m")


# ---- types ---------------------------------------------------------------------------------------


def test_output_types_are_flat_distinct_and_in_order_of_definition():
    class Several(Executor):
        @handler
        async def zz(self, a: str, ctx: WorkflowContext[str | int, bytes]) -> None: ...

        @handler
        async def aa(self, b: bytes, ctx: WorkflowContext[int | float, bytes | None]) -> None: ...

        @handler
        async def mm(self, c: float, ctx: WorkflowContext[Never, bool]) -> None: ...

    assert Several("s").output_types == [str, int, float]
    assert Several("s").workflow_output_types == [bytes, type(None), bool]


# ---- what it can handle --------------------------------------------------------------------------


def answer(value, request="question"):
    event = WorkflowEvent.request_info("R", "a", request, bool)
    return WorkflowMessage(value, "internal:a", "a", MessageType.RESPONSE, None, None, event)


def test_an_ordinary_message_is_judged_by_its_data_and_a_type_alone():
    assert Upper("u").can_handle(WorkflowMessage("x", "a"))
    assert not Upper("u").can_handle(WorkflowMessage(1, "a"))
    assert Upper("u").accepts_type(str)
    assert not Upper("u").accepts_type(int)


@pytest.mark.parametrize(
    ("message", "fits"),
    [(answer(True), True), (answer("yes"), False), (answer(True, request=5), False)],
    ids=["both fit", "wrong answer", "wrong request"],
)
def test_an_answer_is_judged_by_its_request_and_its_value(message, fits):
    assert Asking("a").can_handle(message) is fits
    assert not Upper("u").can_handle(message)


def test_an_answer_without_its_request_is_not_handled(caplog):
    assert not Asking("a").can_handle(WorkflowMessage(True, "internal:a", "a", MessageType.RESPONSE))
    assert "without its request" in caplog.text


def test_requests_are_supported_by_their_types():
    asking = Asking("a")
    assert asking.is_request_response_capable
    assert not Upper("u").is_request_response_capable
    assert asking.is_request_supported(str, bool)
    assert not asking.is_request_supported(str, str)
    assert not asking.is_request_supported(int, bool)


# ---- execute -------------------------------------------------------------------------------------


async def test_a_handled_message_is_framed_by_two_events_and_its_results_are_listed():
    events, sent, error = await executed(Upper("u"), "ab")
    assert error is None
    assert brief(events) == [
        ("executor_invoked", "u", "ab"),
        ("output", "u", "ab!"),
        ("executor_completed", "u", ["AB", "ab!"]),
    ]
    assert sent == [WorkflowMessage("AB", "u")]


async def test_a_handler_that_did_nothing_completes_without_data():
    class Silent(Executor):
        @handler
        async def run(self, text: str, ctx: WorkflowContext) -> None:
            pass

    events, sent, _ = await executed(Silent("s"), "x")
    assert brief(events) == [("executor_invoked", "s", "x"), ("executor_completed", "s", None)]
    assert sent == []


async def test_the_invoked_event_has_the_input_as_it_was():
    class Grows(Executor):
        @handler
        async def run(self, items: list[int], ctx: WorkflowContext) -> None:
            items.append(99)

    items = [1]
    events, _, _ = await executed(Grows("g"), items)
    assert items == [1, 99]
    assert events[0].data == [1]


async def test_a_yielded_value_that_changes_later_is_listed_as_it_was_at_the_end_of_the_handler():
    lists = []

    class Keeps(Executor):
        @handler
        async def run(self, text: str, ctx: WorkflowContext[Never, list[int]]) -> None:
            lists.append([1])
            await ctx.yield_output(lists[0])

    events, _, _ = await executed(Keeps("k"), "x")
    lists[0].append(2)
    assert events[-1].data == [[1]]


async def test_values_that_cannot_be_copied_do_not_fail_a_run():
    class PassesLocks(Executor):
        @handler
        async def run(self, locks: list[Any], ctx: WorkflowContext[Any, Any]) -> None:
            await ctx.yield_output(locks)

    locks = [threading.Lock()]
    events, _, error = await executed(PassesLocks("p"), locks)
    assert error is None
    assert events[0].data is locks
    assert events[-1].data == [locks]


async def test_a_message_that_no_handler_takes_is_an_error_without_an_invocation():
    events, _, error = await executed(Upper("u"), 5)
    assert events == []
    assert isinstance(error, RuntimeError)
    assert str(error).startswith("Executor 'u' cannot handle data of type int; it takes str.")


# ---- data of a run ----------------------------------------------------------------------------


# ---- policies ------------------------------------------------------------------------------------


def test_keywords_replace_single_limits_of_the_class_policy():
    class Patient(Upper):
        policy = ExecutorPolicy(timeout=5, retries=1)

    assert Patient("p").policy == ExecutorPolicy(timeout=5, retries=1)
    assert Patient("p", retries=3).policy == ExecutorPolicy(timeout=5, retries=3)
    assert Patient("p", timeout=1, max_concurrency=2).policy == ExecutorPolicy(1, 1, 2)
    assert Patient.policy == ExecutorPolicy(timeout=5, retries=1)
    assert Upper("u").policy is Executor.policy


def test_an_executor_has_the_forms_that_edges_have():
    original = Upper("u", type="T")
    for copied in (
        Upper.from_dict(original.to_dict()),
        Upper.from_json(original.to_json()),
        original.clone(),
        original.clone(deep=False),
    ):
        assert (type(copied), copied.to_dict()) == (Upper, {"id": "u", "type": "T"})
        assert copied is not original
    with raises(ValueError, "object"):
        Upper.from_json("[]")
