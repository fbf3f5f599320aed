"""The HTML page of a gathered document."""

from rlvrlab.report.page.html_page import Live, page, policy, script, style

__all__ = ["Live", "page", "policy", "script", "style"]
