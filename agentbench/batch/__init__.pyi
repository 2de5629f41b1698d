# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.batch.batch import Batch as Batch
from agentbench.batch.cluster.placement import DaskPlacement as DaskPlacement
from agentbench.batch.comparison import BatchComparison as BatchComparison
from agentbench.batch.comparison import PairedRow as PairedRow
from agentbench.batch.inputs import Start as Start
from agentbench.batch.many import run_many as run_many
from agentbench.batch.opening import open_batch as open_batch
from agentbench.batch.rows import BatchProgress as BatchProgress
from agentbench.batch.rows import BatchRow as BatchRow
from agentbench.batch.rows import RowError as RowError
from agentbench.batch.rows import RowStatus as RowStatus
from agentbench.batch.rows import Traffic as Traffic
from agentbench.batch.views import Question as Question
from agentbench.batch.views import RowView as RowView
from agentbench.exceptions import BatchChangedError as BatchChangedError
from agentbench.exceptions import BatchError as BatchError
from agentbench.exceptions import BatchInputError as BatchInputError
from agentbench.exceptions import BatchNotFoundError as BatchNotFoundError
from agentbench.exceptions import BatchStoppedError as BatchStoppedError
from agentbench.exceptions import PlacementError as PlacementError
from agentbench.exceptions import RemoteExecutorError as RemoteExecutorError
from agentbench.exceptions import RunTimeoutError as RunTimeoutError
from agentbench.exceptions import UnpicklableError as UnpicklableError
from agentbench.messages.usage import Budget as Budget
from agentbench.workflows.engine.recording import record_call as record_call
from agentbench.workflows.executors.placement import CallRecord as CallRecord
from agentbench.workflows.executors.placement import HandlerCall as HandlerCall
from agentbench.workflows.executors.placement import Placement as Placement

_door: Door
__all__: list[str]
