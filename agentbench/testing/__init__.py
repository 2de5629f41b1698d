"""Tools for tests of your own code: scripted chat clients, clocks, and a suite for checkpoint storages.

The package does not import a test framework.
"""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench._clock: Clock CountingIds IdSource RandomIds SystemClock TickingClock set_runtime_defaults
    agentbench.agents.clients.cassette.client: CassetteChatClient
    agentbench.agents.clients.scripted.offline: EchoChatClient OfflineChatClient default_chat_client
    agentbench.agents.clients.scripted.script: Call
    agentbench.agents.clients.scripted.scripted: ScriptedChatClient
    agentbench.revisions.kept_tests.facts: Replayed
    replaying: replay
    storage_suite: StorageCheck
    """,
    parts="storage_suite",
)
__all__ = [*_door.names, "storage_suite"]
__getattr__, __dir__ = _door.load, _door.listing
