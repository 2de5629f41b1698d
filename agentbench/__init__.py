"""agentbench: agent workflows as graphs, to be run, seen, stepped, rewound and forked.

Every public name is found here, `from agentbench import Executor, handler`, and loaded when it is first touched;
importing the package alone loads nothing. The modules behind the names are an inner matter.

To add a name, enter it in the table below and run `python tests/tools/write_stub.py`, which keeps `__init__.pyi`, the
twin that editors and type checkers read, in step.
"""

import importlib as _importlib

__version__ = "0.1.0"

# Module -> the public names that it defines.
_NAMES_OF = {
    "agentbench._bridge": ("run_sync",),
    "agentbench._clock": (
        "Clock",
        "CountingIds",
        "IdSource",
        "RandomIds",
        "SystemClock",
        "TickingClock",
        "set_runtime_defaults",
    ),
    "agentbench.checkpoints.checkpoint": ("CheckpointID", "WorkflowCheckpoint"),
    "agentbench.checkpoints.fork": ("fork_checkpoint",),
    "agentbench.checkpoints.info": ("CheckpointInfo",),
    "agentbench.checkpoints.memory": ("InMemoryCheckpointStorage",),
    "agentbench.checkpoints.storage": (
        "CheckpointStorage",
        "SupportsChainNames",
        "SupportsCheckpointInfos",
        "SupportsHeadCheck",
        "SupportsPrune",
    ),
    "agentbench.exceptions": (
        "AdditionItemMismatch",
        "AgentBenchException",
        "AgentContentFilterException",
        "AgentException",
        "AgentFrameworkException",
        "AgentInvalidAuthException",
        "AgentInvalidRequestException",
        "AgentInvalidResponseException",
        "CassetteMissError",
        "ChatClientContentFilterException",
        "ChatClientException",
        "ChatClientInvalidAuthException",
        "ChatClientInvalidRequestException",
        "ChatClientInvalidResponseException",
        "CheckpointNotFoundError",
        "ConcurrentUpdateError",
        "ContentError",
        "EdgeDuplicationError",
        "EvalNotPassedError",
        "ExecutorTimeoutError",
        "FormInvalid",
        "GraphCompileError",
        "GraphConnectivityError",
        "GraphError",
        "GraphMismatchError",
        "GraphRecursionError",
        "IntegrationContentFilterException",
        "IntegrationException",
        "IntegrationInitializationError",
        "IntegrationInvalidAuthException",
        "IntegrationInvalidRequestException",
        "IntegrationInvalidResponseException",
        "InvalidEdit",
        "InvalidUpdateError",
        "MiddlewareException",
        "MiddlewareTermination",
        "MissingExtraError",
        "NestedLoopError",
        "NoBlockingError",
        "NodeError",
        "NodeTimeoutError",
        "NotebookError",
        "ReducerError",
        "RenderFailed",
        "RendererUnavailable",
        "RequestAlreadyAnswered",
        "RequestExpired",
        "SettingNotFoundError",
        "StateValidationError",
        "StepperClosed",
        "StepperStateError",
        "ThreadBusyError",
        "ToolException",
        "ToolExecutionException",
        "TypeCompatibilityError",
        "UnsupportedSchema",
        "UserInputRequiredException",
        "ValidationTypeEnum",
        "WidgetsUnavailable",
        "WorkflowBusyError",
        "WorkflowCheckpointException",
        "WorkflowConvergenceException",
        "WorkflowException",
        "WorkflowRunnerException",
        "WorkflowValidationError",
    ),
    "agentbench.workflow.approval": ("Approval",),
    "agentbench.workflow.boundary": (
        "BoundaryCheckpoint",
        "BoundaryHook",
        "BoundaryOutcome",
        "PauseReason",
        "SuperstepView",
    ),
    "agentbench.workflow.builder": ("WorkflowBuilder",),
    "agentbench.workflow.cases": ("Case", "Default", "SwitchCaseEdgeGroupCase", "SwitchCaseEdgeGroupDefault"),
    "agentbench.workflow.context": ("WorkflowContext",),
    "agentbench.workflow.drawing": ("WorkflowViz",),
    "agentbench.workflow.edge": ("Edge", "EdgeCondition"),
    "agentbench.workflow.edge_group": ("EdgeGroup",),
    "agentbench.workflow.edges": ("FanInEdgeGroup", "InternalEdgeGroup", "SingleEdgeGroup"),
    "agentbench.workflow.events": (
        "SuperstepCompletionInfo",
        "WorkflowErrorDetails",
        "WorkflowEvent",
        "WorkflowEventSource",
        "WorkflowEventType",
        "WorkflowRunState",
    ),
    "agentbench.workflow.executor": ("Executor", "RequestInfoMixin"),
    "agentbench.workflow.function_executor": ("FunctionExecutor", "executor"),
    "agentbench.workflow.handlers": ("handler", "response_handler"),
    "agentbench.workflow.in_process": ("CheckpointManager", "InProcessExecution"),
    "agentbench.workflow.message": ("MessageType", "WorkflowMessage"),
    "agentbench.workflow.options": ("ExecutorPolicy", "RunOptions"),
    "agentbench.workflow.report": ("PlannedDelivery", "StepReport"),
    "agentbench.workflow.result": ("WorkflowRunResult",),
    "agentbench.workflow.routing": ("EdgeGroupDeliveryStatus", "EdgeRunner", "create_edge_runner"),
    "agentbench.workflow.run": ("WorkflowRun",),
    "agentbench.workflow.runner": ("Runner",),
    "agentbench.workflow.runner_context": ("InProcRunnerContext", "RunnerContext"),
    "agentbench.workflow.selection": ("FanOutEdgeGroup", "SwitchCaseEdgeGroup"),
    "agentbench.workflow.state": ("State",),
    "agentbench.workflow.stream": ("WorkflowStream",),
    "agentbench.workflow.validation": ("WorkflowGraphValidator", "validate_workflow_graph"),
    "agentbench.workflow.workflow": ("Workflow",),
}

# Second names of the same things.
_ALIASES = {"StreamingRun": "WorkflowRun"}

# Parts with a door of their own: `agentbench.notebook.draw`.
_SUBMODULES = ("exceptions", "notebook", "testing")

_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = sorted([*_MODULE_OF, *_ALIASES])


def __getattr__(name: str) -> object:
    original = _ALIASES.get(name, name)
    if original in _MODULE_OF:
        value = getattr(_importlib.import_module(_MODULE_OF[original]), original)
    elif name in _SUBMODULES:
        value = _importlib.import_module(f"agentbench.{name}")
    else:
        message = f"module 'agentbench' has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = [name for name in globals() if name.startswith("__")]
    return sorted({*own, *__all__, *_SUBMODULES, "load_ipython_extension", "unload_ipython_extension"})


def load_ipython_extension(ip: object) -> None:
    """Run by `%load_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").load_ipython_extension(ip)


def unload_ipython_extension(ip: object) -> None:
    """Run by `%unload_ext agentbench` in a notebook."""
    _importlib.import_module("agentbench.notebook").unload_ipython_extension(ip)
