"""All errors that agentbench raises, in one tree. `help(agentbench.exceptions)` displays it.

A class with a second base can also be caught as that built-in error. The facts passed to a class become attributes of
the same names. Messages never contain secrets, because they are logged.
"""

from __future__ import annotations

import copy
import copyreg
import logging
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Self, TypeVar

logger = logging.getLogger("agentbench")
logger.addHandler(logging.NullHandler())

_E = TypeVar("_E", bound="AgentFrameworkException")


def restore_error(cls: type[_E], args: tuple[object, ...], facts: dict[str, Any]) -> _E:
    """Rebuild a copied or unpickled error without calling its constructor, which would log it again."""
    error = cls.__new__(cls)
    error.args = args
    for name, value in facts.items():
        setattr(error, name, value)
    error.__cause__ = facts.get("inner_exception")
    return error


class AgentFrameworkException(Exception):
    """The root of the tree.

    Creating an error logs its message once, on the logger `agentbench`; copying and unpickling do not log it again. A
    copy shares the inner exception. A pickle stores an inner exception from another library only as its class name and
    text, because such a class may not unpickle and may hold a request with its credentials.

    Args:
        message: What was wrong, what was expected, and how to fix it; also the return value of `str()`.
        inner_exception: The underlying error. It is logged too, becomes the second of `args`, and is the `__cause__`
            unless `raise ... from` sets another one.
        log_level: Level of the log record; `None` disables logging.
        *args: Further `args`.
        **kwargs: Passed to the second base class, if there is one (`name=` of a `ModuleNotFoundError`).

    Attributes: The facts that were passed to the constructor, under the names of its arguments.

    Example:
        from agentbench import AgentFrameworkException

        try:
            raise AgentFrameworkException("The shop is closed.", ConnectionError("no route"))
        except AgentFrameworkException as error:
            print(error, "because of", error.inner_exception)
    """

    def __init__(
        self,
        message: str,
        inner_exception: BaseException | None = None,
        log_level: int | None = logging.DEBUG,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # Dask makes pickles of all errors contain their causes, such as a request with its credentials; not of these.
        copyreg.dispatch_table.pop(type(self), None)
        super().__init__(message, **kwargs)
        self.args = (message, *(() if inner_exception is None else (inner_exception,)), *args)
        self.message = message
        self.inner_exception = inner_exception
        self.log_level = log_level
        if inner_exception is not None:
            self.__cause__ = inner_exception
        if log_level is not None:
            logger.log(log_level, message, exc_info=inner_exception)

    def __str__(self) -> str:
        return str(self.message)

    def __copy__(self) -> Self:
        return restore_error(type(self), self.args, self._facts())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self.inner_exception)] = self.inner_exception
        return restore_error(type(self), copy.deepcopy(self.args, memo), copy.deepcopy(self._facts(), memo))

    def __reduce__(self) -> tuple[Any, ...]:
        inner, facts = self.inner_exception, self._facts()
        facts["inner_exception"] = written = None if inner is None else _as_written(inner)
        return restore_error, (type(self), tuple(written if arg is inner else arg for arg in self.args), facts)

    def _facts(self) -> dict[str, Any]:
        return self.__dict__.copy()


class _ErrorElsewhere(Exception):
    """Replaces an exception from another library in a pickle."""


def _as_written(inner: BaseException) -> BaseException:
    cls = type(inner)
    if isinstance(inner, (AgentFrameworkException, _ErrorElsewhere)) or cls.__module__ == "builtins":
        return inner
    return _ErrorElsewhere(f"{cls.__module__}.{cls.__qualname__}: {inner}")


AgentBenchException = AgentFrameworkException


# ---------------------------------------------------------------------------------------------------- agents and models


class AgentException(AgentFrameworkException):
    """An agent's run failed. Raised by agents and their middleware; subclasses are more specific."""


class AgentInvalidAuthException(AgentException):
    """The service behind an agent refused the credentials."""


class AgentInvalidRequestException(AgentException):
    """An agent cannot be run with these arguments, for instance with two places that store the history."""


class AgentInvalidResponseException(AgentException):
    """The service behind an agent returned an unusable answer."""


class ResponseInvalidatedException(AgentException):
    """A hook or middleware refused a complete response. Readers of its stream discard the updates that they received.

    `ResponseStream.buffer_updates` holds updates back until the response is accepted.

    Example:
        def refuse_secrets(response):
            if "password" in response.text:
                raise ResponseInvalidatedException("The response contains a password.")


        stream = agent.run("Hello", stream=True).with_result_hook(refuse_secrets).buffer_updates()
    """


class AgentContentFilterException(AgentException):
    """A content filter stopped the input or the answer of an agent."""


class ChatClientException(AgentFrameworkException):
    """A call to a model failed. Raised by chat clients.

    Attributes:
        status_code: HTTP status of the service's answer, if there was one.
        retry_after: How many seconds the service asks callers to wait, if it says so.
        is_retryable: Whether the same call may succeed later, because the service is busy, down, slow or unreachable.
    """

    status_code: int | None = None
    retry_after: float | None = None
    is_retryable: bool = False


class ChatClientInvalidAuthException(ChatClientException):
    """The model's service refused the credentials."""


class ChatClientInvalidRequestException(ChatClientException):
    """The model's service cannot fulfil the request: unknown model, unsupported option, or input too long."""


class ChatClientInvalidResponseException(ChatClientException):
    """The model's service returned an unusable answer."""


class ChatClientContentFilterException(ChatClientException):
    """A content filter stopped the input or the answer of a model."""


class OpenAIContentFilterException(ChatClientContentFilterException):
    """The content filter of an OpenAI-compatible service stopped the input or the answer.

    Args:
        param: The part of the request that was stopped, such as `prompt`, if the service names it.
        content_filter_code: The service's code for the reason.
        content_filter_result: The findings by category, as the service reports them.
    """

    def __init__(
        self,
        message: str,
        inner_exception: BaseException | None = None,
        *,
        param: str | None = None,
        content_filter_code: str | None = None,
        content_filter_result: Mapping[str, Any] | None = None,
    ) -> None:
        self.param, self.content_filter_code = param, content_filter_code
        self.content_filter_result = None if content_filter_result is None else dict(content_filter_result)
        super().__init__(message, inner_exception)


class CassetteMissError(ChatClientException):
    """The recorded conversation has no answer to this request. Raised by `CassetteChatClient` in replay.

    Attributes:
        path: The cassette file.
        request: The request that was not found, in the normalized form used for comparing requests.
        nearest: The most similar recorded call, if there is one.
        difference: The first difference between the two: a path, then both values, as three lines of text.
    """

    def __init__(
        self, message: str, *, path: object, request: object, nearest: object = None, difference: str | None = None
    ) -> None:
        self.path, self.request, self.nearest, self.difference = path, request, nearest, difference
        super().__init__(message)


class UnrecordedCallError(ChatClientException):
    """A redone run needs an answer of the model that was not recorded, and no new call is allowed. It was not sent.

    Attributes:
        executor_id: The executor whose handler makes the call; empty for a condition.
        request: The request, with `messages`, `tools` and `options` as plain values, masked.
    """

    def __init__(self, message: str, *, executor_id: str, request: object) -> None:
        self.executor_id, self.request = executor_id, request
        super().__init__(message)


class IntegrationException(AgentFrameworkException):
    """A service other than the model failed, such as a memory or search service."""


class IntegrationInitializationError(IntegrationException):
    """A service could not be set up."""


class IntegrationInvalidAuthException(IntegrationException):
    """A service other than the model refused the credentials."""


class IntegrationInvalidRequestException(IntegrationException):
    """A service other than the model cannot fulfil the request."""


class IntegrationInvalidResponseException(IntegrationException):
    """A service other than the model returned an unusable answer."""


class IntegrationContentFilterException(IntegrationException):
    """A content filter of a service other than the model stopped the input or the answer."""


class HistoryFileError(AgentFrameworkException, ValueError):
    """A file of a `FileHistoryProvider` contains something other than messages, or is a link that leaves its folder.

    Args:
        path: The path of the file.
        problem: What is wrong with the file and how to fix it, as one or more sentences.
        line: The number of the faulty line, if there is one.
    """

    def __init__(self, path: str, problem: str, line: int | None = None) -> None:
        self.path, self.line = path, line
        super().__init__(problem)


