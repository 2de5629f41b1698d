# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._clock import Clock as Clock
from agentbench._clock import CountingIds as CountingIds
from agentbench._clock import IdSource as IdSource
from agentbench._clock import RandomIds as RandomIds
from agentbench._clock import SystemClock as SystemClock
from agentbench._clock import TickingClock as TickingClock
from agentbench._clock import set_runtime_defaults as set_runtime_defaults
from agentbench._lazy import Door
from agentbench.agents.clients.cassette.client import CassetteChatClient as CassetteChatClient
from agentbench.agents.clients.scripted.offline import EchoChatClient as EchoChatClient
from agentbench.agents.clients.scripted.offline import OfflineChatClient as OfflineChatClient
from agentbench.agents.clients.scripted.offline import default_chat_client as default_chat_client
from agentbench.agents.clients.scripted.script import Call as Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient as ScriptedChatClient
from agentbench.revisions.kept_tests.facts import Replayed as Replayed
from agentbench.testing import storage_suite as storage_suite
from agentbench.testing.replaying import replay as replay
from agentbench.testing.storage_suite import StorageCheck as StorageCheck

_door: Door
__all__: list[str]
