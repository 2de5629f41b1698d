"""The user agent that clients of this library send to services."""

from __future__ import annotations

import os
from typing import Any, Final

from agentbench.observability.instruments import SCOPE, VERSION
from agentbench.settings import read_flag

USER_AGENT_KEY: Final = "User-Agent"
USER_AGENT_TELEMETRY_DISABLED_ENV_VAR: Final = "AGENTBENCH_USER_AGENT_DISABLED"
AGENT_FRAMEWORK_USER_AGENT: Final = f"{SCOPE}-python/{VERSION}"

APP_INFO: dict[str, str] | None
"""The version of the library for services; `None` while the user agent is disabled."""


def __getattr__(name: str) -> Any:
    if name != "APP_INFO":
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(problem)
    return None if _is_disabled() else {f"{SCOPE}-version": f"python/{VERSION}"}


def prepend_agent_framework_to_user_agent(headers: dict[str, Any] | None = None) -> dict[str, Any]:
    """Insert the library's user agent before the one in the headers, for requests of your own client.

    Args:
        headers: The headers, which are changed in place unless `AGENTBENCH_USER_AGENT_DISABLED` is true. By default new
            ones are created.

    Example:
        from agentbench import prepend_agent_framework_to_user_agent

        print(
            prepend_agent_framework_to_user_agent({"User-Agent": "mine/1"})
        )  # {'User-Agent': 'agentbench-... mine/1'}
    """
    headers = {} if headers is None else headers
    if not _is_disabled():
        key = next((name for name in headers if name.lower() == USER_AGENT_KEY.lower()), USER_AGENT_KEY)
        headers[key] = f"{AGENT_FRAMEWORK_USER_AGENT} {headers[key]}" if key in headers else AGENT_FRAMEWORK_USER_AGENT
    return headers


def _is_disabled() -> bool:
    return bool(read_flag(os.environ.get(USER_AGENT_TELEMETRY_DISABLED_ENV_VAR, "")))