class FileStoreError(AgentFrameworkException, ValueError):
    """A store of files refuses a path or a change, because the path leaves the store or the file is not as expected.

    Args:
        path: The path, as it was passed.
        problem: What is wrong and what to do instead, as a sentence.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"File {path!r}: {problem}")


class ContentError(AgentFrameworkException):
    """A content or a tool mode is invalid. Raised when it is created, read or joined."""


class AdditionItemMismatch(ContentError, TypeError):
    """Two pieces of streamed content do not belong together: their types, calls or reasoning ids differ."""


class ToolException(AgentFrameworkException):
    """A tool cannot be called: it is only declared, or its call limit is used up."""


class ToolExecutionException(ToolException):
    """A tool was called and failed."""


class ToolArgumentsError(ToolExecutionException, TypeError):
    """The arguments of a call do not fit the tool's schema. The model reads `problems` so that it can correct them.

    Each problem names an argument and what was expected; only the message contains the values.
    """

    def __init__(self, message: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(message)


class ToolResultError(ToolExecutionException):
    """A server reported that a call of its tool failed. The report is meant for the model, which reads it.

    The message is the report's text; `contents` holds its other parts.
    """

    def __init__(
        self, message: str, inner_exception: BaseException | None = None, contents: Sequence[Any] = ()
    ) -> None:
        self.contents = list(contents)
        super().__init__(message, inner_exception)


class MCPLimitError(ToolExecutionException):
    """The MCP server named `server` sent more than one of its limits allows: `limit` is its name, `value` its value."""

    def __init__(self, server: str, sent: str, limit: str, value: float) -> None:
        self.server, self.limit, self.value = server, limit, value
        super().__init__(
            f"The MCP server {server!r} sent {sent}, and {limit}={value:_} is the limit. If you trust the server, "
            f"raise the limit where you create the tool: limits={{{limit!r}: {value * 10:_}}}."
        )


class UserInputRequiredException(ToolException):
    """The run needs an answer from a person to the requests in `contents`. Not logged, because it is not a failure."""

    def __init__(
        self, contents: Sequence[Any], message: str = "A person has to answer before this run can continue."
    ) -> None:
        self.contents = list(contents)
        super().__init__(message, log_level=None)


class MiddlewareException(AgentFrameworkException):
    """A middleware is of an unknown kind, or was passed where its kind is not allowed."""


class MiddlewareTermination(MiddlewareException):
    """Raised by a middleware to end the call early, with or without a `result`. It is not logged."""

    def __init__(self, message: str = "Middleware terminated execution.", *, result: Any = None) -> None:
        self.result = result
        super().__init__(message, log_level=None)


class MiddlewareFailure(MiddlewareException):
    """Raised by a middleware to fail the run, also where another error would become the result of a tool call.

    It ends the runs of all agents that called each other as tools.

    Example:
        @function_middleware
        async def guard(context: FunctionInvocationContext, call_next):
            if "password" in str(context.arguments):
                raise MiddlewareFailure(f"The arguments of {context.function.name} contain a password.")
            await call_next()
    """


class EvalNotPassedError(AgentFrameworkException):
    """An evaluation did not pass its gate; `results` holds the results."""

    def __init__(self, message: str, results: Any = None) -> None:
        self.results = results
        super().__init__(message)


# -------------------------------------------------------------------------------------------------------------- batches


class BatchError(AgentFrameworkException):
    """A batch, or one of its rows, cannot do what was asked. The base class of the errors of batches."""


class VariantError(BatchError, ValueError):
    """A variant of a what-if names something that does not exist or cannot be changed.

    Attributes: `variant`, its name; `entry`, what it names; `nearest`, the known name that is most like it, if any.
    """

    def __init__(self, message: str, *, variant: str, entry: str = "", nearest: str = "") -> None:
        self.variant, self.entry, self.nearest = variant, entry, nearest
        super().__init__(message)


class BatchInputError(BatchError, ValueError):
    """An input or its key cannot be used.

    Attributes: `position`, the place of the input, counted from 0; `key`, its key, if it has one.
    """

    def __init__(self, message: str, inner: BaseException | None = None, *, position: int, key: str = "") -> None:
        self.position, self.key = position, key
        super().__init__(message, inner)


class BatchChangedError(BatchError):
    """Rows of a batch were computed by another graph or by other code.

    Attributes: `changes`, the parts of the graph that differ, each with `added`, `removed` or `changed`; `rows`, the
    number of rows concerned.
    """

    def __init__(self, message: str, *, changes: Mapping[str, str], rows: int) -> None:
        self.changes, self.rows = dict(changes), rows
        super().__init__(message)


class BatchNotFoundError(BatchError, KeyError):
    """There is no such database of batches, no such batch in it, or no such row in the batch.

    Attributes: `name`, what was not found; `names`, the batches that exist, if it is one.
    """

    def __init__(self, message: str, *, name: str, names: Sequence[str] = ()) -> None:
        self.name, self.names = name, list(names)
        super().__init__(message)


class BatchStoppedError(BatchError):
    """A batch stopped because of failed rows, as `on_error=` asked; its rows are kept.

    Attributes: `failed`, the number of failed rows; `key`, the row that failed last.
    """

    def __init__(self, message: str, *, failed: int, key: str) -> None:
        self.failed, self.key = failed, key
        super().__init__(message)


class RunFailedError(BatchError):
    """A run of a batch failed. Its row keeps the error as text, which is also the text of this one.

    Attributes: `error_type` (a name), `location` and `remote_traceback`, as texts; see `RowError`.
    """

    def __init__(self, message: str, error_type: str, location: str, remote_traceback: str) -> None:
        self.error_type, self.location, self.remote_traceback = error_type, location, remote_traceback
        super().__init__(message, log_level=None)


class RunTimeoutError(BatchError, TimeoutError):
    """A run of a batch took longer than its `timeout=`.

    Attributes: `executors`, the ids of those that were running; `timeout`, the limit in seconds.
    """

    def __init__(self, executors: Sequence[str], timeout: float) -> None:
        self.executors, self.timeout = list(executors), timeout
        where = f"in {', '.join(map(repr, executors))}" if executors else "between two supersteps"
        super().__init__(
            f"The run took longer than {timeout:g} seconds and was ended {where}. Pass a longer timeout=, or give the "
            "executor a limit of its own.",
            log_level=logging.DEBUG,
        )


class ClaimLostError(BatchError):
    """This process was not seen alive for so long that another one may run the input; the run is given up here."""


# ------------------------------------------------------------------------------------------------ settings and packages


class SettingNotFoundError(AgentFrameworkException):
    """A required setting has no value. Raised by `load_settings` and by clients that need one."""


def install_command(extra: str) -> str:
    """Return the command that adds an extra, in any folder; an agentbench installed from a clone stays."""
    return f'pip install "agentbench[{extra}]"'


class MissingExtraError(AgentFrameworkException, ModuleNotFoundError):
    """An optional package is needed but not installed.

    Args:
        extra: The extra of agentbench that installs the package.
        package: The missing package.
        purpose: What it is needed for, as a verb phrase: "tabulate a run".
        problem: What is wrong, if it is something other than a missing package.
        command: How to install the package, if no extra installs it.
        advice: What to do instead of running that command, in a sentence: in a browser it does not work.
    """

    def __init__(
        self,
        extra: str,
        package: str,
        *,
        purpose: str | None = None,
        problem: str | None = None,
        command: str | None = None,
        advice: str | None = None,
    ) -> None:
        self.extra, self.package, self.purpose, self.advice, self._command = extra, package, purpose, advice, command
        if problem is None:
            problem = f"{package} is not installed" + (f"; it is needed to {purpose}" if purpose else "")
        super().__init__(f"{problem}. {advice or f'Install it with: {self.command}'}", name=package)

    @property
    def command(self) -> str:
        """The command that installs the package."""
        return self._command or install_command(self.extra)

    def _facts(self) -> dict[str, Any]:
        # ImportError does not store these attributes in __dict__.
        return {**super()._facts(), "name": self.name, "path": self.path, "msg": self.msg}


class NotInBrowserError(MissingExtraError):
    """Something cannot work where Python runs in a browser (JupyterLite), whatever is installed.

    Args:
        feature: What cannot work, in the plural: "MCP servers over stdio".
        reason: Why, as a clause: "a page starts no processes".
        instead: What to do, as a sentence.
    """

    def __init__(self, feature: str, *, reason: str, instead: str) -> None:
        self.feature, self.reason, self.instead = feature, reason, instead
        problem = f"{feature} cannot be used in a browser, because {reason}"
        super().__init__("", "", problem=problem, advice=instead)

    @property
    def command(self) -> str:
        """Empty: no package helps."""
        return ""


class SiteError(AgentFrameworkException):
    """`agentbench site` cannot build the site; `problem` says why, and `fix` says what to do about it."""

    def __init__(self, problem: str, fix: str) -> None:
        self.problem, self.fix = problem, fix
        super().__init__(f"{problem}. {fix}")


# ------------------------------------------------------------------------------------------------------------ workflows


class WorkflowException(AgentFrameworkException):
    """A workflow is built or used incorrectly, or cannot continue. Errors of your own handlers are raised unchanged."""


class ExecutorTimeoutError(WorkflowException, TimeoutError):
    """An executor took longer than the `timeout_s` seconds that its policy allows."""

    def __init__(self, executor_id: str, timeout_s: float) -> None:
        self.executor_id, self.timeout_s = executor_id, timeout_s
        super().__init__(
            f"Executor {executor_id!r} did not finish within {timeout_s:g} s and was stopped. "
            "Allow more time, or do less work per message."
        )


class MissingResponseHandlerError(WorkflowException, TypeError):
    """An executor made a request, but none of its `@response_handler` methods takes the response.

    Raised by `ctx.request_info()`. If the executor has no such method at all, it is raised when someone responds.
    """

    def __init__(self, executor_id: str, request_type: Any, response_type: Any) -> None:
        self.executor_id, self.request_type, self.response_type = executor_id, request_type, response_type
        request, response = _type_name(request_type), _type_name(response_type)
        super().__init__(
            f"Executor {executor_id!r} requests {response} with {request}, but has no @response_handler that takes "
            f"both, so the response would be lost. Add one to its class: `@response_handler async def on_response("
            f"self, request: {request}, response: {response}, ctx: WorkflowContext) -> None`."
        )


class EmptyConversationError(WorkflowException, ValueError):
    """A pattern of agents got an input without messages.

    Args:
        executor_id: The id of the node that received the input.
    """

    def __init__(self, executor_id: str) -> None:
        self.executor_id = executor_id
        super().__init__(
            f"{executor_id!r} received no messages. Expected a text, a message, or a list with at least one of them."
        )


class WorkflowRunnerException(WorkflowException):
    """A run cannot do this in its current state, for example answer a request that is not pending."""


class WorkflowBusyError(WorkflowRunnerException, RuntimeError):
    """The workflow is already running, or another run has since saved to its chain of checkpoints."""


class RedoError(WorkflowRunnerException):
    """A run cannot be redone as it was asked for; nothing was started.

    Attributes:
        changed: The parts of the graph whose code has changed, such as `classify` or `classify->reply`.
        missing: The changed parts whose current code cannot be found, each with the reason.
    """

    def __init__(self, message: str, *, changed: Sequence[str] = (), missing: Mapping[str, str] | None = None) -> None:
        self.changed, self.missing = changed, missing or {}
        super().__init__(message)


class WorkflowConvergenceException(WorkflowRunnerException):
    """Messages are still waiting after the last superstep that `max_iterations` allows.

    Attributes: `max_iterations`, if known, and `pending`, the number of waiting messages by sender id.
    """

    def __init__(
        self,
        message: str,
        inner_exception: BaseException | None = None,
        log_level: int | None = logging.DEBUG,
        *,
        max_iterations: int | None = None,
        pending: Mapping[str, int] | None = None,
    ) -> None:
        self.max_iterations, self.pending = max_iterations, dict(pending or {})
        super().__init__(message, inner_exception, log_level)


class MessageLimitError(WorkflowRunnerException):
    """One superstep `queued` more messages (by sender id) than the next one may deliver; the superstep is undone."""

    def __init__(self, workflow_name: str, superstep: int, max_messages: int, queued: Mapping[str, int]) -> None:
        self.workflow_name, self.superstep, self.max_messages = workflow_name, superstep, max_messages
        self.queued = dict(queued)
        senders = ", ".join(f"{source} ({count:,})" for source, count in self.queued.items())
        super().__init__(
            f"Superstep {superstep} of workflow {workflow_name!r} queued {sum(self.queued.values()):,} messages, from "
            f"{senders}; at most {max_messages:,} are allowed. Look for a cycle that multiplies its messages, or allow "
            "more with RunOptions(max_messages=...) or WorkflowBuilder(max_messages=...)."
        )


class KeepTestError(AgentFrameworkException, ValueError):
    """A run cannot be kept as a test; nothing was written.

    Attributes: `names`, the names or types that are the reason; `lines`, the numbers of the lines with a secret.
    """

    def __init__(self, message: str, *, names: Sequence[str] = (), lines: Sequence[int] = ()) -> None:
        self.names, self.lines = list(names), list(lines)
        super().__init__(message)


class PlacementError(WorkflowException, RuntimeError):
    """Workers cannot be used, or a handler could not be carried out there; `executor_id` if it is about one."""

    def __init__(
        self, message: str, executor_id: str | None = None, *, inner_exception: BaseException | None = None
    ) -> None:
        self.executor_id = executor_id
        super().__init__(message, inner_exception)


class RemoteExecutorError(WorkflowException):
    """A handler raised `error_type` on a worker: the cause of that error, or its substitute if it cannot be pickled.

    Attributes: `executor_id`, `worker`, `error_type` (a name), `error_message` and `remote_traceback`, as texts.
    """

    def __init__(
        self, executor_id: str, worker: str, error_type: str, error_message: str, remote_traceback: str
    ) -> None:
        self.executor_id, self.worker, self.error_type = executor_id, worker, error_type
        self.error_message, self.remote_traceback = error_message, remote_traceback
        super().__init__(
            f"Executor {executor_id!r} raised {error_type} on worker {worker}: {error_message}\n\n{remote_traceback}"
        )


class UnpicklableError(WorkflowException, TypeError):
    """A value cannot be sent to another process.

    Args:
        what: The value, such as `executor 'fetch'`.
        culprit: The part of it that cannot be pickled, such as `.client._lock`; empty for the value itself.
        reason: Why, as the rest of a sentence.
        remedy: What to do about it, as one or more sentences.
    """

    def __init__(self, what: str, culprit: str, reason: str, remedy: str) -> None:
        self.what, self.culprit, self.reason, self.remedy = what, culprit, reason, remedy
        super().__init__(f"{what[:1].upper()}{what[1:]} cannot be sent to workers: {reason} {remedy}")


class WorkflowCheckpointException(WorkflowRunnerException):
    """A checkpoint could not be saved, loaded, read or restored.

    State graphs call it `StorageError`.

    Args:
        message: The problem, what was expected, and how to solve it.
        inner_exception: The error that caused this one.
        log_level: The level at which the error is logged; None for no log line.
        error_code: A code to look up, chosen by the code that raises the error.
        context: Further facts.

    Attributes:
        snapshot: The state in memory that could not be saved, if there is one (state graphs).

    Example:
        raise StorageError(message="The disk is full.", error_code="DISK_001", context={"path": "threads.db"})
    """

    snapshot: Any = None

    def __init__(
        self,
        message: str,
        inner_exception: BaseException | None = None,
        log_level: int | None = logging.DEBUG,
        *,
        error_code: str = "STORAGE_000",
        context: Mapping[str, Any] | None = None,
    ) -> None:
        self.error_code, self.context = error_code, dict(context or {})
        super().__init__(message, inner_exception, log_level)


class TransientStorageError(WorkflowCheckpointException):
    """A storage is busy or cannot be reached; the same call may succeed later."""


class SerializationError(WorkflowCheckpointException):
    """A value cannot be written to a checkpoint, or cannot be read from it."""


class ResourceNotFoundError(WorkflowCheckpointException):
    """A storage does not contain the requested checkpoint or thread."""


class SchemaVersionError(WorkflowCheckpointException):
    """A checkpoint is stored in a format that this version does not know."""


class CheckpointNotFoundError(ResourceNotFoundError):
    """No checkpoint has this id; `message` replaces the usual text if a storage knows more."""

    def __init__(self, checkpoint_id: str, message: str | None = None) -> None:
        self.checkpoint_id = checkpoint_id
        super().__init__(
            message
            or f"There is no checkpoint {checkpoint_id!r} in this storage. Use one of the ids that "
            "list_checkpoint_ids(workflow_name=...) returns. Its chain may have been pruned, or the storage is wrong."
        )


class UnstorableValueError(SerializationError, TypeError):
    """A value has no stored form, so the object that contains it cannot be saved.

    Args:
        value_type: The class of the value.
        reason: Why it cannot be stored and what to do, as one or more sentences.
        path: Where the value was found, such as `state['notes'][3].payload`; empty if that is not known yet.
    """

    def __init__(self, value_type: type, reason: str, *, path: str = "") -> None:
        self.value_type, self.reason, self.path = value_type, reason, path
        what = f"{value_type.__module__}.{value_type.__qualname__}"
        super().__init__(f"{path or 'A value'} cannot be stored: it is a {what}. {reason}")


class UnknownStoredTypeError(SerializationError):
    """A stored value has a class that this process does not know.

    Args:
        type_name: The stored name of the class.
        problem: Why the known class of this name does not fit, if there is one.
    """

    def __init__(self, type_name: str, problem: str | None = None) -> None:
        self.type_name = type_name
        module, _, name = type_name.partition(".")
        if problem is None and module == "__main__":
            hint = (
                "which is not known here: the program or notebook that saved it defined it. Define it here too, or "
                f"import the class {name} from its present module and pass it to register_state_type(), with "
                f"identifier={type_name!r} if several classes of that name are registered. Then load again."
            )
        else:
            hint = (
                f"{problem or 'which is not known here. Import the module that defines it first'}, or pass the class "
                "to register_state_type(). Then load again. Loading never imports modules on its own."
            )
        super().__init__(f"A stored value is of the class {type_name!r}, {hint}")


class GraphMismatchError(WorkflowCheckpointException):
    """A checkpoint was made by a different graph.

    Attributes: `differences`, each a dict with `path`, `before` (in the checkpoint) and `after` (in this graph).
    """

    def __init__(
        self,
        message: str,
        inner_exception: BaseException | None = None,
        log_level: int | None = logging.DEBUG,
        *,
        differences: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.differences = [dict(difference) for difference in differences]
        super().__init__(message, inner_exception, log_level)


class MigrationError(WorkflowCheckpointException):
    """A checkpoint cannot be migrated to another graph as described; nothing was written.

    Attributes: `checkpoint_id`, and `name`, the executor, field or wrong name that is the reason, if there is one.
    """

    def __init__(
        self,
        message: str,
        inner_exception: BaseException | None = None,
        log_level: int | None = logging.DEBUG,
        *,
        checkpoint_id: str | None = None,
        name: str | None = None,
    ) -> None:
        self.checkpoint_id, self.name = checkpoint_id, name
        super().__init__(message, inner_exception, log_level)


class FunctionCheckpointError(WorkflowCheckpointException, ValueError):
    """A checkpoint was made by another version of a workflow function, or has foreign contents."""


class ValidationTypeEnum(StrEnum):
    """The rule that a graph violates.

    Example:
        from agentbench import EdgeDuplicationError

        try:
            builder.build()
        except EdgeDuplicationError as error:
            print(error.validation_type)  # ValidationTypeEnum.EDGE_DUPLICATION
    """

    EDGE_DUPLICATION = "EDGE_DUPLICATION"
    EXECUTOR_DUPLICATION = "EXECUTOR_DUPLICATION"
    TYPE_COMPATIBILITY = "TYPE_COMPATIBILITY"
    GRAPH_CONNECTIVITY = "GRAPH_CONNECTIVITY"
    HANDLER_OUTPUT_ANNOTATION = "HANDLER_OUTPUT_ANNOTATION"
    OUTPUT_VALIDATION = "OUTPUT_VALIDATION"


class WorkflowValidationError(WorkflowException):
    """A graph is built incorrectly. Raised by `build()`; `str()` is `[TYPE] message`.

    Attributes:
        message: The message without the type.
        validation_type: The rule that the graph violates.
        further_errors: The other errors of the graph, in the order of the checks.
    """

    further_errors: tuple[WorkflowValidationError, ...] = ()

    def __init__(self, message: str, validation_type: ValidationTypeEnum) -> None:
        self.validation_type = ValidationTypeEnum(validation_type)
        super().__init__(message)

    @property
    def all_errors(self) -> list[WorkflowValidationError]:
        """All errors of the graph: this one, which was found first, and the further ones."""
        return [self, *self.further_errors]

    def __str__(self) -> str:
        return f"[{self.validation_type.value}] {self.message}"


class EdgeDuplicationError(WorkflowValidationError):
    """An edge, `source->target`, was added twice to a workflow. Raised by `build()`."""

    def __init__(self, edge_id: str) -> None:
        self.edge_id = edge_id
        super().__init__(
            f"Edge {edge_id!r} was added twice. Two executors can have only one edge; "
            "remove the second one, or combine their conditions.",
            ValidationTypeEnum.EDGE_DUPLICATION,
        )


class TypeCompatibilityError(WorkflowValidationError):
    """An edge leads to an executor that accepts none of the types that its source sends. Raised by `build()`.

    Attributes:
        redefined: What to run again, if the types differ only because the cell that defines a class was run again.
    """

    def __init__(
        self,
        source_executor_id: str,
        target_executor_id: str,
        source_types: Sequence[Any],
        target_types: Sequence[Any],
        redefined: str | None = None,
    ) -> None:
        self.source_executor_id, self.target_executor_id = source_executor_id, target_executor_id
        self.source_types, self.target_types = list(source_types), list(target_types)
        self.redefined = redefined
        super().__init__(
            redefined
            or f"Executor {source_executor_id!r} sends {_type_names(self.source_types)}, but {target_executor_id!r} "
            f"takes {_type_names(self.target_types)}. At least one type has to match: change a handler's annotation, "
            "or add an executor between the two that converts.",
            ValidationTypeEnum.TYPE_COMPATIBILITY,
        )


class GraphConnectivityError(WorkflowValidationError):
    """A graph is not connected, for instance because an executor is never reached. Raised by `build()`."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ValidationTypeEnum.GRAPH_CONNECTIVITY)


