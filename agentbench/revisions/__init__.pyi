# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.agents.clients.cassette.recorded_call import NewCall as NewCall
from agentbench.agents.clients.cassette.recorded_call import RecordedCall as RecordedCall
from agentbench.agents.clients.cassette.recording import ModelRecording as ModelRecording
from agentbench.exceptions import KeepTestError as KeepTestError
from agentbench.exceptions import MergeError as MergeError
from agentbench.exceptions import RedoError as RedoError
from agentbench.exceptions import UnrecordedCallError as UnrecordedCallError
from agentbench.exceptions import VariantError as VariantError
from agentbench.revisions.current_code import changed_parts as changed_parts
from agentbench.revisions.current_code import current_workflow as current_workflow
from agentbench.revisions.merge import Merge as Merge
from agentbench.revisions.what_if.results import Effect as Effect
from agentbench.revisions.what_if.results import WhatIf as WhatIf
from agentbench.revisions.what_if.results import WhatIfRow as WhatIfRow
from agentbench.revisions.what_if.results import WhatIfSummary as WhatIfSummary
from agentbench.workflows.executors.message import Withdrawn as Withdrawn
from agentbench.workflows.executors.recorder import GivenAnswer as GivenAnswer
from agentbench.workflows.persist.executor_content import ExecutorContent as ExecutorContent
from agentbench.workflows.persist.planned_migration import Migration as Migration

_door: Door
__all__: list[str]
