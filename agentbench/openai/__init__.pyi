# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.agents.clients.openai.chat_completions import OpenAIChatCompletionOptions as OpenAIChatCompletionOptions
from agentbench.agents.clients.openai.chat_completions import OpenAIChatOptions as OpenAIChatOptions
from agentbench.agents.clients.openai.client import OpenAIChatClient as OpenAIChatClient
from agentbench.agents.clients.openai.client import OpenAIChatCompletionClient as OpenAIChatCompletionClient
from agentbench.agents.clients.openai.client import OpenAIResponsesClient as OpenAIResponsesClient
from agentbench.agents.clients.openai.client import RawOpenAIChatClient as RawOpenAIChatClient
from agentbench.agents.clients.openai.client import RawOpenAIChatCompletionClient as RawOpenAIChatCompletionClient
from agentbench.agents.clients.openai.embeddings import OpenAIEmbeddingClient as OpenAIEmbeddingClient
from agentbench.agents.clients.openai.embeddings import OpenAIEmbeddingOptions as OpenAIEmbeddingOptions
from agentbench.agents.clients.openai.errors import ContentFilterResultSeverity as ContentFilterResultSeverity
from agentbench.agents.clients.openai.responses_output import OpenAIContinuationToken as OpenAIContinuationToken
from agentbench.agents.clients.openai.settings import OpenAISettings as OpenAISettings
from agentbench.exceptions import OpenAIContentFilterException as OpenAIContentFilterException

_door: Door
__all__: list[str]
