"""Clients of OpenAI and of every service that is compatible with it.

Needs the extra `openai`; this module can be imported without it.

```python
from agentbench.openai import OpenAIChatClient

agent = OpenAIChatClient("gpt-4o-mini").as_agent(instructions="Be brief.")
print(await agent.run("Why is the sky blue?"))
```
"""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.agents.clients.openai.chat_completions: OpenAIChatCompletionOptions OpenAIChatOptions
    agentbench.agents.clients.openai.client: OpenAIChatClient OpenAIChatCompletionClient OpenAIResponsesClient
        RawOpenAIChatClient RawOpenAIChatCompletionClient
    agentbench.agents.clients.openai.embeddings: OpenAIEmbeddingClient OpenAIEmbeddingOptions
    agentbench.agents.clients.openai.errors: ContentFilterResultSeverity
    agentbench.agents.clients.openai.responses_output: OpenAIContinuationToken
    agentbench.agents.clients.openai.settings: OpenAISettings
    agentbench.exceptions: OpenAIContentFilterException
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing
