"""The thread of a storage."""

from __future__ import annotations

import threading

from agentbench.checkpoints.parts.worker import Worker


def test_what_is_handed_over_while_the_worker_is_closed_waits_for_what_came_before() -> None:
    worker, done = Worker("test"), []
    started, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        may_end.wait()
        done.append("before")

    worker.submit(hold)
    started.wait()
    closing = threading.Thread(target=worker.close)
    closing.start()
    while worker._pool is not None:
        pass
    after = worker.submit(done.append, "after")
    may_end.set()
    closing.join()
    after.result()
    worker.close()
    assert done == ["before", "after"]
