"""Requests of the SDK by the browser's fetch, because Python in a browser has no sockets.

The transports for browsers that the SDK's HTTP library may have are not used: they limit the time until an answer
begins by the timeout for connecting, and do not end the request of a stream that is closed.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from typing import Any

# What only describes the SDK. A service must allow each header of a page's request, and few allow these.
_OF_THE_SDK = ("user-agent", "x-stainless-")
# The browser has already decoded the body.
_OF_THE_BODY = ("content-encoding", "content-length")
_LONGEST_MS = 2**31 - 1  # of a browser's timer


class _Page:
    """Waits for the page, whose errors become those of the SDK's HTTP library."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.js, self._ffi = importlib.import_module("js"), importlib.import_module("pyodide.ffi")

    def fetch(self, url: str, options: dict[str, Any]) -> Any:
        return self.js.fetch(url, self._ffi.to_js(options, dict_converter=self.js.Object.fromEntries))

    async def wait(self, promise: Any, abort: Any, timeout_s: float | None) -> Any:
        """Await a promise; the request ends with the wait if it takes too long, fails or is cancelled."""
        # Not a timer of asyncio: under Pyodide a cancelled one stays until its time, and each piece has one.
        late = abort.abort.bind(abort, self.js.DOMException.new("", "TimeoutError"))
        timer = None if timeout_s is None else self.js.setTimeout(late, min(timeout_s * 1000, _LONGEST_MS))
        try:
            return await promise
        except self._ffi.JsException as error:
            failed = self.library.ReadTimeout if error.name == "TimeoutError" else self.library.NetworkError
            raise failed(str(error)) from error
        except BaseException:
            abort.abort()
            raise
        finally:
            self.js.clearTimeout(timer)


def fetching_client(sdk: Any) -> Any:
    """Return an HTTP client for the SDK, of the library that it uses: httpx, or httpx2 since version 3."""
    library: Any = importlib.import_module(sdk.DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0])
    page = _Page(library)

    class Body(library.AsyncByteStream):  # type: ignore[misc]
        """The body of an answer, in the pieces that arrive; `aclose` ends the request."""

        def __init__(self, reader: Any, abort: Any, timeout_s: float | None) -> None:
            self._reader, self._abort, self._timeout_s = reader, abort, timeout_s

        async def __aiter__(self) -> AsyncIterator[bytes]:
            while not (piece := await page.wait(self._reader.read(), self._abort, self._timeout_s)).done:
                yield piece.value.to_bytes()

        async def aclose(self) -> None:
            self._abort.abort()

    class Transport(library.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            headers = {name: value for name, value in request.headers.items() if not name.startswith(_OF_THE_SDK)}
            abort, timeout_s = page.js.AbortController.new(), request.extensions.get("timeout", {}).get("read")
            options = {"method": request.method, "headers": headers, "credentials": "omit", "signal": abort.signal}
            if content := await request.aread():
                options["body"] = content
            answer = await page.wait(page.fetch(str(request.url), options), abort, timeout_s)
            received = {str(name): str(value) for name, value in answer.headers if name not in _OF_THE_BODY}
            body = None if answer.body is None else Body(answer.body.getReader(), abort, timeout_s)
            return library.Response(answer.status, headers=received, stream=body)

    return sdk.DefaultAsyncHttpxClient(transport=Transport())
