"""What tests of pages look at: parts of a stepper, and Playwright's `expect` with patience."""

from __future__ import annotations

from typing import Any


def expect(what: Any) -> Any:
    from playwright.sync_api import expect as real

    real.set_options(timeout=60_000)  # several things may run on this machine
    return real(what)


def header(page: Any) -> Any:
    return page.panel.locator(".abs-header")


def banner(page: Any) -> Any:
    return page.panel.locator(".abs-banner-text")


def node(page: Any, name: str) -> Any:
    return page.panel.locator(f".ab_node[aria-label^='{name}']").first
