"""Strategies that fit a conversation into a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench.agents.compaction.grouping import annotate_message_groups
from agentbench.agents.compaction.projection import included_token_count
from agentbench.agents.compaction.protocols import CharacterEstimatorTokenizer, CompactionStrategy, TokenizerProtocol
from agentbench.agents.compaction.strategies import (
    ToolResultCompactionStrategy,
    TruncationStrategy,
    check_at_least,
    exclude,
    included_groups,
    is_system,
)

if TYPE_CHECKING:
    from agentbench.messages.message import Message


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
        if self._excess(messages) <= 0:
            return False
        changed = False
        for strategy in self.strategies:
            changed = await strategy(messages) or changed
            if self.early_stop and self._excess(messages) <= 0:
                return changed
        excess = self._excess(messages)
        groups = included_groups(messages)
        for systems, reason in ((False, "token_budget_fallback"), (True, "token_budget_fallback_strict")):
            for group in groups:
                if excess > 0 and is_system(group) is systems:
                    excess -= included_token_count(group)
                    exclude(group, reason)
                    changed = True
        return changed

    def _excess(self, messages: list[Message]) -> int:
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
        self._shorten_tools = ToolResultCompactionStrategy(keep_last_tool_call_groups=keep_last_tool_call_groups)
        limit = max(1, int(self.input_budget_tokens * truncation_threshold))
        self._truncate = TruncationStrategy(max_n=limit, compact_to=limit, tokenizer=self.tokenizer)

    async def __call__(self, messages: list[Message]) -> bool:
        """Shorten tool results, then exclude the oldest groups, each if its threshold is exceeded."""
        annotate_message_groups(messages, tokenizer=self.tokenizer)
        changed = False
        if included_token_count(messages) > self.input_budget_tokens * self.tool_eviction_threshold:
            changed = await self._shorten_tools(messages)
        return await self._truncate(messages) or changed
