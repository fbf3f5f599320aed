"""The HTML page of a gathered document."""

from rlvrlab.report.page.html_page import Live, digest, page, policy, script, style

__all__ = ["Live", "digest", "page", "policy", "script", "style"]
