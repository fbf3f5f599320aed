"""The page of a study, which is there when the study ends."""

from __future__ import annotations

from pathlib import Path

from rlvrlab.errors import UserError
from rlvrlab.record.experiment import REPORT_PAGE
from rlvrlab.report.page_file import write_page
from rlvrlab.report.reading import short


def try_page(folder: Path) -> str:
    """Write the study's page (`rlvr report`) from what lies in its folder; in words why there is none, else nothing.

    Decisions and tables are written by then, so a page that cannot be drawn costs no study.
    """
    try:
        write_page(folder)
    except Exception as error:
        why = str(error) if isinstance(error, UserError) else short(error)
        return f"{folder / REPORT_PAGE}: could not be made ({why}); `rlvr report` tries again"
    return ""
