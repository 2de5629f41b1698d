"""What axe-core finds wrong with a part of a page; the script lies in a package, nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Of these levels nothing is accepted; the two below them are advice.
NOT_ACCEPTED = ("serious", "critical")

RUN = """
async ([selectors, without]) => {
  const rules = Object.fromEntries(without.map(rule => [rule, {enabled: false}]));
  const context = {include: selectors.map(each => [each])};
  return (await axe.run(context, {resultTypes: ['violations'], rules})).violations;
}
"""


def violations(page: Any, *selectors: str, without: Sequence[str] = ()) -> list[str]:
    """What is wrong with these parts of a page, a line for each element: rule, element, what to do.

    Args:
        page: Playwright's page.
        selectors: CSS selectors of the parts; each must be there.
        without: Rules that are not asked about.
    """
    from axe_playwright_python.base import AXE_SCRIPT

    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    for selector in selectors:
        assert page.locator(selector).count(), f"nothing on the page fits {selector}"
    return [
        f"{found['id']} ({found['impact']}): {place['html'][:300]} {place['failureSummary']}"
        for found in page.evaluate(RUN, [selectors, without])
        if found["impact"] in NOT_ACCEPTED
        for place in found["nodes"]
    ]
