"""Protocols of tokenizers and compaction strategies, and the keys of the annotations that they share.

All annotations are plain JSON values in `Message.additional_properties`, so `to_dict` and `from_dict` preserve them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agentbench.messages.message import Message

GROUP_ANNOTATION_KEY = "_group"
"""The key of a dict with the keys below. The messages of a group are included or excluded together."""

GROUP_ID_KEY = "id"
GROUP_KIND_KEY = "kind"
GROUP_INDEX_KEY = "index"
GROUP_HAS_REASONING_KEY = "has_reasoning"
GROUP_TOKEN_COUNT_KEY = "token_count"
SUMMARY_OF_MESSAGE_IDS_KEY = "_summary_of_message_ids"
SUMMARY_OF_GROUP_IDS_KEY = "_summary_of_group_ids"
SUMMARIZED_BY_SUMMARY_ID_KEY = "_summarized_by_summary_id"

EXCLUDED_KEY = "_excluded"
"""The key of a mark that is true if the message is not sent to the model. It is not part of the group dict."""

EXCLUDE_REASON_KEY = "_exclude_reason"
COMPACTION_STATE_KEY = "_compaction_messages"


@runtime_checkable
class TokenizerProtocol(Protocol):
    """Counts the tokens of a text.

    Example:
        from agentbench import TokenizerProtocol

        class Words:
            def count_tokens(self, text: str) -> int:
                return len(text.split())

        assert isinstance(Words(), TokenizerProtocol)
    """

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """Decides which messages of a conversation are sent to a model.

    A strategy marks messages in place (`_excluded`) and may insert summaries. It never edits the contents of a message.

    Example:
        class KeepLast:
            async def __call__(self, messages):
                for message in messages[:-10]:
                    message.additional_properties["_excluded"] = True
                return len(messages) > 10
    """

    async def __call__(self, messages: list[Message]) -> bool:
        """Mark messages of the list and return whether anything changed."""


class CharacterEstimatorTokenizer:
    """Estimates tokens without a vocabulary: four characters count as one token, and every text has at least one.

    Example:
        assert CharacterEstimatorTokenizer().count_tokens("twelve chars") == 3
    """

    __slots__ = ()

    def count_tokens(self, text: str) -> int:
        """Return a quarter of the number of characters, but at least 1."""
        return max(1, len(text) // 4)

    def __repr__(self) -> str:
        return "CharacterEstimatorTokenizer()"