def _type_names(types: Sequence[Any]) -> str:
    return ", ".join(_type_name(each) for each in types) or "nothing"


def _type_name(each: Any) -> str:
    if isinstance(each, type):
        return each.__name__
    return re.sub(r"(?:[\w<>]+\.)+(?=\w)", "", str(each))  # without the modules


class WorkflowWarning(UserWarning):
    """A workflow was built or a run succeeded, but probably not as intended.

    For example, no message can travel along an edge, a message was dropped, or earlier state was carried over.

    Example:
        import warnings

        from agentbench.exceptions import WorkflowWarning

        warnings.filterwarnings("ignore", category=WorkflowWarning)  # `result.warnings` still has those of a run
    """


class ExperimentalWarning(FutureWarning):
    """A feature was used that may change; shown only if the environment sets `AGENTBENCH_STAGE_WARNINGS=1`.

    Example:
        import warnings

        from agentbench.exceptions import ExperimentalWarning

        warnings.filterwarnings("error", category=ExperimentalWarning)  # a test suite may use stable features only
    """


# --------------------------------------------------------------------------------------------------------- state graphs


class GraphError(WorkflowException):
    """A state graph is built or used incorrectly, or cannot continue. `str()` is `[CODE] message`.

    Args:
        message: What was wrong, what was expected, and how to fix it.
        error_code: A stable code to look up, such as `GRAPH_003`.
        context: Further facts, for logs and for `to_dict()`.
        node: The node where it happened.
        field: The field of the state.
        task_id: The activation of the node, as its task id.
        step: The superstep.
        thread_id: The id of the conversation.
        inner_exception: As in every error here; `log_level` too.
    """

    default_code = "GRAPH_000"
    result: Any = None
    """What a failed call had done before it failed."""

    def __init__(  # noqa: PLR0913 - one parameter per fact
        self,
        message: str,
        error_code: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        node: str | None = None,
        field: str | None = None,
        task_id: str | None = None,
        step: int | None = None,
        thread_id: str | None = None,
        inner_exception: BaseException | None = None,
        log_level: int | None = logging.DEBUG,
    ) -> None:
        self.error_code, self.context = error_code or self.default_code, dict(context or {})
        self.node, self.field, self.task_id, self.step, self.thread_id = node, field, task_id, step, thread_id
        # Called by name: the next class in the order of bases differs among subclasses, and so does its constructor.
        AgentFrameworkException.__init__(self, message, inner_exception, log_level)

    def __str__(self) -> str:
        return f"[{self.error_code}] {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain data: `error_type`, `error_code`, `message`, `context`."""
        return {
            "error_type": type(self).__name__,
            "error_code": self.error_code,
            "message": self.message,
            "context": self.context,
        }


