"""rlvr phase0: one file, one command, one folder; killed, it goes on."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import RLVR, inside, rlvr, tiny
from faulty_server import FaultyServer, chat, http

from rlvrlab.envs.code import shared_judge
from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import UserError
from rlvrlab.evals.suites.joint import begin
from rlvrlab.record.files import read_lines
from rlvrlab.registry import register

ENV = Countdown(numbers=(2,), high=30, style="bare")
PLAN = """
name = "base"
sinks = []

[model]
servers = ["{url}"]
system_prompt = "Be brief."

[protocol]
names = ["@1", "@k"]
n = 2
max_tokens = 16

[[data]]
name = "countdown"
size = 12
keys = {{numbers = [2], high = 30, style = "bare"}}

[[data]]
name = "mine"
file = "mine.jsonl"
env = "answers"
keys = {{matcher = "number"}}
role = "test"
template = "Answer with a number.\\n{{prompt}}"
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path: Path):
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


def plan_in(folder: Path, url: str, **changes: str) -> Path:
    rows = [{"question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(5)]
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = PLAN.format(url=url)
    for before, after in changes.items():
        text = text.replace(before, after)
    (folder / "plan.toml").write_text(text)
    return folder / "plan.toml"


def solver(server: FaultyServer, body, number: int) -> bytes:
    """Right for even targets of countdown, and for every sum."""
    system, user = (message["content"] for message in body["messages"])
    assert system == "Be brief."
    if user.startswith("Answer with a number.\n"):
        sum_of = re.search(r"What is (\d+) \+ 1", user)
        return http(200, chat(f"<answer>{int(sum_of[1]) + 1}</answer>", server.models[0]))
    known = {p.prompt: ENV.gold(p) for p in ENV.problems("test", 40, 0) if p.reference["target"] % 2 == 0}
    return http(200, chat(known.get(user) or "1+1", server.models[0]))


def test_one_command_gives_one_folder_with_everything(run, tmp_path: Path) -> None:
    seen: dict[str, float] = {}

    @register("sink", "phase0_test_sink")
    @dataclass(frozen=True)
    class Keeps:
        def open(self, folder, name, config) -> None:
            assert config["plan"]["model"]["system_prompt"] == "Be brief."

        def log(self, step, metrics) -> None:
            seen.update(metrics)

        def close(self) -> None: ...

    with FaultyServer(solver) as server:
        plan_in(tmp_path, server.url, **{"sinks = []": 'sinks = ["phase0_test_sink"]'})
        planned = json.loads(run("phase0", "plan.toml", "--plan", "--json").stdout)
        assert server.requests == 0 and [row["data"] for row in planned["data"]] == [
            "countdown", "countdown@k", "mine", "mine@k",
        ]  # fmt: skip
        done = run("phase0", "plan.toml", "-o", "out")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "out"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["mine"]["accepted_at_1"] == 1.0 and metrics["mine@k"]["pass@2"] == 1.0
    even = sum(p.reference["target"] % 2 == 0 for p in ENV.problems("test", 12, 0))
    assert metrics["countdown"]["accepted_at_1"] == pytest.approx(even / 12)
    info = json.loads((folder / "run_info.json").read_text())
    assert info["status"] == "finished" and info["answered_by"]["model"] == "m"
    assert info["answered_by"]["system_prompt"] == "Be brief."
    assert info["plan"]["protocol"]["max_tokens"] == 16
    assert json.loads((folder / "summary.json").read_text())["table"]["mine"]["unjudged"] == 0
    assert {path.name for path in (folder / "qa_logs").iterdir()} >= {"countdown_qa.jsonl", "qa_summary.json"}
    page = (folder / "report.html").read_text()
    assert "accepted@1" in page and "countdown@k" in page
    assert seen["eval/mine/accepted_at_1"] == 1.0 and "eval/countdown@k/pass@2" in seen
    shown = run("report", "out")
    assert shown.returncode == 0 and "suite out" in shown.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({'name = "countdown"': 'name = "countdwn"'}, "did you mean 'countdown'"),
        ({"max_tokens = 16": "max_token = 16"}, "did you mean 'max_tokens'"),
        ({'env = "answers"': ""}, "which environment judges the file"),
        ({'file = "mine.jsonl"': 'file = "gone.jsonl"'}, "gone.jsonl"),
        ({"[protocol]": 'run = "experiments/x"\n[protocol]'}, "one of serve, servers and run"),
        ({"{prompt}": "prompt"}, "must hold {prompt} once"),
        ({'name = "mine"': 'name = "countdown"'}, "two are named 'countdown'"),
        (
            {'"@k"]': '"@budget"]'},
            'plan.toml: protocol: protocol @budget needs budget: write budget = "tokens=2000", judge_s',
        ),
        ({"n = 2\n": "n = 2\ntries = 2\n"}, "data.countdown: environment 'countdown' gives no feedback"),
        ({"n = 2\n": "n = 2\nk = [4]\n"}, "plan.toml: protocol.k: 4 of n = 2 answers; allowed: 1 to 2"),
        ({"n = 2\n": 'n = 2\nbudget = "tokens=100"\n'}, "protocol.budget: none of @1, @k takes it"),
        ({'"@k"]': '"@1"]'}, "protocol.names: @1, @1: each protocol once"),
        ({'name = "mine"': 'name = "countdown_"'}, "would be one folder, evaluations/countdown"),
        ({'servers = ["http://127.0.0.1:9"]': 'servers = ["nowhere"]'}, "model.servers: server 'nowhere'"),
        ({"system_prompt": "replicas = 2\nsystem_prompt"}, "model.replicas: means nothing here"),
        ({"system_prompt": "completions = true\nsystem_prompt"}, "model.system_prompt: needs a chat template"),
        ({'servers = ["http://127.0.0.1:9"]': 'serve = "./nowhere"'}, "model.serve: ./nowhere: no such folder"),
        (
            {'servers = ["http://127.0.0.1:9"]': 'serve = "nano"', "max_tokens = 16": "max_tokens = 2040"},
            "and an answer of 2040 do not fit the model's window of 2048",
        ),
        ({"sinks = []": 'sinks = ["tensorboard"]'}, "sinks: tensorboard needs `pip install 'rlvrlab[tensorboard]'`"),
    ],
)
@pytest.mark.parametrize("words", [["-o", "out"], ["--plan"]])
def test_mistakes_are_found_before_anybody_is_asked(
    run, monkeypatch, tmp_path: Path, change: dict[str, str], said: str, words: list[str]
) -> None:
    monkeypatch.setattr("rlvrlab.record.sinks.base.find_spec", lambda name: None)
    plan_in(tmp_path, "http://127.0.0.1:9", **change)
    done = run("phase0", "plan.toml", *words)
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "out").exists(), done.stderr


