"""Managers of Magentic teams: they plan, judge the progress, and give the final answer."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

from agentbench._limits import require_limit
from agentbench.messages.answers import without_answers
from agentbench.messages.message import Message
from agentbench.orchestrations.patterns.magentic_messages import (
    MAGENTIC_MANAGER_NAME,
    MagenticContext,
    MagenticProgressLedger,
)
from agentbench.orchestrations.patterns.pattern_builder import json_objects

logger = logging.getLogger("agentbench")

FACTS_PROMPT: Final = (
    "Here is a task:\n{task}\n\nBefore anybody begins, write down in four short lists: what the task itself says; what "
    "has to be looked up, and where; what has to be worked out; and what you would guess. Nothing else yet."
)
PLAN_PROMPT: Final = (
    "These can help:\n{team}\n\nMake a short plan as a list of steps, each with the one who does it. Name nobody who "
    "is not needed."
)
FULL_PROMPT: Final = (
    "We work on this task together:\n{task}\n\nThe team:\n{team}\n\nWhat we know:\n{facts}\n\nThe plan:\n{plan}"
)
FACTS_UPDATE_PROMPT: Final = (
    "The work on this task leads nowhere:\n{task}\n\nThis is what we took for facts:\n{old_facts}\n\nWrite the lists "
    "anew: add what we have learned, turn guesses into facts where they proved right, and add at least one new guess."
)
PLAN_UPDATE_PROMPT: Final = (
    "Say in a sentence why the last plan failed. Then make a new one that avoids it, as a list of steps, each with the "
    "one who does it. These can help:\n{team}"
)
PROGRESS_PROMPT: Final = (
    "The task is:\n{task}\n\nThe team:\n{team}\n\nAnswer five questions about the work so far, as JSON alone, in this "
    'form:\n{{"is_request_satisfied": {{"reason": "...", "answer": true or false}}, "is_in_loop": {{"reason": "...", '
    '"answer": true or false}}, "is_progress_being_made": {{"reason": "...", "answer": true or false}}, '
    '"next_speaker": {{"reason": "...", "answer": "one of: {names}"}}, "instruction_or_question": {{"reason": "...", '
    '"answer": "what you tell that one, with all that it has to know"}}}}'
)
FINAL_PROMPT: Final = (
    "The work on this task is done:\n{task}\n\nAnswer the one who gave it, from what was found above. Speak to that "
    "one directly."
)

_PAUSE_S = 0.05


@dataclass
class MagenticTaskLedger:
    """The facts that a manager assumes, and its plan."""

    facts: Message
    plan: Message


def require_limits(
    max_stall_count: int = 3, max_reset_count: int | None = None, max_round_count: int | None = None
) -> None:
    """Check the limits of a manager."""
    require_limit("max_stall_count", max_stall_count)
    require_limit("max_reset_count", max_reset_count, none="any number")
    require_limit("max_round_count", max_round_count, least=1, none="any number")


class MagenticManagerBase(ABC):
    """The base of managers.

    Args:
        max_stall_count: Number of turns without progress before replanning.
        max_reset_count: Maximum number of new plans; `None` for no limit.
        max_round_count: Maximum number of turns; `None` for no limit.

    Example:
        class Fixed(MagenticManagerBase):
            async def plan(self, context):
                return Message("assistant", ["Research, then write."])
            ...  # and replan, create_progress_ledger, prepare_final_answer
    """

    def __init__(
        self, *, max_stall_count: int = 3, max_reset_count: int | None = None, max_round_count: int | None = None
    ) -> None:
        require_limits(max_stall_count, max_reset_count, max_round_count)
        self.max_stall_count, self.max_reset_count = max_stall_count, max_reset_count
        self.max_round_count = max_round_count

    @abstractmethod
    async def plan(self, magentic_context: MagenticContext) -> Message:
        """Return the first plan."""

    @abstractmethod
    async def replan(self, magentic_context: MagenticContext) -> Message:
        """Return a new plan after one that failed, or that a person wants to change."""

    @abstractmethod
    async def create_progress_ledger(self, magentic_context: MagenticContext) -> MagenticProgressLedger:
        """Return a judgement of the progress, and the next speaker."""

    @abstractmethod
    async def prepare_final_answer(self, magentic_context: MagenticContext) -> Message:
        """Return the answer to the task."""

    def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the state of the manager."""
        return {}

    def on_checkpoint_restore(self, state: dict[str, Any]) -> None:  # noqa: B027 - a manager may have nothing to remember
        """Restore the result of `on_checkpoint_save`."""


