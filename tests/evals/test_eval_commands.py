"""rlvr eval, compare, rescore and serve model, as a person types them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import RLVR, errors, inside, rlvr, tiny
from faulty_server import FaultyServer, chat, http, question

from rlvrlab.envs.countdown import Countdown
from rlvrlab.envs.minicode import Minicode
from rlvrlab.judge.isolation import probe
from rlvrlab.record.files import read_lines
from rlvrlab.registry import declare

needs_jail = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
ENV = Countdown(numbers=(2,), high=30, style="bare")
WORDS = ("countdown", "numbers=[2]", "high=30", "style=bare", "--size", "30")


def solver(delay_s: float = 0.0):
    """Right for every problem whose target is even."""
    known = {p.prompt: ENV.gold(p) for p in ENV.problems("test", 60, 0) if p.reference["target"] % 2 == 0}

    def act(server: FaultyServer, body, number: int) -> bytes:
        time.sleep(delay_s)
        return http(200, chat(known.get(question(body)) or "1+1", server.models[0]))

    return act


@pytest.fixture
def run(monkeypatch, capsys, tmp_path: Path):
    return lambda *words: inside(monkeypatch, capsys, *words, folder=tmp_path)


def test_served_model_from_question_to_comparison(run, tmp_path: Path) -> None:
    with FaultyServer(solver()) as good, FaultyServer(lambda *_: http(200, chat("1+1"))) as bad:
        done = run("eval", *WORDS, "--server", good.url, "-o", "good", "--json")
        assert done.returncode == 0, done.stderr
        shown = run("eval", *WORDS, "--server", bad.url, "--model", "m", "-o", "bad")
    told = json.loads(done.stdout)
    right = sum(p.reference["target"] % 2 == 0 for p in ENV.problems("test", 30, 0))
    assert told["total"]["accepted_at_1"] == pytest.approx(right / 30)
    assert "accepted@1" in shown.stdout and "EVAL@1" in shown.stdout
    info = json.loads((tmp_path / "good" / "run_info.json").read_text())
    assert info["answered_by"]["servers"][0]["url"] == good.url and info["answered_by"]["model"] == "m"
    assert info["examined"]["protocol"]["sampling"]["max_tokens"] == 2048
    compared = json.loads(run("compare", "bad", "good", "--json").stdout)
    assert compared["measures"][0]["difference"]["mean"] == pytest.approx(told["total"]["accepted_at_1"])
    table = run("compare", "bad", "good").stdout
    assert "MDE" in table and "higher" in table
    again = run("rescore", "good")
    assert again.returncode == 0 and "30 answers judged again by countdown 2: 0 differences" in again.stdout


@needs_jail
def test_what_is_accepted_of_the_impossible_is_a_cheat(run, tmp_path: Path) -> None:
    env = Minicode(skills=("gen",), levels=(1,))
    golds = {problem.prompt: env.gold(problem) for problem in env.problems("test", 4, 0)}
    words = ("eval", "minicode", 'skills=["gen"]', "levels=[1]", "--size", "4", "--json")
    with FaultyServer(lambda server, body, _: http(200, chat(golds[question(body)], server.models[0]))) as honest:
        solved = run(*words, "--server", honest.url, "-o", "solved")
        for mode in ("conflicting", "one_off"):
            asked = run(*words, "--server", honest.url, "--impossible", mode, "-o", mode)
            told = json.loads(asked.stdout)
            assert told["data"] == f"minicode_{mode}" and told["total"]["problems"] == 4
            assert (told["total"]["accepted_at_1"], told["total"]["unjudged"]) == (0, 0)
        nothing = run("eval", *WORDS, "--server", honest.url, "--impossible", "conflicting")
    assert json.loads(solved.stdout)["total"]["accepted_at_1"] == 1
    assert "--impossible: no problem here has tests" in errors(nothing)[0]
    assert run("rescore", "conflicting").returncode == 0


def test_a_folder_begun_before_an_option_existed_is_gone_on_with(run, tmp_path: Path) -> None:
    with FaultyServer(solver()) as server:
        run("eval", *WORDS, "--server", server.url, "-o", "old")
        path = tmp_path / "old" / "run_info.json"
        info = json.loads(path.read_text())
        del info["request"]["impossible"]
        path.write_text(json.dumps(info))
        assert run("eval", "--resume", "old").returncode == 0


def test_a_changed_record_is_found_by_rescoring(run, tmp_path: Path) -> None:
    with FaultyServer(solver()) as server:
        run("eval", *WORDS, "--server", server.url, "-o", "e")
    samples = tmp_path / "e" / "samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b'"correct": false', b'"correct": true', 1))
    done = run("rescore", "e")
    assert done.returncode == 1 and "correct True → False" in done.stdout and "1 differences" in done.stdout


def test_a_run_before_and_after_training(run, monkeypatch, tmp_path: Path) -> None:
    trained = run("train", str(tiny(tmp_path)), "--json")
    folder = json.loads(trained.stdout)["folder"]
    for which in ("base", "last", "best", "2"):
        done = run("eval", "--run", f"{folder}@{which}", "--size", "4", "-o", which, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["total"]["avg_entropy"] > 0
    steps = {
        w: json.loads((tmp_path / w / "run_info.json").read_text())["examined"]["who"]["step"] for w in ("base", "2")
    }
    assert steps == {"base": 0, "2": 2}
    assert "--run takes one run" in errors(run("eval", "--run", folder, folder))[0]
    for words in ([], ["grpo.steps=+0"]):
        assert "was finished already" in run("train", "--resume", folder, *words).stderr
    assert run("compare", "base", "last").returncode == 0
    assert "has not been evaluated" in errors(run("compare", "base", folder))[0]
    assert run("eval", "--run", folder, "--size", "4", "--protocol", "@k", "--n", "3").returncode == 0
    assert "protocol" in errors(run("compare", "base", folder))[0]
    assert run("rescore", folder).returncode == 0
    assert "no checkpoint of step 77" in errors(run("eval", "--run", f"{folder}@77"))[0]
    # Training made it worse: the best was before it, and has no checkpoint.
    monkeypatch.setattr("rlvrlab.record.final.best_step", lambda _: 0)
    assert run("eval", "--run", f"{folder}@best", "--size", "4", "-o", "untrained").returncode == 0
    assert json.loads((tmp_path / "untrained/run_info.json").read_text())["examined"]["who"]["step"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("eval",), "whose policy? give --run latest"),
        (("eval", *WORDS), "who answers?"),
        (("eval", *WORDS, "--engine", "toy", "--server", "http://x"), "give one of them"),
        (("eval", *WORDS, "--engine", "toy", "--model", "m"), "--server too"),
        (("eval", *WORDS, "--engine", "toy", "--protocol", "@k", "--n", "4", "--k", "8"), "k = 8 of 4 samples"),
        (("eval", *WORDS, "--engine", "toy", "--protocol", "@k", "--k", "x"), "whole numbers"),
        (("eval", *WORDS, "--engine", "toy", "--n", "4"), "--n: @1 is one greedy answer; take --protocol @k"),
        (("eval", *WORDS, "--engine", "toy", "--protocol", "@budget"), "needs --budget: write --budget tokens="),
        (("eval", *WORDS, "--engine", "toy", "--budget", "tokens=5"), "--budget belongs to --protocol @budget"),
        (("eval", *WORDS, "--engine", "toy", "--protocol", "@budget", "--budget", "euros=5"), "--budget tokens=2000"),
        (("eval", *WORDS, "--engine", "tooy"), "did you mean 'toy'"),
        (("eval", *WORDS, "--engine", "toy", "--sink", "wandbb"), "did you mean 'wandb'"),
        (("eval", *WORDS, "--server", "nonsense"), "http://"),
        (("eval", *WORDS, "--run", "nowhere"), "no run 'nowhere'"),
        (("eval", "--resume", "nowhere"), "no evaluation folder"),
        (("compare", "nowhere", "elsewhere"), "no run 'nowhere'"),
        (("rescore", "nowhere"), "no run 'nowhere'"),
        (("serve", "model", "./nowhere"), "no such folder"),
    ],
)
def test_mistakes_are_one_line(run, words: tuple[str, ...], said: str) -> None:
    lines = errors(run(*words))
    assert len(lines) == 1 and said in lines[0], lines


def test_nothing_judged_is_no_result(run) -> None:
    with FaultyServer(lambda *_: http(400, {"error": "context too short"})) as server:
        done = run("eval", *WORDS, "--server", server.url)
    assert done.returncode == 1 and "30 unjudged: status 400" in done.stdout and "context too short" in done.stdout


def test_the_key_comes_from_the_environment_and_is_not_stored(run, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_KEY", "sk-abcdefghijklmnop1234")
    with FaultyServer(solver()) as server:
        run("eval", *WORDS, "--server", server.url, "--key-env", "MY_KEY", "-o", "e")
        assert all(headers["authorization"] == "Bearer sk-abcdefghijklmnop1234" for headers in server.headers)
    assert not any("abcdefghijklmnop" in path.read_text() for path in (tmp_path / "e").rglob("*") if path.is_file())


def test_numbers_go_to_a_tracker_and_a_broken_one_costs_nothing(run, monkeypatch) -> None:
    from dataclasses import dataclass

    import rlvrlab.registry as registry

    seen: dict[str, float] = {}

    @dataclass(frozen=True)
    class Memory:
        def open(self, folder, name, config) -> None:
            assert config["protocol"]["name"] == "EVAL@1"

        def log(self, step, metrics) -> None:
            seen.update(metrics)
            raise OSError("down")

        def close(self) -> None: ...

    monkeypatch.setitem(registry._known, ("sink", "memory"), declare(Memory, "sink", "memory"))
    with FaultyServer(solver()) as server:
        done = run("eval", *WORDS, "--server", server.url, "--sink", "memory")
    assert done.returncode == 0 and "sink memory failed (down)" in done.stderr
    assert seen["eval/countdown/accepted_at_1"] > 0


def wait_for(condition, seconds: float = 120.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.slow
def test_kill_9_loses_no_finished_sample(tmp_path: Path) -> None:
    samples = tmp_path / "e" / "samples.jsonl"
    with FaultyServer(solver(0.01)) as server:
        words = ["eval", *WORDS[:-1], "60", "--server", server.url, "--concurrency", "2", "-o", "e"]
        with server.held(after=30):  # or it might be done before it is killed
            process = subprocess.Popen([*RLVR, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_for(lambda: samples.exists() and samples.read_bytes().count(b"\n") >= 15)
            process.kill()
            process.communicate()
        before = read_lines(samples)
        assert 15 <= len(before) < 60
        asked = server.requests
        done = rlvr("eval", "--resume", "e", "--json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        # Up to two requests were on their way when it was killed; the server may count them late.
        assert 60 - len(before) <= server.requests - asked <= 60 - len(before) + 2
    after = read_lines(samples)
    assert after[: len(before)] == before and len(after) == 60
    assert json.loads(done.stdout)["total"]["samples"] == 60


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    samples = tmp_path / "e" / "samples.jsonl"
    with FaultyServer(solver(0.01)) as server:
        words = ["eval", *WORDS[:-1], "60", "--server", server.url, "--concurrency", "2", "-o", "e"]
        with server.held(after=30):  # or it might be done before it is told
            process = subprocess.Popen([*RLVR, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_for(lambda: samples.exists() and samples.read_bytes().count(b"\n") >= 3)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and "rlvr eval --resume e" in said and "Traceback" not in said
    assert json.loads((tmp_path / "e" / "run_info.json").read_text())["status"] == "interrupted"


class TestServing:
    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        folder = tmp_path / "model"
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"")
        return folder

    def fake(self, tmp_path: Path, monkeypatch, code: str) -> None:
        """A few lines of Python in place of `transformers`."""
        program = tmp_path / "bin" / "transformers"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nimport http.server, sys\n{code}")
        program.chmod(0o755)
        monkeypatch.setattr("rlvrlab.engines.openai.launch.find_program", lambda backend: str(program))

    SERVES = (
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers()\n"
        "port = int(sys.argv[sys.argv.index('--port') + 1])\n"
        "http.server.HTTPServer(('127.0.0.1', port), H).serve_forever()\n"
    )

    def test_replicas_start_answer_and_stop(self, model: Path, tmp_path: Path, monkeypatch) -> None:
        from rlvrlab.engines.openai.launch import Fleet

        self.fake(tmp_path, monkeypatch, self.SERVES)
        with Fleet(str(model), 2, "transformers", "127.0.0.1", 0, ["--device", "cpu"]) as fleet:
            fleet.wait(120)
            urls = {replica.url for replica in fleet.replicas}
            assert len(urls) == 2 and fleet.served_name == str(model) and not fleet.ended()
        assert all(replica.process.poll() is not None for replica in fleet.replicas)

    def test_one_that_fails_says_why(self, model: Path, tmp_path: Path, monkeypatch) -> None:
        from rlvrlab.engines.openai.launch import Fleet
        from rlvrlab.errors import InfrastructureError

        self.fake(tmp_path, monkeypatch, "sys.exit('no such device')\n")
        fleet = Fleet(str(model), 1, "transformers", "127.0.0.1", 0, [])
        with pytest.raises(InfrastructureError, match="no such device"), fleet:
            fleet.wait(120)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda f: (f / "config.json").write_text('{"auto_map": {"AutoModel": "x.Y"}}'), "auto_map"),
            (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "safetensors"),
            (lambda f: (f / "config.json").unlink(), "config.json"),
            (lambda f: (f / "config.json").write_text("{"), "cannot be read"),
        ],
    )
    def test_models_that_bring_code_are_refused(self, model: Path, change, said: str) -> None:
        from rlvrlab.engines.openai.launch import refuse_code
        from rlvrlab.errors import UserError

        assert refuse_code(str(model)) == str(model)
        change(model)
        with pytest.raises(UserError, match=said):
            refuse_code(str(model))


def test_the_story_of_a_run_is_told_again_after_its_examination(run, tmp_path: Path) -> None:
    folder = Path(json.loads(run("train", str(tiny(tmp_path)), "--json").stdout)["folder"])
    assert "No test result" in (folder / "EXPERIMENT.md").read_text()
    examined = run("eval", "--run", str(folder), "--size", "8")
    assert examined.returncode == 0 and "was trained with" not in examined.stderr
    assert "No test result" not in (folder / "EXPERIMENT.md").read_text()


def test_a_run_of_an_earlier_version_of_its_environment_is_examined_with_a_note(run, tmp_path: Path) -> None:
    folder = Path(json.loads(run("train", str(tiny(tmp_path)), "--json").stdout)["folder"])
    info = json.loads((folder / "run_info.json").read_text())
    info["data"]["version"] = "1"
    (folder / "run_info.json").write_text(json.dumps(info))
    examined = run("eval", "--run", str(folder), "--size", "8")
    assert examined.returncode == 0
    assert f"{folder.name} was trained with countdown version 1, this is version 2, with other" in examined.stderr


def test_fewer_problems_than_asked_for_are_all_taken_and_said_so(run, tmp_path: Path) -> None:
    done = run("eval", "code", "--role", "test", "--engine", "toy", "-o", "e", "--max-tokens", "4", "--size", "200")
    info = json.loads((tmp_path / "e" / "run_info.json").read_text())
    there = info["examined"]["problems"]
    assert 0 < there < 200 and done.returncode == 0, done.stderr
    assert f"all {there} test problems there are; 200 were asked for" in done.stderr
    assert info["fewer_problems"].startswith(f"all {there} ")


def test_fewer_problems_than_asked_for_in_a_prepared_file_are_all_taken_and_said_so(run, tmp_path: Path) -> None:
    assert run("data", "make", "countdown", "--role", "test", "--size", "7", "-o", "seven.jsonl").returncode == 0
    done = run("eval", "countdown", "--data", "seven.jsonl", "--engine", "toy", "-o", "e", "--size", "1000")
    info = json.loads((tmp_path / "e" / "run_info.json").read_text())
    assert (done.returncode, info["examined"]["problems"]) == (0, 7), done.stderr
    assert "all 7 problems there are; 1000 were asked for" in done.stderr
    assert info["fewer_problems"].startswith("all 7 ")


def test_keys_of_a_named_engine_are_that_engines_and_not_the_recipes(run, tmp_path: Path) -> None:
    recipe = str(tiny(tmp_path))
    done = run("eval", recipe, "--engine", "toy", "engine.buckets=16", "--size", "3", "-o", "e")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "e" / "run_info.json").read_text())["answered_by"]["keys"] == ["buckets=16"]


def test_serving_chooses_what_works_here(monkeypatch) -> None:
    from rlvrlab.engines.openai import launch
    from rlvrlab.errors import UserError

    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    monkeypatch.setattr(launch.shutil, "which", lambda name: None)
    if not Path(sys.executable).with_name("vllm").exists():
        with pytest.raises(UserError, match="nothing here can serve a model: `make hf`"):
            launch.choose_backend()
        monkeypatch.setattr(launch, "find_spec", lambda name: object())
        assert launch.choose_backend() == "embedded", "transformers serve needs packages that may be missing"