def test_a_place_that_cannot_be_made_is_the_plans_mistake(run, tmp_path: Path) -> None:
    plan_in(tmp_path, "http://127.0.0.1:9", **{'name = "base"': 'name = "base"\noutput = "mine.jsonl"'})
    done = run("phase0", "plan.toml")
    assert done.returncode == 2 and "cannot be made (Not a directory); choose another --output" in done.stderr


@pytest.fixture
def no_judge() -> Iterator[None]:
    """The judge of an earlier test would answer here, and the one of this test in later ones."""
    shared_judge.close()
    yield
    shared_judge.close()


@pytest.mark.usefixtures("no_judge")
def test_a_judge_that_is_not_there_is_found_before_a_server_is_started(run, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLVR_JUDGE_WAIT_S", "1")
    for name in ("RLVR_JUDGE", "RLVR_JUDGE_PLAIN"):
        monkeypatch.setenv(name, "")  # and taken back afterwards
    monkeypatch.setattr("rlvrlab.engines.openai.launch.Fleet.__enter__", lambda fleet: pytest.fail("was started"))
    code = {'name = "countdown"': 'name = "mini"\nenv = "minicode"', 'numbers = [2], high = 30, style = "bare"': "",
            "[protocol]": '[judge]\nservers = ["http://127.0.0.1:9"]\n[protocol]',
            'servers = ["http://127.0.0.1:8"]': 'serve = "nano"\nbackend = "embedded"'}  # fmt: skip
    plan_in(tmp_path, "http://127.0.0.1:8", **code)
    done = run("phase0", "plan.toml", "-o", "out")
    assert done.returncode == 1 and "judge.servers: no judge server has answered" in done.stderr, done.stderr


def test_second_tries_without_feedback_are_refused_before_the_first(run) -> None:
    """By `rlvr eval` as well: the question is put in one place."""
    with FaultyServer(solver) as server:
        done = run("eval", "countdown", "--server", server.url, "--size", "2", "--tries", "2", "-o", "out")
        asked = server.requests
    assert done.returncode == 2 and "gives no feedback" in done.stderr and asked == 0, done.stderr


def test_nothing_judged_is_a_loud_end(run, tmp_path: Path) -> None:
    with FaultyServer(lambda server, body, n: http(400, {"error": "no"})) as server:
        plan_in(tmp_path, server.url)
        done = run("phase0", "plan.toml", "-o", "out")
    assert done.returncode != 0 and "no answer could be judged: countdown" in done.stderr


def test_an_empty_folder_is_taken_and_one_with_other_things_in_it_is_not(tmp_path: Path) -> None:
    begin(tmp_path, PLAN, {})
    assert {path.name for path in tmp_path.iterdir()} == {"plan.toml", "run_info.json"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").touch()
    with pytest.raises(UserError, match="is there and is no folder of `rlvr phase0`"):
        begin(other, PLAN, {})
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_another_plan_does_not_go_into_the_same_folder(run, tmp_path: Path) -> None:
    with FaultyServer(solver) as server:
        plan_in(tmp_path, server.url)
        assert run("phase0", "plan.toml", "-o", "out").returncode == 0
        asked = server.requests
        assert run("phase0", "plan.toml", "-o", "out").returncode == 0
        assert server.requests == asked, "what is judged is not asked again"
        plan_in(tmp_path, server.url, **{"n = 2": "n = 3"})
        done = run("phase0", "plan.toml", "-o", "out")
    assert done.returncode != 0 and "begun with another plan" in done.stderr


@pytest.mark.slow
def test_kill_9_and_go_on(tmp_path: Path) -> None:
    samples = tmp_path / "out" / "evaluations" / "countdown" / "samples.jsonl"
    with FaultyServer(solver) as server:
        plan_in(tmp_path, server.url)
        with server.held(after=8):
            words = [*RLVR, "phase0", "plan.toml", "-o", "out"]
            process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            ends = time.monotonic() + 120
            while not (samples.exists() and samples.read_bytes().count(b"\n") >= 5):
                assert time.monotonic() < ends
                time.sleep(0.02)
            process.kill()
            process.communicate()
        before = read_lines(samples)
        assert json.loads((tmp_path / "out" / "run_info.json").read_text())["status"] == "running"
        done = rlvr("phase0", "--resume", "out", "--json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert read_lines(samples)[: len(before)] == before and len(read_lines(samples)) == 12
    assert json.loads(done.stdout)["metrics"]["mine@k"]["samples"] == 10


def test_the_plan_that_comes_along_is_found_by_name_and_whole(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLVRLAB_DATA", raising=False)  # where the tester's own copies lie
    (tmp_path / "data").mkdir()
    done = run("phase0", "phase0_coding", "--plan")
    assert done.returncode != 0 and "data.humaneval: no humaneval/HumanEval.jsonl under data" in done.stderr
    assert "unknown key" not in done.stderr


def test_the_small_plan_that_comes_along_asks_what_is_made_here(run) -> None:
    planned = json.loads(run("phase0", "phase0_nano", "--plan", "--json").stdout)
    assert {row["data"].partition("@")[0] for row in planned["data"]} == {"countdown", "clrs"}
    assert sum(row["answers"] for row in planned["data"]) <= 120


def test_a_run_is_named_as_everywhere(run, tmp_path: Path) -> None:
    """By a part of its name, before anything is asked; a name that fits no run is refused by the plan alone, too."""
    trained = run("train", str(tiny(tmp_path)), "name=first", "grpo.steps=1", "eval.every=0")
    assert trained.returncode == 0, trained.stderr
    text = """
name = "base"
sinks = []
[model]
run = "RUN"
[protocol]
names = ["@1"]
max_tokens = 8
[[data]]
name = "countdown"
size = 4
keys = {numbers = [2], high = 30, style = "bare"}
"""
    (tmp_path / "plan.toml").write_text(text.replace("RUN", "first@last"))
    done = run("phase0", "plan.toml", "-o", "out")
    assert done.returncode == 0, done.stderr
    (tmp_path / "plan.toml").write_text(text.replace("RUN", "frist"))
    assert "no run 'frist'" in run("phase0", "plan.toml", "--plan").stderr
