"""`AgentLoopMiddleware`: runs an agent again until its work is done."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from agentbench._clock import runtime_defaults
from agentbench._limits import require_limit
from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import ROUNDS, AgentContext, AgentMiddleware, CallNext
from agentbench.agents.middleware.sorting import with_stream_hooks
from agentbench.exceptions import MiddlewareTermination
from agentbench.messages.answers import without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.content.properties import merge_additional_properties
from agentbench.messages.fold import ROUNDS_OF_LOOPS
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate
from agentbench.messages.usage import Budget, UsageDetails, add_usage_details

if TYPE_CHECKING:
    from agentbench.agents.middleware.judge import JudgeVerdict

DEFAULT_MAX_ROUNDS: Final = 10

_Predicate: TypeAlias = Callable[[AgentContext], bool | Awaitable[bool]]
_MessageMaker: TypeAlias = Callable[[AgentContext], AgentRunInputs | Awaitable[AgentRunInputs]]


@dataclass(eq=False)
class AgentRound:
    """A round of a loop.

    Attributes:
        input: The input of the run in the first round, and the follow-up message in the others.
        response: The response of the agent.
        usage: The tokens of the agent and of the judge.
        judge_usage: The tokens of the judge, if there is one.
        verdict: The verdict of the judge, if there is one.

    Example:
        response = await agent.run("Write a haiku.", middleware=[AgentLoopMiddleware(max_iterations=2)])
        for round in response.rounds:
            print(round.input[-1].text, round.response.text)
    """

    input: list[Message]
    response: AgentResponse[Any]
    usage: UsageDetails | None = None
    judge_usage: UsageDetails | None = None
    verdict: JudgeVerdict | None = None


MORE_WORK: Final = "means_more_work"
"""Attribute of a predicate that is true while there is work: as `until=`, the loop ends when it is false."""


class AgentLoopMiddleware(AgentMiddleware):
    """Runs the agent again with a follow-up message, until a predicate, a judge or a limit ends the loop.

    Each round is a run of its own in the session of the run, or in a new one if the run has none. The response is that
    of the last round, with the tokens of all rounds; `response.rounds` lists them. A stream contains the updates of
    all rounds; `AgentResponse.from_updates` combines them to the last round. A round that needs a person's answer ends
    the loop; the run with the answer begins a new one.

    Predicates and message functions may be sync or async. They get the `AgentContext`, whose `result` is the response
    of the round and whose `metadata["rounds"]` lists the rounds up to now.

    Args:
        until: A predicate that returns whether the work is done. `todos_remaining` and `background_tasks_running` are
            accepted here too, and end the loop when nothing remains.
        continue_while: A predicate that returns whether there is more work, such as `todos_remaining` or
            `background_tasks_running`. With both predicates, either can end the loop.
        max_iterations: The maximum number of rounds; None for no limit, which needs a predicate or a budget.
        message: The follow-up message, or a function that returns it, such as `todos_remaining_message`. By default it
            asks the agent to continue, and contains the reason of a judge.
        budget: Limits of the whole loop in `tokens` and `seconds`. They are checked after each round.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The loop would never end, or the budget has limits of other kinds.

    Example:
        loop = AgentLoopMiddleware(lambda context: "DONE" in context.result.text, max_iterations=5)
        agent = Agent(ScriptedChatClient(["A draft.", "DONE"]), middleware=[loop])
        response = await agent.run("Write a poem. Write DONE when it is perfect.")
        print(response.text, len(response.rounds))
    """

    def __init__(
        self,
        until: _Predicate | None = None,
        *,
        continue_while: _Predicate | None = None,
        max_iterations: int | None = DEFAULT_MAX_ROUNDS,
        message: AgentRunInputs | _MessageMaker | None = None,
        budget: Budget | None = None,
    ) -> None:
        for name, predicate in (("until", until), ("continue_while", continue_while)):
            if not (predicate is None or _is_function(predicate)):
                problem = f"{name} is {describe(predicate)}. Expected a function of the AgentContext, or None."
                raise TypeError(problem)
        require_limit("max_iterations", max_iterations, least=1, none="no limit")
        if message is not None and not _is_function(message):
            message = normalize_messages(cast("AgentRunInputs", message))
        _check_budget(budget)
        if max_iterations is None and until is None and continue_while is None and budget is None:
            problem = "The loop would never end. Pass until=, continue_while=, max_iterations= or budget=."
            raise ValueError(problem)
        self._ab_until, self._ab_continue_while = until, continue_while
        self._ab_ends_with = not getattr(until, MORE_WORK, False)
        self._ab_max_rounds, self._ab_message, self._ab_budget = max_iterations, message, budget

    def __repr__(self) -> str:
        predicates = {"until": self._ab_until, "continue_while": self._ab_continue_while}
        shown = [f"{name}={getattr(each, '__name__', each)}" for name, each in predicates.items() if each is not None]
        budget = [] if self._ab_budget is None else [f"budget={self._ab_budget}"]
        return f"{type(self).__name__}({', '.join([*shown, f'max_iterations={self._ab_max_rounds}', *budget])})"

    @classmethod
    def with_judge(
        cls,
        client: Any,
        *,
        criteria: str | Sequence[str] | None = None,
        max_iterations: int | None = DEFAULT_MAX_ROUNDS,
        message: AgentRunInputs | _MessageMaker | None = None,
        budget: Budget | None = None,
    ) -> Self:
        """Create a loop that ends when a model, the judge, accepts the answer.

        The judge sees the input of the run and the answer of the round, and returns a `JudgeVerdict`. The follow-up
        message contains its reason. Its tokens count as tokens of the round. If the judge returns no verdict, the run
        fails with an `AgentInvalidResponseException`; the session still contains the rounds.

        Args:
            client: The chat client of the judge.
            criteria: What the answer has to fulfil; by default, all that was asked.
            max_iterations: The maximum number of rounds; None for no limit.
            message: The follow-up message, or a function that returns it.
            budget: Limits of the whole loop in `tokens` and `seconds`.

        Raises:
            TypeError: An argument has the wrong type.

        Example:
            judge = ScriptedChatClient([{"text": '{"is_met": true, "reason": "It rhymes."}'}])
            loop = AgentLoopMiddleware.with_judge(judge, criteria="The poem rhymes.", max_iterations=3)
            response = await Agent(EchoChatClient(), middleware=[loop]).run("Write a poem.")
            print(response.rounds[-1].verdict.reason)
        """
        from agentbench.agents.middleware.judge import Judge  # noqa: PLC0415 - loads pydantic

        return cls(Judge(client, criteria), max_iterations=max_iterations, message=message, budget=budget)

    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Run the first round, and the others after it; when streaming, they run while the stream is read."""
        loop = _Loop(self, context, call_next)
        if context.stream:
            await loop.open_round()
            if context.result is not None:
                context.result = ResponseStream(loop.updates(context.result), finalizer=loop.response)
            return
        try:
            await loop.run_round()
            while await loop.follow_up(context.result):
                await loop.run_round()
        finally:
            loop.restore_context()
        context.result = loop.response()

    async def _ab_has_ended(self, context: AgentContext, rounds: Sequence[AgentRound], seconds: float) -> bool:
        """Return whether no further round begins after one that is complete."""
        if self._ab_until is not None and bool(await _value_of(self._ab_until(context))) is self._ab_ends_with:
            return True
        if self._ab_continue_while is not None and not await _value_of(self._ab_continue_while(context)):
            return True
        if self._ab_max_rounds is not None and len(rounds) >= self._ab_max_rounds:
            return True
        used = usage_of_rounds(rounds)
        parts = (used.get("input_token_count") or 0) + (used.get("output_token_count") or 0)
        tokens = max(parts, used.get("total_token_count") or 0)  # some services count only the total
        limits = self._ab_budget.usage(tokens=tokens, seconds=seconds) if self._ab_budget else {}
        return any(amount >= limit for amount, limit in limits.values())

    async def _ab_follow_up_messages(self, context: AgentContext) -> list[Message]:
        message = _default_message if self._ab_message is None else self._ab_message
        inputs: Any = await _value_of(message(context)) if callable(message) else message
        return without_answers(normalize_messages(inputs), "the follow-up message of a loop")


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, str)  # the text of a message can be called


