"""A server for one live page whose news a test hands out one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(
    html: str, document: str, news: list[str], asked: threading.Event, fetched: list[str] | None = None
) -> Iterator[str]:
    """A server that sends its news when asked to; `fetched` collects what was asked of it."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if self.path == "/events":
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b": hello\n\n")
                self.wfile.flush()
                while asked.wait(60) and news:
                    asked.clear()
                    self.wfile.write(f"{news.pop(0)}\n\n".encode())
                    self.wfile.flush()
                return
            if fetched is not None:
                fetched.append(self.path)
            kind, body = ("text/html", html) if self.path == "/" else ("application/json", document)
            self.send_header("content-type", f"{kind}; charset=utf-8")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        news.clear()
        asked.set()
        server.shutdown()
        server.server_close()
        thread.join()