class NodeNotFoundError(GraphError, KeyError):
    """A state graph has no node of this name."""

    default_code = "GRAPH_004"


class GraphCompileError(GraphError, WorkflowValidationError, ValueError):
    """A state graph is built incorrectly. `validation_type` is the closest matching rule."""

    def __init__(
        self,
        message: str,
        error_code: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        node: str | None = None,
        field: str | None = None,
        validation_type: ValidationTypeEnum = ValidationTypeEnum.GRAPH_CONNECTIVITY,
    ) -> None:
        self.validation_type = validation_type
        GraphError.__init__(self, message, error_code, context, node=node, field=field)


class GraphRecursionError(GraphError, WorkflowConvergenceException, RecursionError):
    """A call needs more supersteps than its `recursion_limit` allows. Its work is stored, and the call can be resumed.

    Attributes: `result`, the state when the limit was reached.
    """

    default_code = "RECURSION_001"

    def __init__(  # noqa: PLR0913 - one parameter per fact
        self,
        message: str,
        error_code: str | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        step: int | None = None,
        thread_id: str | None = None,
        max_iterations: int | None = None,
        pending: Mapping[str, int] | None = None,
        result: Any = None,
    ) -> None:
        self.max_iterations, self.pending, self.result = max_iterations, dict(pending or {}), result
        GraphError.__init__(self, message, error_code, context, step=step, thread_id=thread_id)


