"""Typed twin of the lazy front door; written by tests/tools/write_stub.py, not by hand."""

from typing import Any

from agentbench import exceptions as exceptions
from agentbench import notebook as notebook
from agentbench._bridge import run_sync as run_sync
from agentbench._clock import Clock as Clock
from agentbench._clock import CountingIds as CountingIds
from agentbench._clock import IdSource as IdSource
from agentbench._clock import RandomIds as RandomIds
from agentbench._clock import SystemClock as SystemClock
from agentbench._clock import TickingClock as TickingClock
from agentbench._clock import set_runtime_defaults as set_runtime_defaults
from agentbench.exceptions import AdditionItemMismatch as AdditionItemMismatch
from agentbench.exceptions import AgentBenchException as AgentBenchException
from agentbench.exceptions import AgentContentFilterException as AgentContentFilterException
from agentbench.exceptions import AgentException as AgentException
from agentbench.exceptions import AgentFrameworkException as AgentFrameworkException
from agentbench.exceptions import AgentInvalidAuthException as AgentInvalidAuthException
from agentbench.exceptions import AgentInvalidRequestException as AgentInvalidRequestException
from agentbench.exceptions import AgentInvalidResponseException as AgentInvalidResponseException
from agentbench.exceptions import CassetteMissError as CassetteMissError
from agentbench.exceptions import ChatClientContentFilterException as ChatClientContentFilterException
from agentbench.exceptions import ChatClientException as ChatClientException
from agentbench.exceptions import ChatClientInvalidAuthException as ChatClientInvalidAuthException
from agentbench.exceptions import ChatClientInvalidRequestException as ChatClientInvalidRequestException
from agentbench.exceptions import ChatClientInvalidResponseException as ChatClientInvalidResponseException
from agentbench.exceptions import CheckpointNotFoundError as CheckpointNotFoundError
from agentbench.exceptions import ConcurrentUpdateError as ConcurrentUpdateError
from agentbench.exceptions import ContentError as ContentError
from agentbench.exceptions import EdgeDuplicationError as EdgeDuplicationError
from agentbench.exceptions import EvalNotPassedError as EvalNotPassedError
from agentbench.exceptions import ExecutorTimeoutError as ExecutorTimeoutError
from agentbench.exceptions import FormInvalid as FormInvalid
from agentbench.exceptions import GraphCompileError as GraphCompileError
from agentbench.exceptions import GraphConnectivityError as GraphConnectivityError
from agentbench.exceptions import GraphError as GraphError
from agentbench.exceptions import GraphMismatchError as GraphMismatchError
from agentbench.exceptions import GraphRecursionError as GraphRecursionError
from agentbench.exceptions import IntegrationContentFilterException as IntegrationContentFilterException
from agentbench.exceptions import IntegrationException as IntegrationException
from agentbench.exceptions import IntegrationInitializationError as IntegrationInitializationError
from agentbench.exceptions import IntegrationInvalidAuthException as IntegrationInvalidAuthException
from agentbench.exceptions import IntegrationInvalidRequestException as IntegrationInvalidRequestException
from agentbench.exceptions import IntegrationInvalidResponseException as IntegrationInvalidResponseException
from agentbench.exceptions import InvalidEdit as InvalidEdit
from agentbench.exceptions import InvalidUpdateError as InvalidUpdateError
from agentbench.exceptions import MiddlewareException as MiddlewareException
from agentbench.exceptions import MiddlewareTermination as MiddlewareTermination
from agentbench.exceptions import MissingExtraError as MissingExtraError
from agentbench.exceptions import NestedLoopError as NestedLoopError
from agentbench.exceptions import NoBlockingError as NoBlockingError
from agentbench.exceptions import NodeError as NodeError
from agentbench.exceptions import NodeTimeoutError as NodeTimeoutError
from agentbench.exceptions import NotebookError as NotebookError
from agentbench.exceptions import ReducerError as ReducerError
from agentbench.exceptions import RendererUnavailable as RendererUnavailable
from agentbench.exceptions import RenderFailed as RenderFailed
from agentbench.exceptions import RequestAlreadyAnswered as RequestAlreadyAnswered
from agentbench.exceptions import RequestExpired as RequestExpired
from agentbench.exceptions import SettingNotFoundError as SettingNotFoundError
from agentbench.exceptions import StateValidationError as StateValidationError
from agentbench.exceptions import StepperClosed as StepperClosed
from agentbench.exceptions import StepperStateError as StepperStateError
from agentbench.exceptions import ThreadBusyError as ThreadBusyError
from agentbench.exceptions import ToolException as ToolException
from agentbench.exceptions import ToolExecutionException as ToolExecutionException
from agentbench.exceptions import TypeCompatibilityError as TypeCompatibilityError
from agentbench.exceptions import UnsupportedSchema as UnsupportedSchema
from agentbench.exceptions import UserInputRequiredException as UserInputRequiredException
from agentbench.exceptions import ValidationTypeEnum as ValidationTypeEnum
from agentbench.exceptions import WidgetsUnavailable as WidgetsUnavailable
from agentbench.exceptions import WorkflowBusyError as WorkflowBusyError
from agentbench.exceptions import WorkflowCheckpointException as WorkflowCheckpointException
from agentbench.exceptions import WorkflowConvergenceException as WorkflowConvergenceException
from agentbench.exceptions import WorkflowException as WorkflowException
from agentbench.exceptions import WorkflowRunnerException as WorkflowRunnerException
from agentbench.exceptions import WorkflowValidationError as WorkflowValidationError

__version__: str
__all__: list[str]
_ALIASES: dict[str, str]
_MODULE_OF: dict[str, str]
_SUBMODULES: tuple[str, ...]

def load_ipython_extension(ip: Any) -> None: ...
def unload_ipython_extension(ip: Any) -> None: ...
