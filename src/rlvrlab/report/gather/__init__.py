"""Gathers what a folder holds into one plain-JSON document; document.py describes its shape."""

from rlvrlab.report.gather.document import Document, gather

__all__ = ["Document", "gather"]