def _check_budget(budget: Any) -> None:
    if budget is None:
        return
    if not isinstance(budget, Budget):
        problem = f"budget is {describe(budget)}. Expected Budget(...), such as Budget(tokens=50_000)."
        raise TypeError(problem)
    if others := budget.usage().keys() - {"tokens", "seconds"}:
        problem = f"The budget of a loop limits {', '.join(sorted(others))}. Expected only tokens and seconds."
        raise ValueError(problem)


def _default_message(context: AgentContext) -> str:
    verdict = context.metadata[ROUNDS][-1].verdict
    if verdict is None:
        return "Continue until the task is done."
    return f"The answer is not accepted yet: {verdict.reason}\nGive an answer that fulfils everything."


async def _value_of(value: Any) -> Any:
    return await value if isawaitable(value) else value


def usage_of_rounds(rounds: Sequence[AgentRound]) -> UsageDetails:
    """Return the tokens of all rounds."""
    return reduce(add_usage_details, [one.usage for one in rounds if one.usage is not None], UsageDetails())


def _in_round(update: AgentResponseUpdate, loop: str, number: int) -> AgentResponseUpdate:
    """Return a copy of an update that has the number of its round, so that a response has only the last round."""
    rounds = {ROUNDS_OF_LOOPS: {loop: number}}
    update = copy.copy(update)
    update.additional_properties = merge_additional_properties(update.additional_properties, rounds)
    return update


