"""Tools that the service itself runs, as the specifications that requests carry."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.agents.tools.function_tool import ApprovalMode, FunctionTool
from agentbench.agents.tools.signature import check_name


class LocalShell(FunctionTool):
    """A function that runs commands here, which the model knows as its shell."""

    def to_json_schema_spec(self) -> dict[str, Any]:
        """Return the declaration for the Responses API."""
        return {"type": "shell", "environment": {"type": "local"}}

    def arguments_of(self, commands: list[str]) -> dict[str, Any]:
        """Return the arguments for commands: a list if the first parameter takes one, else lines of a text."""
        for name, schema in (self.parameters().get("properties") or {}).items():
            return {name: commands if schema.get("type") == "array" else "\n".join(commands)}
        return {}


def find_shell(tools: Any) -> LocalShell | None:
    """Return the local shell among tools."""
    several = tools if isinstance(tools, Iterable) and not isinstance(tools, Mapping) else [tools]
    return next((tool for tool in several if isinstance(tool, LocalShell)), None)


def _specification(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **{name: value for name, value in fields.items() if value is not None}}


class WebSearchTool:
    """Has a search in the web."""

    @staticmethod
    def get_web_search_tool(
        *, user_location: Mapping[str, Any] | None = None, search_context_size: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return a search in the web, as an entry for `tools`.

        Args:
            user_location: Where the user is: `city`, `country`, `region`, `timezone`.
            search_context_size: How much of what is found the model reads: `low`, `medium`, `high`.
            **more: Further fields, such as `filters`.
        """
        location = None if user_location is None else {"type": "approximate", **user_location}
        return _specification("web_search", user_location=location, search_context_size=search_context_size, **more)


class HostedTools(WebSearchTool):
    """Has the tools that the Responses API runs itself."""

    @staticmethod
    def get_code_interpreter_tool(
        *, file_ids: Sequence[str] | None = None, container: str | Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return a place where the model runs code, as an entry for `tools`.

        Args:
            file_ids: Files that are there when it starts.
            container: A place that there is already, or its description.
            **more: Further fields.
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
        """Return a shell, as an entry for `tools`: of the service, or with `func` one whose commands run here.

        Args:
            func: Runs commands: it gets a text with a line for each, or a list if its first parameter takes one.
            environment: Describes the place where the service runs commands; `auto`: a new container.
            name: Of the function, in place of its own.
            description: Of the function, in place of its own.
            approval_mode: `always_require`: a person has to agree to each call of the function.

        Raises:
            ValueError: `environment` is of type `local` without a function, or describes a place beside one.
        """
        if func is None:
            place = {"type": "container_auto"} if environment == "auto" else environment
            if not isinstance(place, Mapping) or place.get("type") == "local":
                message = (
                    f"environment={environment!r} is no place where the service runs commands. Expected 'auto' or a "
                    "mapping such as {'type': 'container_auto'}; to run them here, pass func=..."
                )
                raise ValueError(message)
            return _specification("shell", environment=dict(place))
        if environment != "auto":
            message = "environment=... says where the service runs commands, and func=... runs them here. Pass one."
            raise ValueError(message)
        own = func if isinstance(func, FunctionTool) else FunctionTool(func, approval_mode=approval_mode, kind="shell")
        shell = copy.copy(own)
        shell.__class__ = LocalShell
        shell.name = check_name(name) if name else own.name
        shell.description = description or own.description
        shell.approval_mode = approval_mode or own.approval_mode
        return shell

    @staticmethod
    def get_image_generation_tool(**more: Any) -> dict[str, Any]:
        """Return a tool that draws, with fields such as `size`, `quality` and `model`, as an entry for `tools`."""
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
        """Return the tools of an MCP server that the service calls, as an entry for `tools`.

        Args:
            name: How the server is called in answers.
            url: Its address.
            description: What it is for.
            approval_mode: `always_require`, `never_require`, or lists of tools under these two names.
            allowed_tools: The tools that may be called; `None`: all.
            headers: Sent to the server with every call.
            **more: Further fields, such as `connector_id`.
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
        """Return a search in stored files, as an entry for `tools`.

        Args:
            vector_store_ids: Where to search.
            max_num_results: How many places to find.
            **more: Further fields, such as `filters` and `ranking_options`.
        """
        stores = [vector_store_ids] if isinstance(vector_store_ids, str) else list(vector_store_ids)
        return _specification("file_search", vector_store_ids=stores, max_num_results=max_num_results, **more)


def _approval(mode: str | Mapping[str, Any] | None) -> Any:
    names = {"always_require": "always", "never_require": "never"}
    if mode is None or isinstance(mode, str):
        return names.get(mode or "", mode)
    keys = {"always_require_approval": "always", "never_require_approval": "never", **names}
    return {keys.get(key, key): {"tool_names": sorted(tools)} for key, tools in mode.items()}
