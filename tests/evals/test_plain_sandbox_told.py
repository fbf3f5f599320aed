"""A plain SandboxFusion as judge: refused before anybody answers, or told wherever its numbers stand."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from command_line import inside
from faulty_server import FaultyServer, chat, http

from rlvrlab.envs.code import shared_judge

ROW = {
    "task_id": "Test/0", "entry_point": "double", "prompt": "def double(x):\n    '''Twice x.'''\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}  # fmt: skip
RIGHT = "```python\ndef double(x):\n    return x * 2\n```"
PLAN = """
name = "base"
[model]
servers = ["{url}"]
[judge]
servers = ["{judge}"]
plain_sandbox = {plain}
[[data]]
name = "mine"
file = "rows.jsonl"
env = "code"
role = "test"
"""


class Sandbox(BaseHTTPRequestHandler):
    """Runs whatever program it is sent, and knows nothing of verdicts."""

    def do_GET(self) -> None:
        self._say("pong")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ran = subprocess.run([sys.executable, "-c", asked["code"]], capture_output=True, text=True, check=False)
        result = {"status": "Finished", "stdout": ran.stdout, "stderr": ran.stderr, "return_code": ran.returncode}
        self._say({"status": "Success" if ran.returncode == 0 else "Failed", "message": "", "run_result": result})

    def _say(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    for name in ("RLVR_JUDGE", "RLVR_JUDGE_PLAIN"):
        monkeypatch.setenv(name, "")  # so that what the command sets is taken back
    shared_judge.close()
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sandbox)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    shared_judge.close()


@pytest.fixture
def run(monkeypatch, capsys, tmp_path: Path):
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


def commands(tmp_path: Path, url: str, judge: str, plain: bool) -> list[list[str]]:
    (tmp_path / "plan.toml").write_text(PLAN.format(url=url, judge=judge, plain=str(plain).lower()))
    flag = ["--plain-sandbox"] if plain else []
    evaluation = ["eval", "code", "path=rows.jsonl", "role_of=test", "--size", "1", "--server", url, "--judge", judge]
    return [[*evaluation, *flag, "-o", "eval"], ["phase0", "plan.toml", "-o", "phase0"]]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("said", [RIGHT, "I do not know."])
def test_without_the_flag_nobody_is_asked(run, tmp_path: Path, sandbox: str, which: int, said: str) -> None:
    with FaultyServer(lambda server, body, n: http(200, chat(said, server.models[0]))) as server:
        done = run(*commands(tmp_path, server.url, sandbox, plain=False)[which])
        assert done.returncode == 1 and "cannot be trusted with tests tasks" in done.stderr, done.stderr
        assert "--plain-sandbox" in done.stderr and server.requests == 0


@pytest.mark.parametrize("which", [0, 1])
def test_with_it_the_weakness_stands_wherever_the_number_does(run, tmp_path: Path, sandbox: str, which: int) -> None:
    with FaultyServer(lambda server, body, n: http(200, chat(RIGHT, server.models[0]))) as server:
        done = run(*commands(tmp_path, server.url, sandbox, plain=True)[which])
    assert done.returncode == 0, done.stderr
    assert "integrity: weak" in " ".join(done.stdout.split()) and "can forge" in done.stdout
    folder = tmp_path / ("eval", "phase0")[which]
    read = {name: (folder / f"{name}.json").read_text() for name in ("metrics", "summary", "run_info")}
    assert '"hack/integrity_weak": 1.0' in read["metrics"] and "integrity: weak" in read["summary"]
    assert "weak: 100.0 % of the verdicts could have been forged" in str(json.loads(read["run_info"])["integrity"])
    assert run("report", folder.name, "-o", "page.html").returncode == 0
    assert "integrity: weak" in (tmp_path / "page.html").read_text()
