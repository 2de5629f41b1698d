"""Serve a site on this machine."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agentbench.exceptions import SiteError


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # the page makes some 300 requests; they share connections
    # Browsers refuse modules and WebAssembly with another type, and Windows' registry may name another.
    extensions_map = {  # noqa: RUF012 - declared by the base class
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the base class
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the browser closed a connection that it no longer needed


def make_server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the files in a folder that only this machine can reach; port 0 means any free one.

    Raises:
        SiteError: The port is in use.
    """
    try:
        return _Server(("127.0.0.1", port), functools.partial(_Handler, directory=str(folder.resolve())))
    except OSError as error:
        problem = f"Port {port} cannot be used: {error.strerror}"
        raise SiteError(problem, "Pass another --port.") from error
