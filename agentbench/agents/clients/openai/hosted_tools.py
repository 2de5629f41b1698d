"""Specifications of hosted tools, which the service runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.agents.tools.function_tool import ApprovalMode, FunctionTool
from agentbench.agents.tools.signature import check_name


class LocalShell(FunctionTool):
    """A function that runs commands locally and is offered to the model as its shell."""

    def to_json_schema_spec(self) -> dict[str, Any]:
        """Return the declaration for the Responses API."""
        return {"type": "shell", "environment": {"type": "local"}}

    def arguments_of(self, commands: list[str]) -> dict[str, Any]:
        """Return the function's arguments: a list if its first parameter accepts one, else the lines of a text."""
        for name, schema in (self.parameters().get("properties") or {}).items():
            return {name: commands if schema.get("type") == "array" else "\n".join(commands)}
        return {}


def find_shell(tools: Any) -> LocalShell | None:
    """Return the local shell in tools, if any."""
    several = tools if isinstance(tools, Iterable) and not isinstance(tools, Mapping) else [tools]
    return next((tool for tool in several if isinstance(tool, LocalShell)), None)


def _specification(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **{name: value for name, value in fields.items() if value is not None}}


class WebSearchTool:
    """Provides web search."""

    @staticmethod
    def get_web_search_tool(
        *, user_location: Mapping[str, Any] | None = None, search_context_size: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return a web search tool for `tools`.

        Args:
            user_location: Location of the user: `city`, `country`, `region`, `timezone`.
            search_context_size: How much of the results the model reads: `low`, `medium`, `high`.
            **more: Additional fields, such as `filters`.
        """
        location = None if user_location is None else {"type": "approximate", **user_location}
        return _specification("web_search", user_location=location, search_context_size=search_context_size, **more)


class HostedTools(WebSearchTool):
    """Provides the hosted tools of the Responses API."""

    @staticmethod
    def get_code_interpreter_tool(
        *, file_ids: Sequence[str] | None = None, container: str | Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return a code interpreter for `tools`.

        Args:
            file_ids: Files that are available at the start.
            container: Id of an existing container, or the description of one.
            **more: Additional fields.
        """
        place = container if container is not None else _specification("auto", file_ids=file_ids and list(file_ids))
        return _specification("code_interpreter", container=place, **more)

    @staticmethod
    def get_shell_tool(
        *,
        func: Callable[..., Any] | FunctionTool | None = None,
        environment: str | Mapping[str, Any] = "auto",
        name: str | None = None,
        description: str | None = None,
        approval_mode: ApprovalMode | None = None,
    ) -> dict[str, Any] | FunctionTool:
        """Return a shell for `tools`: hosted by the service or, with `func`, running commands locally.

        Args:
            func: Runs the commands: gets a text with one command per line, or a list if its first parameter is one.
            environment: The environment in which the service runs commands; `auto` means a new container.
            name: Name of the tool; by default the function's.
            description: Description of the tool; by default the function's.
            approval_mode: `always_require`: a person has to approve each call of the function.

        Raises:
            ValueError: `environment` has the type `local` without a function, or is passed together with a function.
        """
        if func is None:
            place = {"type": "container_auto"} if environment == "auto" else environment
            if not isinstance(place, Mapping) or place.get("type") == "local":
                message = (
                    f"environment={environment!r} is not an environment of the service. Expected 'auto' or a "
                    "mapping such as {'type': 'container_auto'}; to run commands locally, pass func=..."
                )
                raise ValueError(message)
            return _specification("shell", environment=dict(place))
        if environment != "auto":
            message = "Pass either environment=... (the service runs commands) or func=... (commands run locally)."
            raise ValueError(message)
        tool = func if isinstance(func, FunctionTool) else FunctionTool(func, approval_mode=approval_mode, kind="shell")
        shell = copy.copy(tool)
        shell.__class__ = LocalShell
        shell.name = check_name(name) if name else tool.name
        shell.description = description or tool.description
        shell.approval_mode = approval_mode or tool.approval_mode
        return shell

    @staticmethod
    def get_image_generation_tool(**more: Any) -> dict[str, Any]:
        """Return an image generation tool for `tools`, with fields such as `size`, `quality` and `model`."""
        return _specification("image_generation", **more)

    @staticmethod
    def get_mcp_tool(
        *,
        name: str,
        url: str | None = None,
        description: str | None = None,
        approval_mode: str | Mapping[str, Any] | None = None,
        allowed_tools: Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the tools of an MCP server, called by the service, for `tools`.

        Args:
            name: Name of the server in answers.
            url: URL of the server.
            description: Purpose of the server.
            approval_mode: `always_require`, `never_require`, or lists of tools under these two names.
            allowed_tools: Tools that may be called; `None` means all.
            headers: Headers that are sent to the server with every call.
            **more: Additional fields, such as `connector_id`.
        """
        return _specification(
            "mcp",
            server_label=name.replace(" ", "_"),
            server_url=url,
            server_description=description,
            require_approval=_approval(approval_mode),
            allowed_tools=None if allowed_tools is None else list(allowed_tools),
            headers=None if headers is None else dict(headers),
            **more,
        )

    @staticmethod
    def get_file_search_tool(
        *, vector_store_ids: Sequence[str], max_num_results: int | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return a file search tool for `tools`.

        Args:
            vector_store_ids: Vector stores to search.
            max_num_results: Maximum number of results.
            **more: Additional fields, such as `filters` and `ranking_options`.
        """
        stores = [vector_store_ids] if isinstance(vector_store_ids, str) else list(vector_store_ids)
        return _specification("file_search", vector_store_ids=stores, max_num_results=max_num_results, **more)


def _approval(mode: str | Mapping[str, Any] | None) -> Any:
    names = {"always_require": "always", "never_require": "never"}
    if mode is None or isinstance(mode, str):
        return names.get(mode or "", mode)
    keys = {"always_require_approval": "always", "never_require_approval": "never", **names}
    return {keys.get(key, key): {"tool_names": sorted(tools)} for key, tools in mode.items()}