class ThreadBusyError(GraphError, WorkflowBusyError):
    """Another call is running on this thread. Raised at the start of the second one."""


class NodeError(GraphError):
    """A node failed; `__cause__` is the node's own error.

    Attributes: `errors`, the other errors of that superstep in the order of the tasks.
    """

    default_code = "NODE_001"
    errors: Sequence[BaseException] = ()


class NodeTimeoutError(NodeError, TimeoutError):
    """A node (`NODE_TIMEOUT_001`) or a tool in it (`NODE_TIMEOUT_002`) took too long."""

    default_code = "NODE_TIMEOUT_001"


class GraphStopRequested(GraphError):
    """Raised by a node or a tool to stop the run, as `stop()` does; `invoke(None, config)` calls the node again.

    Example:
        >>> def fetch(state):
        ...     if state.calls > 100:
        ...         raise GraphStopRequested("The quota of today is used up.")
    """


class InvalidUpdateError(GraphError):
    """A node returned something that is not an update of the state, or an update of a field that does not exist."""


class ReducerError(GraphError):
    """A reducer failed, or changed its left argument; `__cause__` is its own error."""


class StateValidationError(GraphError, ValueError):
    """A value does not fit its field of the state; `__cause__` is the validator's error."""


class ConcurrentUpdateError(InvalidUpdateError):
    """Two nodes wrote one field without a reducer in the same superstep; an `AgentState` allows equal values."""


