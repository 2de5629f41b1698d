"""Cells of a notebook, run in this process: what a kernel and its front end do for panels, without either.

The cells run one after the other on a thread with an event loop; the page gets what they display over a web socket, and
all that it says reaches the widgets on that thread.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import contextlib
import inspect
import itertools
import json
import linecache
import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

from agentbench.notebook.runtime.one_widget import _SCRIPT, _OneWidget

CELL_S = 120
HTML = Path(__file__).with_name("plain_page.html")
THEMES = Path(sys.prefix, "share/jupyter/lab/themes/@jupyterlab")


class Cells:
    """The cells of one notebook.

    Attributes:
        base: The address of the page that shows them.
        names: The names that they have in common.
        problems: Errors that no cell raised, such as those of the messages of a page.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._module = types.ModuleType("cells")
        self.names = self._module.__dict__
        self.names["display"] = self.display
        self._numbers = itertools.count()
        self._ids = itertools.count()
        self._cell = 0
        self._turn = asyncio.Lock()
        self._widgets: dict[int, _Shown] = {}
        self._panels: list[Any] = []
        self._outputs: dict[object, dict[str, Any]] = {}  # as they are now, for a page that opens later
        self._connections: list[Any] = []
        self._lock = threading.RLock()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, context: self.problems.append(str(context)))

    @contextlib.contextmanager
    def running(self) -> Iterator[Cells]:
        """Serve the page and run cells until the block ends; their widgets are closed then."""
        from websockets.sync.server import serve

        server = serve(self._talk, "127.0.0.1", 0, process_request=_page, max_size=None, compression=None)
        self.base = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        threads = [
            threading.Thread(target=work, daemon=True) for work in (server.serve_forever, self._loop.run_forever)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "cells", self._module)
            patch.setattr("IPython.display.display", self.display)
            for thread in threads:
                thread.start()
            try:
                yield self
            finally:
                asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(CELL_S)
                server.shutdown()
                self._loop.call_soon_threadsafe(self._loop.stop)
                for thread in threads:
                    thread.join(CELL_S)
                self._loop.close()

    def start(self, source: str) -> Future[int]:
        """Run a cell after those before it; its number."""
        return asyncio.run_coroutine_threadsafe(self._run(source, next(self._numbers)), self._loop)

    def display(self, *values: Any, display_id: bool = False) -> _Handle | None:
        """Show values below the cell that runs, as IPython does."""
        for value in values:
            self._show(value, next(self._ids))
        return _Handle(self, next(reversed(self._outputs))) if display_id else None

    async def _run(self, source: str, number: int) -> int:
        async with self._turn:
            self._cell = number
            await self._execute(source, number)
        return number

    async def _execute(self, source: str, number: int) -> None:
        self._send({"kind": "output", "cell": number}, key=("cell", number))
        name = f"<cell {number} of {id(self)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        await self._evaluate(compile(tree, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        if not isinstance(last, ast.Expr):
            return
        shown = ast.Expression(last.value)
        value = await self._evaluate(compile(shown, name, "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        if value is not None:
            self.display(value)

    async def _evaluate(self, code: types.CodeType) -> Any:
        value = eval(code, self.names)
        return await value if code.co_flags & inspect.CO_COROUTINE else value

    def _show(self, value: Any, output: int) -> None:
        said: dict[str, Any] = {"kind": "output", "cell": self._cell, "id": output}
        root = getattr(value, "widget", value)
        if isinstance(root, ipywidgets.Widget):
            said["model"] = id(root)
            self._panels.append(value)
            if id(root) not in self._widgets:
                self._widgets[id(root)] = _Shown(self, root)
        elif isinstance(value, str):
            said["text"] = value
        elif hasattr(type(value), "_ipython_display_"):
            value._ipython_display_()
            return
        else:
            said |= _picture(value)
        self._send(said, key=output)

    def _send(self, said: dict[str, Any], buffers: list[Any] | None = None, key: object = None) -> None:
        """Tell all pages; what has a key is told to those that come later too."""
        with self._lock:
            if key is not None:
                self._outputs[key] = said
            for connection in self._connections:
                _tell(connection, said, buffers or [])

    def _talk(self, connection: Any) -> None:
        with self._lock:
            self._connections.append(connection)
            for said in self._outputs.values():
                _tell(connection, said, [])
        heard: dict[str, Any] = {}
        buffers: list[memoryview] = []
        for each in connection:
            if isinstance(each, str):
                heard, buffers = json.loads(each), []
            else:
                buffers.append(memoryview(each))
            if len(buffers) == heard["buffers"]:
                self._loop.call_soon_threadsafe(self._hear, heard, buffers)
        with self._lock:
            self._connections.remove(connection)

    def _hear(self, said: dict[str, Any], buffers: list[memoryview]) -> None:
        if (widget := self._widgets.get(said["model"])) is not None:
            widget._handle_custom_msg(said["content"], buffers)

    def _closed(self, root: Any) -> None:
        self._widgets.pop(id(root), None)
        with self._lock:
            for key in [key for key, said in self._outputs.items() if said.get("model") == id(root)]:
                del self._outputs[key]
        self._send({"kind": "closed", "model": id(root)})

    async def _end(self) -> None:
        for panel in self._panels:
            panel.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class _Shown(_OneWidget):
    """A panel as one widget; the cells carry its messages."""

    def __init__(self, cells: Cells, root: Any) -> None:
        self._cells, self.root = cells, root
        super().__init__(root, name="Panel")

    def send(self, content: Any, buffers: Any = None) -> None:
        told = {"kind": "told", "model": id(self.root), "content": content, "buffers": len(buffers or ())}
        self._cells._send(told, list(buffers or ()))

    def close(self) -> None:
        super().close()
        self._cells._closed(self.root)


class _Handle:
    """What `display(..., display_id=True)` returns."""

    def __init__(self, cells: Cells, output: Any) -> None:
        self._cells, self._output = cells, output

    def update(self, text: str) -> None:
        self._cells._send({**self._cells._outputs[self._output], "text": text}, key=self._output)


def _picture(value: Any) -> dict[str, str]:
    """What JupyterLab would show of a value."""
    from IPython.core.formatters import DisplayFormatter

    bundle, _ = DisplayFormatter().format(value)
    if "image/svg+xml" in bundle:
        encoded = base64.b64encode(bundle["image/svg+xml"].encode()).decode()
        return {"image": f"data:image/svg+xml;base64,{encoded}"}
    return {"html": bundle["text/html"]} if "text/html" in bundle else {"text": bundle["text/plain"]}


def _tell(connection: Any, said: dict[str, Any], buffers: list[Any]) -> None:
    from websockets.exceptions import ConnectionClosed

    with contextlib.suppress(ConnectionClosed):
        connection.send(json.dumps(said))
        for each in buffers:
            connection.send(bytes(each))


def _page(connection: Any, request: Any) -> Any:
    """Serve the page; `None` begins a web socket."""
    if request.path == "/cells":
        return None
    text = HTML.read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        sheet = (THEMES / f"theme-{theme}-extension" / "index.css").read_text(encoding="utf-8")
        text = text.replace(f"THEME_{theme.upper()}", sheet)
    script = base64.b64encode(_SCRIPT.read_bytes()).decode()
    response = connection.respond(200, text.replace("ONE_WIDGET", f"data:text/javascript;base64,{script}"))
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    return response
