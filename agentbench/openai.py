"""Clients of OpenAI and of every service that is compatible with it.

Needs the extra `openai`; this module can be imported without it.

```python
from agentbench.openai import OpenAIChatClient

agent = OpenAIChatClient("gpt-4o-mini").as_agent(instructions="Be brief.")
print(await agent.run("Why is the sky blue?"))
```
"""

from __future__ import annotations

from agentbench.agents.clients.openai.chat.completions import OpenAIChatOptions
from agentbench.agents.clients.openai.client import (
    OpenAIChatClient,
    OpenAIChatCompletionClient,
    OpenAIResponsesClient,
)
from agentbench.agents.clients.openai.embeddings import OpenAIEmbeddingClient
from agentbench.exceptions import OpenAIContentFilterException

__all__ = [
    "OpenAIChatClient",
    "OpenAIChatCompletionClient",
    "OpenAIChatOptions",
    "OpenAIContentFilterException",
    "OpenAIEmbeddingClient",
    "OpenAIResponsesClient",
]
