"""Evaluation folders: nothing finished is lost, nothing is asked twice, nothing of two kinds is mixed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faulty_server import FaultyServer, chat, http, question
from scripted import FAILED, Scripted, Sums, answer, right

from rlvrlab.engines.openai import ModelChanged, Servers
from rlvrlab.errors import InfrastructureError, RunLocked, UserError
from rlvrlab.evals.answering import Ask, ServerAnswerer
from rlvrlab.evals.evaluate import Evaluation
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import Budget, eval_at_1, eval_at_budget, eval_at_k
from rlvrlab.plain_files import file_name
from rlvrlab.record.evaluation import EvaluationFolder, evaluations_of, newest, read_evaluation
from rlvrlab.record.files import read_lines

ENV = Sums()
TEN = ENV.problems("test", 10)
AT_3 = eval_at_k(3, (1, 3))


class Dies(Exception):
    pass


def dying_after(count: int):
    seen = []

    def reply(ask: Ask):
        seen.append(ask)
        if len(seen) > count:
            raise Dies
        return right(ask)

    return Scripted(reply, size=1)


def test_a_finished_folder_says_everything(tmp_path: Path) -> None:
    def reply(ask: Ask):
        return FAILED if ask.problem.id == "s3" else right(ask) if ask.sample else answer("wrong", tokens=40)

    kept = evaluate_into(tmp_path / "e", Scripted(reply, model="m7"), ENV, TEN, AT_3, facts={"command": ["x"]})
    folder = tmp_path / "e"
    info = json.loads((folder / "run_info.json").read_text())
    assert info["status"] == "finished" and info["answered_by"]["model"] == "m7" and info["command"] == ["x"]
    examined = info["examined"]
    assert (
        examined["protocol_hash"] == AT_3.hash and examined["scorer"]["version"] == "1" and examined["problems"] == 10
    )
    assert json.loads((folder / "metrics.json").read_text())["sums"]["pass@3"] == kept.metrics["pass@3"] == 1.0
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary["by_skill"]) == {"even", "odd"} and set(summary["by_level"]) == {"0", "1", "2"}
    assert summary["unjudged_because"] == {"status 500: boom": 3} and summary["retried"] == 3
    assert len(read_evaluation(folder).rows) == 30 and read_evaluation(folder).problems == tuple(TEN)


def test_answers_to_read_come_from_every_stratum(tmp_path: Path) -> None:
    def reply(ask: Ask):
        return right(ask) if ask.problem.id != "s7" else answer("junk", tokens=999)

    evaluate_into(tmp_path, Scripted(reply), ENV, ENV.problems("test", 60), eval_at_1())
    shown = read_lines(tmp_path / "qa_logs" / "sums_qa.jsonl")
    assert [row["completion"] for row in shown if row["outcome"] == "format"] == ["junk"]  # 1 of 60 is seen
    assert {row["skill"] for row in shown} == {"even", "odd"}
    counts = json.loads((tmp_path / "qa_logs" / "qa_summary.json").read_text())["sums"]
    assert sum(stratum["answers"] for stratum in counts["strata"]) == 60 and counts["shown"] == len(shown)


@pytest.mark.parametrize("torn", [False, True])
def test_resuming_asks_only_for_what_is_missing(tmp_path: Path, torn: bool) -> None:
    whole = evaluate_into(tmp_path / "whole", Scripted(right), ENV, TEN, AT_3)
    with pytest.raises(Dies):
        evaluate_into(tmp_path / "e", dying_after(17), ENV, TEN, AT_3)
    samples = tmp_path / "e" / "samples.jsonl"
    assert len(read_lines(samples)) == 17
    if torn:
        samples.write_bytes(samples.read_bytes() + b'{"problem": "s9", "samp')
    again = Scripted(right)
    resumed = evaluate_into(tmp_path / "e", again, ENV, TEN, AT_3)
    assert len(again.asked) == 30 - 17
    stable = {k: v for k, v in whole.metrics.items() if "time" not in k and k != "throughput"}
    assert stable == {k: resumed.metrics[k] for k in stable}
    assert (tmp_path / "e" / "samples.jsonl.torn").exists() is torn


def test_what_could_not_be_judged_is_asked_again(tmp_path: Path) -> None:
    first = evaluate_into(
        tmp_path, Scripted(lambda ask: FAILED if ask.problem.id == "s4" else right(ask)), ENV, TEN, eval_at_1()
    )
    assert first.metrics["unjudged"] == 1
    again = Scripted(right)
    second = evaluate_into(tmp_path, again, ENV, TEN, eval_at_1())
    assert again.asked == [("s4", 0)] and second.metrics["unjudged"] == 0 and second.metrics["accepted_at_1"] == 1.0


def test_a_budget_goes_on_where_it_stopped(tmp_path: Path) -> None:
    protocol = eval_at_budget(Budget("tokens", 30))

    def reply(ask: Ask):
        return answer("999", tokens=min(7, ask.sampling.max_tokens))

    seen = []

    def dies(ask: Ask):
        seen.append(ask)
        if len(seen) > 13:
            raise Dies
        return reply(ask)

    with pytest.raises(Dies):
        evaluate_into(tmp_path, Scripted(dies, size=1), ENV, TEN, protocol)
    kept = evaluate_into(tmp_path, Scripted(reply), ENV, TEN, protocol)
    assert kept.metrics["spent_tokens"] == 10 * 30


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"protocol": eval_at_1()}, "protocol"),
        ({"seed": 1}, "seed"),
        ({"problems": ENV.problems("test", 9)}, "data_hash"),
        ({"answerer": Scripted(right, model="other")}, "who"),
    ],
)
def test_a_folder_goes_on_only_with_the_same_question(tmp_path: Path, change: dict, named: str) -> None:
    same = {"answerer": Scripted(right, model="m"), "env": ENV, "problems": TEN, "protocol": AT_3}
    evaluate_into(tmp_path, **same)
    before = (tmp_path / "samples.jsonl").read_bytes()
    with pytest.raises(UserError, match=named):
        evaluate_into(tmp_path, **{**same, **change})
    assert (tmp_path / "samples.jsonl").read_bytes() == before


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="no evaluation"):
        evaluate_into(tmp_path, Scripted(right), ENV, TEN, eval_at_1())
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another"):
        evaluate_into(tmp_path / "file" / "x", Scripted(right), ENV, TEN, eval_at_1())


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with EvaluationFolder.begin(tmp_path, TEN, {"data": "x"}, {}), pytest.raises(RunLocked):
        EvaluationFolder(tmp_path)


def test_secrets_are_not_stored(tmp_path: Path) -> None:
    command = ["rlvr", "eval", "--api_key=abcdef123456", "http://me:hush@host"]
    evaluate_into(tmp_path, Scripted(right, api_key="hush"), ENV, TEN, eval_at_1(), facts={"command": command})
    text = (tmp_path / "run_info.json").read_text()
    assert "hush" not in text and "abcdef123456" not in text


def test_a_server_that_changes_its_model_takes_back_what_it_said_since(tmp_path: Path) -> None:
    def sound(server: FaultyServer, body, number: int) -> bytes:
        a, b = question(body).split(" + ")
        return http(200, chat(str(int(a) + int(b)), server.models[0]))

    def changing(server: FaultyServer, body, number: int) -> bytes:
        if number == 6:
            server.models = ["other"]
        return sound(server, body, number)

    with FaultyServer(changing) as server, Servers([server.url], "m", concurrency=1) as servers:
        asked = ServerAnswerer(servers)
        with pytest.raises(ModelChanged):
            evaluate_into(tmp_path, asked, ENV, TEN, eval_at_1())
    lines = read_lines(tmp_path / "samples.jsonl")
    assert len([row for row in lines if not row.get("void")]) == 6
    assert newest(lines) == []  # since the last good check, before the first of them, nothing is certain
    assert json.loads((tmp_path / "run_info.json").read_text())["status"] == "failed"
    with FaultyServer(sound) as server, Servers([server.url], "m") as servers:
        kept = evaluate_into(tmp_path, ServerAnswerer(servers), ENV, TEN, eval_at_1())
        assert server.requests == 10
    assert kept.metrics["accepted_at_1"] == 1.0


def test_damage_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no evaluation folder"):
        read_evaluation(tmp_path)
    evaluate_into(tmp_path, Scripted(right), ENV, TEN, eval_at_1())
    samples = tmp_path / "samples.jsonl"
    whole = samples.read_bytes()
    samples.write_bytes(b"{oops\n" + whole)
    with pytest.raises(InfrastructureError, match=r"samples.jsonl:1"):
        read_evaluation(tmp_path)
    samples.write_bytes(whole.replace(b'"s3"', b'"s33"'))
    with pytest.raises(InfrastructureError, match="s33"):
        read_evaluation(tmp_path)


def test_names_become_files_inside_their_folder() -> None:
    assert file_name("../../etc/passwd") == "etc_passwd"
    assert file_name("org/Model-7B") == "org_Model-7B"
    assert file_name("…") == "unnamed" and len(file_name("x" * 500)) <= 60


def test_a_runs_evaluations_in_the_order_they_ended(tmp_path: Path) -> None:
    for name in ("b", "a"):
        evaluate_into(tmp_path / "evaluations" / name, Scripted(right), ENV, TEN[:2], eval_at_1())
        info = tmp_path / "evaluations" / name / "run_info.json"
        told = json.loads(info.read_text())
        info.write_text(json.dumps({**told, "ended": f"2026-01-0{1 if name == 'a' else 2}"}))
    assert [path.name for path in evaluations_of(tmp_path)] == ["a", "b"]


def test_the_numbers_of_an_evaluation_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, metrics = [], Evaluation.metrics
    monkeypatch.setattr(Evaluation, "metrics", lambda self: made.append(self) or metrics(self))
    kept = evaluate_into(tmp_path / "e", Scripted(right), ENV, TEN, eval_at_1())
    assert len(made) == 1
    assert kept.summary["total"] == kept.metrics == metrics(kept.evaluation)
