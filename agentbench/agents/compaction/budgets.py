"""Strategies that fit a conversation into a number of tokens."""

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
    """Applies strategies in order until a conversation fits into a budget of tokens; if need be, its oldest groups go.

    Args:
        token_budget: The most tokens that are left.
        tokenizer: Counts tokens.
        strategies: Applied in this order.
        early_stop: Whether later strategies are left out once the conversation fits.
        reserved_tokens: Part of the budget for what is not in the conversation: instructions and schemas of tools.

    Raises:
        ValueError: The budget is not positive, or nothing of it is left.

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
        """Apply the strategies while the conversation is above the budget."""
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
    """Fits a conversation into the context window of a model: first results of tools are shortened, then the oldest go.

    Args:
        max_context_window_tokens: The window of the model, in tokens.
        max_output_tokens: Tokens of the window that are for the answer.
        tokenizer: Counts tokens; by default a quarter of the characters.
        tool_eviction_threshold: Share of the input from which on older results of tools are shortened.
        truncation_threshold: Share of the input from which on the oldest groups are left out.
        keep_last_tool_call_groups: How many calls of tools always stay as they are.
        reserved_tokens: Tokens of the input for instructions and schemas of tools.

    Attributes:
        input_budget_tokens: Tokens that are left for the conversation.

    Raises:
        ValueError: Nothing of the window is left, a threshold is not in (0, 1], or truncation would come first.

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
        """Shorten results of tools, then leave out the oldest groups, as far as the thresholds ask for it."""
        annotate_message_groups(messages, tokenizer=self.tokenizer)
        changed = False
        if included_token_count(messages) > self.input_budget_tokens * self.tool_eviction_threshold:
            changed = await self._shorten_tools(messages)
        return await self._truncate(messages) or changed
