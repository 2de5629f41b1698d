"""For the tests of people who build on agentbench: suites that their own parts must pass, models that play a script.

Loads no test framework. Every name is found when it is first touched.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentbench._arguments import name_arguments

if TYPE_CHECKING:
    from agentbench.agents.clients.cassette.client import CassetteChatClient as CassetteChatClient
    from agentbench.agents.clients.scripted.offline import EchoChatClient as EchoChatClient
    from agentbench.agents.clients.scripted.offline import OfflineChatClient as OfflineChatClient
    from agentbench.agents.clients.scripted.offline import default_chat_client as default_chat_client
    from agentbench.agents.clients.scripted.script import Call as Call
    from agentbench.agents.clients.scripted.scripted import ScriptedChatClient as ScriptedChatClient
    from agentbench.testing import storage_suite as storage_suite
    from agentbench.testing.storage_suite import StorageCheck as StorageCheck

_MODULE_OF = {
    "Call": "agentbench.agents.clients.scripted.script",
    "CassetteChatClient": "agentbench.agents.clients.cassette.client",
    "EchoChatClient": "agentbench.agents.clients.scripted.offline",
    "OfflineChatClient": "agentbench.agents.clients.scripted.offline",
    "ScriptedChatClient": "agentbench.agents.clients.scripted.scripted",
    "StorageCheck": "agentbench.testing.storage_suite",
    "default_chat_client": "agentbench.agents.clients.scripted.offline",
}

__all__ = sorted([*_MODULE_OF, "storage_suite"])


def __getattr__(name: str) -> Any:
    if name == "storage_suite":
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return name_arguments(getattr(import_module(_MODULE_OF[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