class _Loop:
    """The rounds of one run."""

    def __init__(self, middleware: AgentLoopMiddleware, context: AgentContext, call_next: CallNext) -> None:
        self._middleware, self._context, self._call_next = middleware, context, call_next
        self._before = context.messages, context.session
        self._begin_ns = runtime_defaults().clock.perf_ns()
        self._rounds: list[AgentRound] = []
        self._is_terminated = False
        if context.session is None:
            context.session = context.agent.create_session()

    async def run_round(self) -> None:
        """Run the agent; its response is the result of the context."""
        self._context.result = None
        try:
            await self._call_next()
        except MiddlewareTermination as termination:
            self._is_terminated = True
            if self._context.result is None:
                self._context.result = termination.result

    async def open_round(self) -> None:
        """Start the agent; its stream, with the hooks of inner middleware, is the result of the context."""
        context = self._context
        hooks = context.stream_transform_hooks, context.stream_result_hooks, context.stream_cleanup_hooks
        context.stream_transform_hooks, context.stream_result_hooks, context.stream_cleanup_hooks = [], [], []
        try:
            await self.run_round()
            if context.result is not None:
                context.result = with_stream_hooks(context.result, context)
        finally:
            context.stream_transform_hooks, context.stream_result_hooks, context.stream_cleanup_hooks = hooks

    async def follow_up(self, response: AgentResponse[Any] | None) -> bool:
        """Record the response of a round. Return whether there is another round, whose input is now in the context."""
        context = self._context
        if response is None:
            return False
        self._rounds.append(AgentRound(context.messages, response, usage=response.usage_details))
        context.result, context.metadata[ROUNDS] = response, self._rounds
        is_incomplete = response.user_input_requests or response.continuation_token is not None
        if self._is_terminated or is_incomplete:
            return False
        seconds = (runtime_defaults().clock.perf_ns() - self._begin_ns) / 1e9
        if await self._middleware._ab_has_ended(context, self._rounds, seconds):  # noqa: SLF001 - its own class
            return False
        context.messages = await self._middleware._ab_follow_up_messages(context)  # noqa: SLF001 - its own class
        context.options.pop("continuation_token", None)  # it belonged to the answer that is now complete
        return True

    async def updates(self, stream: ResponseStream[Any, Any] | None) -> AsyncIterator[AgentResponseUpdate]:
        """Yield the updates of the first round's stream, and of those of the other rounds; each has its round."""
        loop, update = runtime_defaults().ids.new_id("loop"), AgentResponseUpdate()
        try:
            while stream is not None:
                number = len(self._rounds) + 1
                async for update in stream:
                    update = _in_round(update, loop, number)
                    yield update
                has_next = await self.follow_up(await stream.get_final_response())
                if len(self._rounds) == number and (usage := self._rounds[-1].judge_usage) is not None:
                    update = _in_round(update, loop, number)
                    update.contents = [Content.from_usage(usage)]
                    yield update
                if not has_next:
                    return
                await self.open_round()
                stream = self._context.result
        finally:
            if stream is not None:
                await stream.aclose()
            self.restore_context()

    def restore_context(self) -> None:
        """Give the context its first input and session, because an outer middleware may call the agent again."""
        self._context.messages, self._context.session = self._before

    def response(self, _: object = None) -> AgentResponse[Any] | None:
        """Return the response of the last round, with the tokens of all; None if a middleware ended the first."""
        if not self._rounds:
            return None
        response = copy.copy(self._rounds[-1].response)
        response.usage_details = usage_of_rounds(self._rounds) or None
        response.rounds = tuple(self._rounds)
        return response
