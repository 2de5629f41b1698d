"""Find the frames of user code, so that warnings name its line and tracebacks in notebooks omit library frames."""

from __future__ import annotations

import os
import site
import sys
import warnings
from functools import lru_cache
from types import FrameType, TracebackType
from typing import Any

FULL_TRACEBACK = "AGENTBENCH_FULL_TRACEBACK"


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn every time, not once per line, so that a cell that runs again shows the warnings of its last run."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - `warnings` uses it as well
    while frame is not None and is_library(frame):
        frame = frame.f_back
    file, line, module = "agentbench", 1, None  # used on a thread without user code
    if frame is not None:
        file, line, module = frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
    warnings.warn_explicit(
        text, category, file, line, module or file, registry={}
    )  # Python does not display a warning without a module


def caller_of_library() -> FrameType:
    """Return the frame that called a function of this library."""
    frame: FrameType = sys._getframe(1)  # noqa: SLF001 - inspect.stack() would read every source file
    while _is_ours(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def cut_to_user(error: BaseException) -> None:
    """Remove the library's frames from the traceback of an interrupt, down to the first frame of the user."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame):
        trace = trace.tb_next
    error.__traceback__ = trace


def shorten_tracebacks(error: BaseException) -> None:
    """Remove frames of this library and of packages it calls from the traceback of an error and of its causes."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _without_library(current.__traceback__)
        pending += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]


def _without_library(trace: TracebackType | None) -> TracebackType | None:
    user_traces: list[TracebackType] = []
    in_library = False
    while trace is not None:
        in_library = _is_ours(trace.tb_frame) or (in_library and _is_installed(trace.tb_frame.f_code.co_filename))
        if not in_library:
            user_traces.append(trace)
        trace = trace.tb_next
    shortened: TracebackType | None = None
    for user_trace in reversed(user_traces):
        shortened = TracebackType(shortened, user_trace.tb_frame, user_trace.tb_lasti, user_trace.tb_lineno)
    return shortened


def is_library(frame: FrameType) -> bool:
    """Return whether a frame belongs to this library, Python or an installed package, and not to the user's code."""
    return _is_ours(frame) or _is_installed(frame.f_code.co_filename)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "agentbench"


@lru_cache(maxsize=1024)
def _is_installed(file: str) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    return file.startswith(("<frozen", *_installation_folders()))


@lru_cache(maxsize=1)
def _installation_folders() -> tuple[str, ...]:
    folders = {os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages()}
    return tuple(folder + os.sep for folder in folders if folder)  # Pyodide has one that is None


def shorten_in_notebooks() -> None:
    """Display tracebacks in this IPython without library frames; AGENTBENCH_FULL_TRACEBACK=1 displays them all.

    An exception handler that the user has set is kept.
    """
    shell: Any = sys.modules["IPython"].get_ipython()
    if shell is None or shell.custom_exceptions or os.environ.get(FULL_TRACEBACK, "0") not in ("", "0"):
        return
    shell.set_custom_exc((Exception,), _show)


def _show(
    shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: int | None = None
) -> None:
    if os.environ.get(FULL_TRACEBACK, "0") in ("", "0"):
        shorten_tracebacks(error)
        trace = error.__traceback__
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)
