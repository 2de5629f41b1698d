"""Strategies that decide which groups of a conversation are sent to a model, and strategies with a token budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from agentbench import _clock
from agentbench._limits import require_limit
from agentbench.agents.compaction.grouping import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
    GROUP_ANNOTATION_KEY,
    GROUP_ID_KEY,
    GROUP_KIND_KEY,
    SUMMARIZED_BY_SUMMARY_ID_KEY,
    SUMMARY_OF_GROUP_IDS_KEY,
    SUMMARY_OF_MESSAGE_IDS_KEY,
    CharacterEstimatorTokenizer,
    CompactionStrategy,
    TokenizerProtocol,
    annotate_message_groups,
    group_of,
    included_token_count,
)
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")

SUMMARY_PROMPT: Final = (
    "Summarize the conversation below for the assistant that will continue it without seeing it. Keep what it needs: "
    "what the user wants, names, numbers, decisions, results of tools, and questions that are still open. Earlier "
    "summaries are part of the conversation; carry their facts over. Be faithful and brief. Reply with the summary "
    "alone."
)


class TruncationStrategy:
    """Excludes the oldest groups when a conversation exceeds a limit.

    Args:
        max_n: The limit, in tokens with a tokenizer, otherwise in messages.
        compact_to: The maximum size after truncation. Choose less than `max_n`, so that not every turn truncates.
        tokenizer: Counts tokens; without one, messages are counted.
        preserve_system: Whether to keep all system messages.

    Raises:
        ValueError: A number is not positive, or `compact_to` is greater than `max_n`.

    Example:
        strategy = TruncationStrategy(max_n=40, compact_to=20)
        agent = Agent(EchoChatClient(), context_providers=[CompactionProvider(before_strategy=strategy)])
    """

    def __init__(
        self, *, max_n: int, compact_to: int, tokenizer: TokenizerProtocol | None = None, preserve_system: bool = True
    ) -> None:
        check_at_least(1, max_n=max_n, compact_to=compact_to)
        if compact_to > max_n:
            message = f"compact_to={compact_to} is greater than max_n={max_n}. Expected at most max_n."
            raise ValueError(message)
        self.max_n, self.compact_to = max_n, compact_to
        self.tokenizer, self.preserve_system = tokenizer, preserve_system

    async def __call__(self, messages: list[Message]) -> bool:
        """Exclude the oldest groups if the conversation exceeds `max_n`."""
        groups = included_groups(messages, self.tokenizer)
        size = sum(self._ab_size(group) for group in groups)
        if size <= self.max_n:
            return False
        changed = False
        for group in groups:
            if size <= self.compact_to:
                break
            if not (self.preserve_system and is_system(group)):
                size -= self._ab_size(group)
                exclude(group, "truncation")
                changed = True
        return changed

    def _ab_size(self, group: list[Message]) -> int:
        return len(group) if self.tokenizer is None else included_token_count(group)


class SlidingWindowStrategy:
    """Excludes all groups except the last ones.

    Args:
        keep_last_groups: The number of groups to keep, not counting system messages.
        preserve_system: Whether to keep all system messages; otherwise those before the window are also excluded.

    Raises:
        ValueError: `keep_last_groups` is not positive.

    Example:
        strategy = SlidingWindowStrategy(keep_last_groups=10)
    """

    def __init__(self, *, keep_last_groups: int, preserve_system: bool = True) -> None:
        check_at_least(1, keep_last_groups=keep_last_groups)
        self.keep_last_groups, self.preserve_system = keep_last_groups, preserve_system

    async def __call__(self, messages: list[Message]) -> bool:
        """Exclude the groups before the window."""
        groups = included_groups(messages)
        others = [at for at, group in enumerate(groups) if not is_system(group)]
        if len(others) <= self.keep_last_groups:
            return False
        for group in groups[: others[-self.keep_last_groups]]:
            if not (self.preserve_system and is_system(group)):
                exclude(group, "sliding_window")
        return True


class SelectiveToolCallCompactionStrategy:
    """Excludes all tool calls and their results except the last ones.

    Args:
        keep_last_tool_call_groups: The number of tool calls to keep; 0 excludes all.

    Raises:
        ValueError: The number is negative.

    Example:
        strategy = SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=2)
    """

    def __init__(self, *, keep_last_tool_call_groups: int = 1) -> None:
        check_at_least(0, keep_last_tool_call_groups=keep_last_tool_call_groups)
        self.keep_last_tool_call_groups = keep_last_tool_call_groups

    async def __call__(self, messages: list[Message]) -> bool:
        """Exclude the older groups of tool calls."""
        older = _older_tool_calls(messages, self.keep_last_tool_call_groups)
        for group in older:
            exclude(group, "tool_call_compaction")
        return bool(older)


class ToolResultCompactionStrategy:
    """Replaces each group of tool calls and results by one short message, except the last ones.

    The message names each tool and its result: `[Tool results: weather: fog; clock: 12:00]`.

    Args:
        keep_last_tool_call_groups: The number of groups to keep unchanged.
        max_chars_per_result: The maximum characters of each result in the message; longer ones are cut and marked.

    Raises:
        ValueError: A number is too small.

    Example:
        strategy = ToolResultCompactionStrategy(keep_last_tool_call_groups=2)
    """

    def __init__(self, *, keep_last_tool_call_groups: int = 1, max_chars_per_result: int = 500) -> None:
        check_at_least(0, keep_last_tool_call_groups=keep_last_tool_call_groups)
        check_at_least(1, max_chars_per_result=max_chars_per_result)
        self.keep_last_tool_call_groups = keep_last_tool_call_groups
        self.max_chars_per_result = max_chars_per_result

    async def __call__(self, messages: list[Message]) -> bool:
        """Replace the older groups of tool calls."""
        older = _older_tool_calls(messages, self.keep_last_tool_call_groups)
        for group in older:
            summary_id = f"tool_summary_{group_of(group[0])[GROUP_ID_KEY]}"
            _replace(messages, [group], self._ab_text(group), summary_id, "tool_result_compaction")
        if older:
            annotate_message_groups(messages)
        return bool(older)

    def _ab_text(self, group: Sequence[Message]) -> str:
        limit, contents = self.max_chars_per_result, [one for message in group for one in message.contents]
        names = {one.call_id: one.name for one in contents if one.type == "function_call"}
        parts = []
        for one in contents:
            if one.type == "function_result":
                name = names.get(one.call_id)
                text = f"Error: {one.exception}" if one.exception else str(one.result)
                if len(text) > limit:
                    text = f"{text[:limit]}… ({len(text) - limit:,} more characters)"
                parts.append(f"{name}: {text}" if name else text)
        return f"[Tool results: {'; '.join(parts) or 'no results'}]"


class SummarizationStrategy:
    """Lets a model summarize the oldest part of a conversation that has become too long.

    If the model fails or returns an empty answer, a warning is logged and the conversation does not change.

    Args:
        client: The chat client of the model that summarizes.
        target_count: The approximate number of messages to keep unchanged, not counting system messages.
        threshold: The number of messages above `target_count` that starts a summary; `None` means 0.
        prompt: The instructions for the model, instead of the default ones.

    Raises:
        ValueError: `target_count` is not positive, or `threshold` is negative.

    Example:
        strategy = SummarizationStrategy(client=EchoChatClient(), target_count=10, threshold=10)
    """

    def __init__(
        self, *, client: Any, target_count: int = 4, threshold: int | None = 2, prompt: str | None = None
    ) -> None:
        check_at_least(1, target_count=target_count)
        require_limit("threshold", threshold, none="none")
        self.client, self.target_count, self.threshold = client, target_count, threshold or 0
        self.prompt = prompt or SUMMARY_PROMPT

    async def __call__(self, messages: list[Message]) -> bool:
        """Replace the oldest groups by a summary if there are too many messages."""
        groups = [group for group in included_groups(messages) if not is_system(group)]
        count = sum(map(len, groups))
        if count <= self.target_count + self.threshold:
            return False
        oldest = []
        for group in groups[:-1]:  # the newest group always stays
            if count <= self.target_count:
                break
            oldest.append(group)
            count -= len(group)
        replaced = [message for group in oldest for message in group]
        if len(replaced) < 2:  # a summary of one message would not make the conversation shorter
            return False
        text = await self._ab_summary(replaced)
        if not text:
            return False
        _replace(messages, oldest, text, _clock.runtime_defaults().ids.new_id("summary"), "summarized")
        annotate_message_groups(messages)
        return True

    async def _ab_summary(self, messages: Sequence[Message]) -> str:
        lines = "\n".join(
            f"{number}. [{one.role}] {one.text or ', '.join(content.type for content in one.contents)}"
            for number, one in enumerate(messages, start=1)
        )
        try:
            response = await self.client.get_response([Message("system", self.prompt), Message("user", lines)])
        except Exception as error:
            logger.warning("The conversation was not summarized: %s failed with %s.", self.client, type(error).__name__)
            logger.debug("Summarizing a conversation failed.", exc_info=error)
            return ""
        text = (response.text or "").strip()
        if not text:
            logger.warning("The conversation was not summarized: the answer of the model is empty.")
        return text


def check_at_least(least: int, **numbers: int) -> None:
    """Check several limits by name."""
    for name, number in numbers.items():
        require_limit(name, number, least=least)


def included_groups(messages: list[Message], tokenizer: TokenizerProtocol | None = None) -> list[list[Message]]:
    """Annotate a conversation and return the groups that are not excluded, each as a list of messages."""
    annotate_message_groups(messages, tokenizer=tokenizer)
    groups: dict[str, list[Message]] = {}
    for message in messages:
        if not message.additional_properties.get(EXCLUDED_KEY):
            groups.setdefault(group_of(message)[GROUP_ID_KEY], []).append(message)
    return list(groups.values())


def is_system(group: Sequence[Message]) -> bool:
    """Return whether this is a group of system messages."""
    return bool(group_of(group[0])[GROUP_KIND_KEY] == "system")


def exclude(group: Sequence[Message], reason: str) -> None:
    """Mark the messages of a group as excluded."""
    for message in group:
        message.additional_properties[EXCLUDED_KEY] = True
        message.additional_properties[EXCLUDE_REASON_KEY] = reason


def _older_tool_calls(messages: list[Message], keep: int) -> list[list[Message]]:
    calls = [group for group in included_groups(messages) if group_of(group[0])[GROUP_KIND_KEY] == "tool_call"]
    return calls[: max(0, len(calls) - keep)]


def _replace(
    messages: list[Message], groups: Sequence[Sequence[Message]], text: str, summary_id: str, reason: str
) -> None:
    """Exclude groups and insert a summary before the first. The summary and the messages refer to each other."""
    replaced = [message for group in groups for message in group]
    marks: dict[str, Any] = {
        SUMMARY_OF_MESSAGE_IDS_KEY: [one.message_id for one in replaced if one.message_id is not None],
        SUMMARY_OF_GROUP_IDS_KEY: [group_of(group[0])[GROUP_ID_KEY] for group in groups],
    }
    properties = {GROUP_ANNOTATION_KEY: marks, EXCLUDED_KEY: False}
    summary = Message("assistant", text, message_id=summary_id, additional_properties=properties)
    messages.insert(next(at for at, one in enumerate(messages) if one is replaced[0]), summary)
    for message in replaced:
        marks = {**group_of(message), SUMMARIZED_BY_SUMMARY_ID_KEY: summary_id}
        message.additional_properties[GROUP_ANNOTATION_KEY] = marks
    exclude(replaced, reason)


# ---- token budgets


class TokenBudgetComposedStrategy:
    """Applies strategies in order until a conversation fits into a token budget.

    If it does not fit after all strategies, its oldest groups are excluded.

    Args:
        token_budget: The maximum number of tokens.
        tokenizer: Counts tokens.
        strategies: The strategies, in the order in which they are applied.
        early_stop: Whether to skip the remaining strategies once the conversation fits.
        reserved_tokens: The part of the budget that is reserved for instructions and tool schemas.

    Raises:
        ValueError: The budget is not greater than `reserved_tokens`, or `reserved_tokens` is negative.

    Example:
        strategy = TokenBudgetComposedStrategy(
            token_budget=8_000,
            tokenizer=CharacterEstimatorTokenizer(),
            strategies=[ToolResultCompactionStrategy(), SlidingWindowStrategy(keep_last_groups=20)],
        )
    """

    def __init__(
        self,
        *,
        token_budget: int,
        tokenizer: TokenizerProtocol,
        strategies: Sequence[CompactionStrategy],
        early_stop: bool = True,
        reserved_tokens: int = 0,
    ) -> None:
        check_at_least(0, reserved_tokens=reserved_tokens)
        check_at_least(reserved_tokens + 1, token_budget=token_budget)
        self.token_budget, self.reserved_tokens = token_budget, reserved_tokens
        self.tokenizer, self.strategies, self.early_stop = tokenizer, list(strategies), early_stop

    async def __call__(self, messages: list[Message]) -> bool:
        """Apply the strategies if the conversation exceeds the budget."""
        if self._ab_excess(messages) <= 0:
            return False
        changed = False
        for strategy in self.strategies:
            changed = await strategy(messages) or changed
            if self.early_stop and self._ab_excess(messages) <= 0:
                return changed
        excess = self._ab_excess(messages)
        groups = included_groups(messages)
        for systems, reason in ((False, "token_budget_fallback"), (True, "token_budget_fallback_strict")):
            for group in groups:
                if excess > 0 and is_system(group) is systems:
                    excess -= included_token_count(group)
                    exclude(group, reason)
                    changed = True
        return changed

    def _ab_excess(self, messages: list[Message]) -> int:
        annotate_message_groups(messages, tokenizer=self.tokenizer)
        return included_token_count(messages) + self.reserved_tokens - self.token_budget


class ContextWindowCompactionStrategy:
    """Fits a conversation into the context window of a model.

    Older tool results are shortened first; then the oldest groups are excluded.

    Args:
        max_context_window_tokens: The size of the context window.
        max_output_tokens: The part of the context window that is reserved for the answer.
        tokenizer: Counts tokens; by default estimates them as a quarter of the characters.
        tool_eviction_threshold: The share of the input budget above which older tool results are shortened.
        truncation_threshold: The share of the input budget above which the oldest groups are excluded.
        keep_last_tool_call_groups: The number of latest tool calls that are never shortened.
        reserved_tokens: The part of the context window that is reserved for instructions and tool schemas.

    Attributes:
        input_budget_tokens: The tokens available for the conversation.

    Raises:
        ValueError: No tokens remain for the conversation, a threshold is not in (0, 1], or the threshold for truncation
            is lower than the one for tool results.

    Example:
        strategy = ContextWindowCompactionStrategy(max_context_window_tokens=128_000, max_output_tokens=8_000)
    """

    DEFAULT_TOOL_EVICTION_THRESHOLD = 0.5
    DEFAULT_TRUNCATION_THRESHOLD = 0.8

    def __init__(
        self,
        *,
        max_context_window_tokens: int,
        max_output_tokens: int,
        tokenizer: TokenizerProtocol | None = None,
        tool_eviction_threshold: float = DEFAULT_TOOL_EVICTION_THRESHOLD,
        truncation_threshold: float = DEFAULT_TRUNCATION_THRESHOLD,
        keep_last_tool_call_groups: int = 4,
        reserved_tokens: int = 0,
    ) -> None:
        check_at_least(0, max_output_tokens=max_output_tokens, reserved_tokens=reserved_tokens)
        check_at_least(1 + max_output_tokens + reserved_tokens, max_context_window_tokens=max_context_window_tokens)
        if not 0 < tool_eviction_threshold <= truncation_threshold <= 1:
            message = (
                f"tool_eviction_threshold={tool_eviction_threshold} and truncation_threshold={truncation_threshold} "
                "are not valid shares of the input. Expected 0 < tool_eviction_threshold <= truncation_threshold <= 1."
            )
            raise ValueError(message)
        self.max_context_window_tokens, self.max_output_tokens = max_context_window_tokens, max_output_tokens
        self.tokenizer: TokenizerProtocol = tokenizer or CharacterEstimatorTokenizer()
        self.tool_eviction_threshold, self.truncation_threshold = tool_eviction_threshold, truncation_threshold
        self.keep_last_tool_call_groups, self.reserved_tokens = keep_last_tool_call_groups, reserved_tokens
        self.input_budget_tokens = max_context_window_tokens - max_output_tokens - reserved_tokens
        self._ab_shorten_tools = ToolResultCompactionStrategy(keep_last_tool_call_groups=keep_last_tool_call_groups)
        limit = max(1, int(self.input_budget_tokens * truncation_threshold))
        self._ab_truncate = TruncationStrategy(max_n=limit, compact_to=limit, tokenizer=self.tokenizer)

    async def __call__(self, messages: list[Message]) -> bool:
        """Shorten tool results, then exclude the oldest groups, each if its threshold is exceeded."""
        annotate_message_groups(messages, tokenizer=self.tokenizer)
        changed = False
        if included_token_count(messages) > self.input_budget_tokens * self.tool_eviction_threshold:
            changed = await self._ab_shorten_tools(messages)
        return await self._ab_truncate(messages) or changed
