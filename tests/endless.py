"""Work that ends only when it is cancelled."""

import asyncio
import threading

WAIT_S = 20.0  # only a bound for a test that hangs; no test depends on its value


async def for_ever(began: threading.Event, ended: threading.Event) -> None:
    began.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()
