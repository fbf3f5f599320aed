"""A page in the browser, with everything that goes wrong on it."""

from __future__ import annotations

import json
from typing import Any


class Shown:
    """A page in the browser, with everything it complained about."""

    def __init__(self, browser: Any, width: int = 1280, dark: bool = False) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))

    def _asked(self, url: str) -> None:
        if not url.startswith(("file:", "blob:", "http://127.0.0.1")):
            self.complaints.append(f"asked the network for {url}")

    def open(self, address: str) -> Any:
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)
        return self.page

    def failed(self) -> list[str]:
        return [*self.complaints, *json.loads(self.page.evaluate("JSON.stringify(rlvr.failed)"))]
