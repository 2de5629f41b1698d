"""The program that reports, and the metrics of this library."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, TypedDict

from agentbench._extras import require
from agentbench.observability.instruments import SCOPE
from agentbench.settings import load_settings

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.view import View
    from opentelemetry.sdk.resources import Resource

_SERVICE_NAME: Final = "service.name"
_SERVICE_VERSION: Final = "service.version"


class _ServiceSettings(TypedDict, total=False):
    service_name: str | None
    service_version: str | None


def create_resource(
    service_name: str | None = None,
    service_version: str | None = None,
    *,
    env_file_path: str | os.PathLike[str] | None = None,
    env_file_encoding: str | None = None,
    **attributes: Any,
) -> Resource:
    """Return a description of the program that reports.

    Args:
        service_name: By default `OTEL_SERVICE_NAME`, else `service.name` of `OTEL_RESOURCE_ATTRIBUTES`, else
            `agentbench`.
        service_version: By default `OTEL_SERVICE_VERSION`, if there is one.
        env_file_path: A file with these variables; see `load_settings`.
        env_file_encoding: Of that file.
        **attributes: More facts; underscores in their names become dots.

    Raises:
        MissingExtraError: The OpenTelemetry SDK is not installed.

    Example:
        ```python
        from agentbench.observability import create_resource

        resource = create_resource("orders", deployment_environment="test")
        print(resource.attributes["deployment.environment"])  # test
        ```
    """
    sdk = require("opentelemetry.sdk.resources", extra="otel", purpose="describe the program that reports")
    settings = load_settings(
        _ServiceSettings,
        env_prefix="OTEL_",
        env_file_path=env_file_path,
        env_file_encoding=env_file_encoding,
        service_name=service_name,
        service_version=service_version,
    )
    named = {_SERVICE_NAME: settings["service_name"], _SERVICE_VERSION: settings["service_version"]}
    facts = {name.replace("_", "."): value for name, value in attributes.items()}
    resource: Resource = sdk.Resource.create({**facts, **{name: value for name, value in named.items() if value}})
    if str(resource.attributes.get(_SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(sdk.Resource({_SERVICE_NAME: SCOPE}))
    return resource


def create_metric_views() -> list[View]:
    """Return views that pass on the metrics of this library and of generative models, and drop all others.

    Raises:
        MissingExtraError: The OpenTelemetry SDK is not installed.

    Example:
        ```python
        from agentbench.observability import configure_otel_providers, create_metric_views

        configure_otel_providers(enable_console_exporters=True, views=create_metric_views())
        ```
    """
    sdk = require("opentelemetry.sdk.metrics.view", extra="otel", purpose="choose metrics")
    return [
        sdk.View(instrument_name=f"{SCOPE}*"),
        sdk.View(instrument_name="gen_ai*"),
        sdk.View(instrument_name="*", aggregation=sdk.DropAggregation()),
    ]