# ------------------------------------------------------------------------------------------------------------- notebook


class NotebookError(AgentFrameworkException):
    """A view, a form, a stepper or a magic of the notebook layer failed or was used incorrectly."""


class RendererUnavailable(NotebookError, MissingExtraError):
    """A renderer chosen by name is not installed. The other arguments are those of `MissingExtraError`."""

    def __init__(
        self,
        renderer: str,
        package: str,
        *,
        extra: str = "notebook",
        command: str | None = None,
        advice: str | None = None,
    ) -> None:
        self.renderer = renderer
        purpose = f"draw with the renderer {renderer!r}"
        MissingExtraError.__init__(self, extra, package, purpose=purpose, command=command, advice=advice)


class WidgetsUnavailable(NotebookError, MissingExtraError):
    """A widget cannot be displayed, because ipywidgets or a front end is missing.

    Args:
        instead: What is displayed, or can be called, instead of the widget: "the form is printed as text".
        problem: What is missing, if it is not ipywidgets.
    """

    def __init__(self, instead: str, *, problem: str = "ipywidgets is not installed") -> None:
        self.instead = instead
        MissingExtraError.__init__(
            self, "notebook", "ipywidgets", purpose="show widgets", problem=f"{problem}; {instead}"
        )


class RenderFailed(NotebookError):
    """A renderer ran and failed.

    Args:
        renderer: Its name.
        reason: The first line of its error output, or another cause.
        dot_line: The line of DOT text that the renderer reported, if any.
        fallback: The renderer that was used instead; `None` if there was none.
    """

    def __init__(self, renderer: str, reason: str, *, dot_line: str | None = None, fallback: str | None = None) -> None:
        self.renderer, self.reason, self.dot_line, self.fallback = renderer, reason, dot_line, fallback
        where = "" if dot_line is None else f" The line it complained about: {dot_line}"
        then = "Try another renderer." if fallback is None else f"Drawn with {fallback!r} instead."
        super().__init__(f"The renderer {renderer!r} failed: {reason}.{where} {then}")


