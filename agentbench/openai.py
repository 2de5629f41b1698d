"""Clients of OpenAI and of every service that is compatible with it.

Needs the extra `openai`; this module can be imported without it.

```python
from agentbench.openai import OpenAIChatClient

agent = OpenAIChatClient("gpt-4o-mini").as_agent(instructions="Be brief.")
print(await agent.run("Why is the sky blue?"))
```
"""

from __future__ import annotations

from agentbench.agents.clients.openai.chat.completions import OpenAIChatCompletionOptions, OpenAIChatOptions
from agentbench.agents.clients.openai.client import (
    OpenAIChatClient,
    OpenAIChatCompletionClient,
    OpenAIResponsesClient,
    RawOpenAIChatClient,
    RawOpenAIChatCompletionClient,
)
from agentbench.agents.clients.openai.embeddings import OpenAIEmbeddingClient, OpenAIEmbeddingOptions
from agentbench.agents.clients.openai.errors import ContentFilterResultSeverity
from agentbench.agents.clients.openai.responses.output import OpenAIContinuationToken
from agentbench.agents.clients.openai.settings import OpenAISettings
from agentbench.exceptions import OpenAIContentFilterException

__all__ = [
    "ContentFilterResultSeverity",
    "OpenAIChatClient",
    "OpenAIChatCompletionClient",
    "OpenAIChatCompletionOptions",
    "OpenAIChatOptions",
    "OpenAIContentFilterException",
    "OpenAIContinuationToken",
    "OpenAIEmbeddingClient",
    "OpenAIEmbeddingOptions",
    "OpenAIResponsesClient",
    "OpenAISettings",
    "RawOpenAIChatClient",
    "RawOpenAIChatCompletionClient",
]
