"""Accessibility findings of a page, by the axe rules of WCAG 2.2 AA."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "resultTypes": ["violations"]}
# (rule, part of the selector, why it is not ours to mend)
STREAMLITS: tuple[tuple[str, str, str], ...] = ()


def findings(page: Page) -> list[str]:
    """Serious and critical findings, one line each, without those that are Streamlit's."""
    lines = []
    for rule in Axe().run(page, options=RULES).response["violations"]:
        if rule["impact"] not in ("serious", "critical"):
            continue
        for node in rule["nodes"]:
            where = " ".join(" >> ".join(one) if isinstance(one, list) else one for one in node["target"])
            if not any(rule["id"] == known and part in where for known, part, _ in STREAMLITS):
                said = "; ".join(one["message"] for one in node["any"] + node["all"] + node["none"])
                lines.append(f"{rule['id']} ({rule['impact']}): {where}\n    {node['html'][:200]}\n    {said}")
    return lines