class StandardMagenticManager(MagenticManagerBase):
    """A manager that asks an agent. The agent has no session: each question includes the conversation once.

    Args:
        agent: The agent.
        task_ledger: The initial facts and plan.
        task_ledger_facts_prompt: Asks for facts; has `{task}`.
        task_ledger_plan_prompt: Asks for a plan; has `{team}`.
        task_ledger_full_prompt: The message to all participants; has `{task}`, `{team}`, `{facts}` and `{plan}`.
        task_ledger_facts_update_prompt: Asks for updated facts; has `{task}` and `{old_facts}`.
        task_ledger_plan_update_prompt: Asks for a new plan; has `{team}`.
        progress_ledger_prompt: Asks for the progress ledger; has `{task}`, `{team}` and `{names}`.
        final_answer_prompt: Asks for the answer; has `{task}`.
        max_stall_count, max_reset_count, max_round_count: As for `MagenticManagerBase`.
        progress_ledger_retry_count: How often the manager asks again for a progress ledger that cannot be read; by
            default three times.

    Example:
        >>> manager = StandardMagenticManager(agent, max_round_count=20)
        >>> workflow = MagenticBuilder(participants=[searcher, writer], manager=manager).build()
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        agent: Any,
        task_ledger: Any = None,
        *,
        task_ledger_facts_prompt: str | None = None,
        task_ledger_plan_prompt: str | None = None,
        task_ledger_full_prompt: str | None = None,
        task_ledger_facts_update_prompt: str | None = None,
        task_ledger_plan_update_prompt: str | None = None,
        progress_ledger_prompt: str | None = None,
        final_answer_prompt: str | None = None,
        max_stall_count: int = 3,
        max_reset_count: int | None = None,
        max_round_count: int | None = None,
        progress_ledger_retry_count: int | None = None,
    ) -> None:
        super().__init__(
            max_stall_count=max_stall_count, max_reset_count=max_reset_count, max_round_count=max_round_count
        )
        self.agent, self.task_ledger = agent, task_ledger
        self.facts_prompt = task_ledger_facts_prompt or FACTS_PROMPT
        self.plan_prompt = task_ledger_plan_prompt or PLAN_PROMPT
        self.full_prompt = task_ledger_full_prompt or FULL_PROMPT
        self.facts_update_prompt = task_ledger_facts_update_prompt or FACTS_UPDATE_PROMPT
        self.plan_update_prompt = task_ledger_plan_update_prompt or PLAN_UPDATE_PROMPT
        self.progress_prompt = progress_ledger_prompt or PROGRESS_PROMPT
        self.final_prompt = final_answer_prompt or FINAL_PROMPT
        require_limit("progress_ledger_retry_count", progress_ledger_retry_count, none="3")
        self.retry_count = 3 if progress_ledger_retry_count is None else progress_ledger_retry_count

    async def plan(self, magentic_context: MagenticContext) -> Message:
        """Ask for facts, then for a plan, and return both with the task."""
        facts = self.facts_prompt.format(task=magentic_context.task)
        plan = self.plan_prompt.format(team=_team(magentic_context))
        return await self._ab_ledger(magentic_context, facts, plan)

    async def replan(self, magentic_context: MagenticContext) -> Message:
        """Ask for updated facts and a new plan."""
        old_facts = self.task_ledger.facts.text if self.task_ledger is not None else ""
        facts = self.facts_update_prompt.format(task=magentic_context.task, old_facts=old_facts)
        plan = self.plan_update_prompt.format(team=_team(magentic_context))
        return await self._ab_ledger(magentic_context, facts, plan)

    async def _ab_ledger(self, context: MagenticContext, facts_prompt: str, plan_prompt: str) -> Message:
        question = Message("user", [facts_prompt])
        facts = await self._ab_ask([*context.chat_history, question])
        plan = await self._ab_ask([*context.chat_history, question, facts, Message("user", [plan_prompt])])
        self.task_ledger = MagenticTaskLedger(facts, plan)
        text = self.full_prompt.format(task=context.task, team=_team(context), facts=facts.text, plan=plan.text)
        return Message("assistant", [text], author_name=MAGENTIC_MANAGER_NAME)

    async def create_progress_ledger(self, magentic_context: MagenticContext) -> MagenticProgressLedger:
        """Ask about the progress, and again if the answer cannot be read.

        Raises:
            ValueError: None of the answers can be read.
        """
        context = magentic_context
        prompt = self.progress_prompt.format(
            task=context.task, team=_team(context), names=", ".join(context.participant_descriptions)
        )
        messages = [*context.chat_history, Message("user", [prompt])]
        for attempt in range(self.retry_count + 1):
            answer = await self._ab_ask(messages)
            try:
                return MagenticProgressLedger.from_dict(next(json_objects(answer.text), {}))
            except ValueError as error:
                if attempt == self.retry_count:
                    raise
                logger.warning("The manager of a Magentic team is asked again: %s", error)
                messages = [*messages, answer, Message("user", [f"{error} Answer again, with JSON alone."])]
                await asyncio.sleep(_PAUSE_S * (attempt + 1))
        raise AssertionError

    async def prepare_final_answer(self, magentic_context: MagenticContext) -> Message:
        """Ask for the answer to the task."""
        prompt = self.final_prompt.format(task=magentic_context.task)
        answer = await self._ab_ask([*magentic_context.chat_history, Message("user", [prompt])])
        return Message("assistant", [answer.text], author_name=MAGENTIC_MANAGER_NAME)

    async def _ab_ask(self, messages: list[Message]) -> Message:
        response = await self.agent.run(without_answers(messages, "the conversation of a Magentic team"))
        if not response.text:
            msg = f"The agent {self.agent.name!r} that manages a Magentic team did not answer. Expected a text."
            raise RuntimeError(msg)
        return Message("assistant", [response.text], author_name=self.agent.name)

    def on_checkpoint_save(self) -> dict[str, Any]:
        """Return facts and plan."""
        ledger = self.task_ledger
        return {"task_ledger": None if ledger is None else {"facts": ledger.facts, "plan": ledger.plan}}

    def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`."""
        ledger = state.get("task_ledger")
        self.task_ledger = None if ledger is None else MagenticTaskLedger(ledger["facts"], ledger["plan"])


def _team(context: MagenticContext) -> str:
    return "\n".join(f"- {name}: {description}" for name, description in context.participant_descriptions.items())