class StepperStateError(NotebookError):
    """A stepper cannot perform this `call` in its current `status`; `allowed` lists the calls that are possible."""

    def __init__(self, status: str, allowed: Sequence[str], call: str | None = None) -> None:
        self.status, self.allowed, self.call = status, tuple(allowed), call
        what = "This call" if call is None else f"{call}()"
        calls = [f"{each}()" for each in self.allowed]
        if status == "waiting":
            calls.insert(0, "respond(request_id, answer)")
        instead = f"Calls allowed now: {', '.join(calls)}." if calls else "To start again, call workflow.stepper()."
        super().__init__(f"{what} is not possible while the stepper is {status!r}. {instead}")


class StepperClosed(NotebookError):
    """A stepper is closed and accepts no further calls."""

    def __init__(
        self, message: str = "This stepper is closed. Build a new one: workflow.stepper(), or stepper(workflow)."
    ) -> None:
        super().__init__(message)


class InvalidEdit(NotebookError):
    """An edited value does not fit its `path` in the state; `problem` is the validator's message."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"The edit of {path!r} was rejected: {problem}. The value there is unchanged.")


class MergeError(AgentFrameworkException, ValueError):
    """A file from an editable page was refused; `path` is the file, `reason` says why. Nothing was applied."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"{path!r} cannot be merged: {reason}. Nothing was applied. "
            "Merge a file downloaded from a page that this run saved with `editable=True`."
        )


class RequestAlreadyAnswered(NotebookError, ValueError):
    """A request was answered a second time; `answered_at` is the time of the first answer as text, if known."""

    def __init__(self, request_id: str, answered_at: str | None = None) -> None:
        self.request_id, self.answered_at = request_id, answered_at
        when = "" if answered_at is None else f" at {answered_at}"
        super().__init__(f"Request {request_id!r} was already answered{when}. The first answer counts.")


class RequestExpired(NotebookError, ValueError):
    """An answer arrived after its request had expired; `expired_at` is that time as text, if known."""

    def __init__(self, request_id: str, expired_at: str | None = None) -> None:
        self.request_id, self.expired_at = request_id, expired_at
        when = "" if expired_at is None else f" at {expired_at}"
        super().__init__(
            f"Request {request_id!r} expired{when} before this answer arrived. "
            "Run the workflow again from a checkpoint that comes before it."
        )


class FormInvalid(NotebookError):
    """The value of an invalid form was read; `errors` maps field paths to problems."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        listed = "; ".join(f"{path or 'value'}: {problem.rstrip('.')}" for path, problem in self.errors.items())
        super().__init__(f"The form is not valid. {listed}. The typed text is still in .raw.")


class UnsupportedSchema(NotebookError):
    """A schema has a keyword, at `path`, that no form field supports; raised in strict mode only."""

    def __init__(self, keyword: str, path: str) -> None:
        self.keyword, self.path = keyword, path
        super().__init__(
            f"The schema keyword {keyword!r} at {path or '/'!r} has no form field. "
            "Leave out strict=True to answer it as JSON text."
        )


class WorkflowTextError(NotebookError, ValueError):
    """The text form of a workflow cannot be read, or names an executor that does not exist.

    Args:
        problem: What was expected and what was found.
        line: The line number, counted from 1.
        column: The column in characters, counted from 1.
        source: The line itself; the message marks the column below it.
    """

    def __init__(self, problem: str, *, line: int, column: int, source: str | None = None) -> None:
        self.problem, self.line, self.column, self.source = problem, line, column, source
        message = f"line {line}, column {column}: {problem}."
        if source is not None:
            before = "".join(character if character == "\t" else " " for character in source[: column - 1])
            message += f"\n    {source.rstrip()}\n    {before.ljust(column - 1)}^"
        super().__init__(message)

    def _render_traceback_(self: AgentFrameworkException) -> list[str]:
        """Return the lines that IPython displays: the message, without frames of this library."""
        return f"{type(self).__name__}: {self}".splitlines()


class MagicUsageError(NotebookError, ValueError):
    """The line of a magic has an unknown option, or names a variable that does not exist."""

    _render_traceback_ = WorkflowTextError._render_traceback_


class NestedLoopError(NotebookError, RuntimeError):
    """A blocking call would wait for the thread that it runs on.

    Args:
        call: The call to await instead, such as `Workflow.run`.
        reason: Why the call cannot block; `None` for the usual reason.
    """

    def __init__(self, call: str, reason: str | None = None) -> None:
        self.call, self.reason = call, reason
        why = reason or "a call from the engine thread itself would wait for itself"
        super().__init__(f"Cannot block here: {why}. Write `await {call}(...)` instead.")


class NoBlockingError(NotebookError, RuntimeError):
    """This Python has no threads, so results are only available through `await`; `call` is the call to await."""

    def __init__(self, call: str) -> None:
        self.call = call
        super().__init__(f"Cannot block: this Python has no threads. Write `await {call}(...)` instead.")


__all__ = sorted(
    name
    for name, value in globals().items()
    if isinstance(value, type) and value.__module__ == __name__ and not name.startswith("_")
)
