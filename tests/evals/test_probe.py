"""The probe: unbiased against enumeration and simulation, verdicts at their thresholds, honest about what it knows."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from command_line import errors, inside, tiny
from faulty_server import FaultyServer, chat, http, question

from rlvrlab.data.rows import read_problems
from rlvrlab.envs.countdown import Countdown
from rlvrlab.evals.probe.picture import bands, scatter
from rlvrlab.evals.probe.report import Try, measured, report
from rlvrlab.evals.probe.steps import MOST_FAILURES, look_at_steps
from rlvrlab.evals.probe.verdict import advise
from rlvrlab.types import ErrorKind, Problem, Verdict, unjudged


def tried(name: str, rewards: list[float | None], level: int = 1, skill: str = "s", **facts) -> list[Try]:
    problem = Problem(name, "env", skill, f"prompt {name}", name, {"level": level})
    given = {"formed": True, "truncated": False, "gen_tokens": 10, "entropy": 0.5, **facts}
    return [Try(problem, None if r is None else r == 1.0, r, **given) for r in rewards]


def share_of_pairs(rewards: list[float], k: int) -> float:
    """By listing every group of k."""
    groups = list(combinations(rewards, k))
    return sum(len(set(group)) > 1 for group in groups) / len(groups)


@pytest.mark.parametrize("rewards", [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.1, 0.1, 1.0, 0.0, 0.1, 0.1], [1.0] * 6])
def test_the_share_of_useful_groups_is_that_of_all_groups_listed(rewards: list[float]) -> None:
    [problem] = report(tried("a", rewards)).problems
    for k in range(1, 7):
        assert problem.share_useful(k) == pytest.approx(share_of_pairs(rewards, k))


def test_the_share_of_useful_groups_is_unbiased() -> None:
    """Its expectation over every outcome of 6 answers at rate p is 1 − p^k − (1−p)^k."""
    outcomes = list(product((0.0, 1.0), repeat=6))
    found = report([one for i, outcome in enumerate(outcomes) for one in tried(str(i), list(outcome))], sizes=())
    for p, k in ((0.2, 4), (0.5, 3), (0.9, 2)):
        chances = [float(np.prod([p if right else 1 - p for right in outcome])) for outcome in outcomes]
        shares = [problem.share_useful(k) for problem in found.problems]
        assert np.dot(chances, shares) == pytest.approx(1 - p**k - (1 - p) ** k)


def test_more_answers_than_were_drawn_give_a_lower_bound_and_say_so() -> None:
    found = report(tried("a", [1.0, 0.0, 0.0, 0.0]) + tried("b", [0.0] * 4), sizes=(4, 8))
    assert [(u.n, u.share.value, u.at_least) for u in found.useful] == [(4, 0.5, False), (8, 0.5, True)]


def test_numbers_by_hand_and_what_was_not_judged_is_left_out() -> None:
    rows = tried("a", [1.0, 1.0, 0.0, None], level=1) + tried("b", [0.0] * 4, level=2, truncated=True, formed=False)
    rows += tried("c", [None] * 4, level=2)
    found = report(rows)
    total = found.total
    assert (total.problems, total.unjudged, found.unjudged_problems) == (2, 5, 1)
    assert total.accuracy.value == pytest.approx((2 / 3 + 0) / 2)
    assert total.variance.value == pytest.approx(np.var([1, 1, 0], ddof=1) / 2)
    assert (total.mixed.value, total.truncated.value, total.format_rate.value) == (0.5, 0.5, 0.5)
    assert [(line.level, line.problems) for line in found.lines] == [("1", 1), ("2", 1)]
    assert json.loads(json.dumps(found.facts()))["total"]["problems"] == 2


def test_intervals_cover_and_see_doubt_at_zero_and_one() -> None:
    random = np.random.default_rng(1)
    rates = random.beta(0.5, 0.8, size=4000)
    covered = 0
    for trial in range(120):
        scores = (random.random((25, 8)) < random.choice(rates, 25)[:, None]).mean(axis=1)
        found = measured(scores.tolist(), trial)
        covered += found.low <= rates.mean() <= found.high
    assert 0.88 <= covered / 120 <= 0.99
    assert measured([0.0] * 30, "x").high > 0.1 and measured([1.0] * 30, "x").low < 0.9
    assert measured([], "x") == (0.0, 0.0, 1.0)


def of_accuracy(accuracy: float, n: int = 20, problems: int = 40, **facts) -> list[Try]:
    right = round(accuracy * n)
    rows = []
    for i in range(problems):
        rows += tried(str(i), [1.0] * right + [0.0] * (n - right), **facts)
    return rows


CASES = {
    "go": (of_accuracy(0.4), ()),
    "sft first": (of_accuracy(0.0), ()),
    "harder data": (of_accuracy(1.0), ()),
    "longer answers": (of_accuracy(0.0, truncated=True), ()),
    "little signal": (
        [t for i in range(40) for t in tried(str(i), [float(i % 2)] * 8)],
        (),
    ),
    "mend the judge": (of_accuracy(0.4)[:20] + [t for i in range(40) for t in tried(f"u{i}", [None] * 20)], ()),
}


@pytest.mark.parametrize("word", CASES)
def test_the_verdict(word: str) -> None:
    advice = advise(report(CASES[word][0]))
    assert advice.word == word and advice.go == (word == "go")
    assert advice.text


def test_notes_say_what_is_not_ideal_and_what_is_not_settled() -> None:
    def notes(rows: list[Try]) -> str:
        return "\n".join(advise(report(rows)).notes)

    assert notes(of_accuracy(0.4)) == ""
    assert "entropy 0.05 is below 0.2" in notes(of_accuracy(0.4, entropy=0.05))
    assert "entropy 3.00 is above 0.8" in notes(of_accuracy(0.4, entropy=3.0))
    assert "entropy is not known" in notes(of_accuracy(0.4, entropy=None))
    assert "outside the ideal" in notes(of_accuracy(0.9))
    assert "demanded form" in notes(of_accuracy(0.4, formed=False))
    few = tried("a", [1.0] * 2 + [0.0] * 6) + [t for i in range(6) for t in tried(str(i), [0.0] * 8)]
    assert "not settled: accuracy" in notes(few)
    guessing = advise(report(of_accuracy(0.0, truncated=True, entropy=6.0)))
    assert guessing.word == "sft first", "who only guesses, guesses no better at greater length"


def test_the_picture_is_sound_xml_whatever_names_the_data_has() -> None:
    hostile = "</svg><script>alert(1)</script>\0\x1b"
    found = report(tried("a", [1.0, 0.0], skill=hostile) + tried("b", [0.0, 0.0]) + tried("c", [0.0, 0.0]))
    text = scatter(found.problems, hostile)
    root = ElementTree.fromstring(text)
    circles = [e for e in root.iter() if e.tag.endswith("circle") and e.get("fill-opacity")]
    assert len(circles) == 2, "dots that coincide are one"
    assert "script" not in {e.tag.rpartition("}")[2] for e in root.iter()}
    assert [(name, count) for name, count, _ in bands(found.problems)] == [
        ("0 %", 2), ("0–10 %", 0), ("10–80 %", 1), ("80–100 %", 0), ("100 %", 0),
    ]  # fmt: skip


@pytest.mark.slow
def test_probe_of_an_untrained_and_of_a_trained_toy_policy(monkeypatch, capsys, tmp_path: Path) -> None:
    recipe = tiny(tmp_path).name
    cold = inside(monkeypatch, capsys, "probe", recipe, "--n", "4", "--size", "6", "--json", folder=tmp_path)
    found = json.loads(cold.stdout)
    assert cold.returncode == 0 and not found["go"] and found["total"]["accuracy"]["value"] == 0.0
    done = inside(
        monkeypatch, capsys, "train", recipe, "sft.steps=30", "sft.references=40", "sft.learning_rate=0.1",
        "output_dir=out", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0
    [run] = (tmp_path / "out").iterdir()
    words = ("probe", "--run", str(run), "--n", "8", "--size", "20")
    warm = json.loads(inside(monkeypatch, capsys, *words, "--json", "-o", "made", folder=tmp_path).stdout)
    assert warm["total"]["accuracy"]["value"] > 0.05 and warm["policy"]["run"] == run.name
    assert warm["total"]["entropy"]["value"] < found["total"]["entropy"]["value"]
    useful = [p["id"] for p in warm["problems"] if p["useful"]]
    assert [p.id for p in read_problems(tmp_path / "made" / "useful.jsonl")] == useful
    ElementTree.parse(tmp_path / "made" / "scatter.svg")
    dots = list(csv.DictReader((tmp_path / "made" / "scatter.csv").read_text().splitlines()))
    known = json.loads((tmp_path / "made" / "probe.json").read_text())["problems"]
    assert [(d["problem"], float(d["accuracy"])) for d in dots] == [(p["id"], p["accuracy"]) for p in known]
    assert json.loads((tmp_path / "made" / "probe.json").read_text())["verdict"] == warm["verdict"]
    again = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert again.returncode == 0 and warm["verdict"] in again.stdout
    taken = inside(monkeypatch, capsys, *words, "-o", "made", folder=tmp_path)
    assert "already there" in errors(taken)[0]


@pytest.mark.slow
def test_probe_of_a_served_model_whose_server_fails_now_and_then(monkeypatch, capsys, tmp_path: Path) -> None:
    """Right on every second request, refused for good on the first problem: left out, not counted wrong."""
    solutions = {p.prompt: p.meta["solution"] for p in Countdown(numbers=(2,), style="bare").problems("train", 6, 0)}

    def act(server: FaultyServer, body: dict, number: int) -> bytes:
        if question(body) == next(iter(solutions)):
            return http(400, {"error": {"message": "no"}})
        right = number % 2 == 0
        return http(200, chat(solutions[question(body)] if right else "1", finish="stop" if right else "length"))

    with FaultyServer(act) as server:
        words = ("countdown", "numbers=[2]", "style=bare", "--server", server.url, "--n", "4", "--size", "6")
        done = inside(monkeypatch, capsys, "probe", *words, "--concurrency", "1", "--json", folder=tmp_path)
    found = json.loads(done.stdout)
    assert (found["total"]["problems"], found["unjudged_problems"], found["total"]["unjudged"]) == (5, 1, 4)
    assert found["total"]["accuracy"]["value"] == pytest.approx(0.5) and found["policy"]["model"] == "m"
    assert found["total"]["truncated"]["value"] == pytest.approx(0.5) and found["verdict"] == "longer answers"
    assert any("entropy is not known" in note for note in found["notes"])
    assert len({body["seed"] for body in server.bodies if "seed" in body}) >= 24, "every answer has its own seed"


def test_what_probe_refuses(monkeypatch, capsys, tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        return errors(inside(monkeypatch, capsys, "probe", *words, folder=tmp_path))[0]

    recipe = tiny(tmp_path).name
    assert "whose policy? give --run latest" in refused()
    assert "'--n': 1 is not in the range x>=2" in refused(recipe, "--n", "1")
    assert "give one of them" in refused(recipe, "--engine", "toy", "--server", "http://127.0.0.1:1")
    assert "--server too" in refused(recipe, "--model", "m")
    assert "no run 'nowhere'" in refused("--run", "nowhere")
    assert "'test' is not one of" in refused(recipe, "--role", "test")
    assert "did you mean 'countdown'" in refused("countdwn")
    assert "who answers?" in refused("countdown")


def test_sft_is_not_advised_after_sft() -> None:
    advice = advise(report(of_accuracy(0.0)), taught=True)
    assert advice.word == "easier data" and "SFT has run already" in advice.text and "do SFT" not in advice.text


def test_sft_is_not_advised_where_the_recipe_begins_with_it(tmp_path, monkeypatch, capsys) -> None:
    advice = advise(report(of_accuracy(0.0)), sft_steps=30)
    found = "before SFT, with which this recipe begins, 0.0 % of the answers are right, as is usual"
    assert advice.word == "after sft" and advice.notes == ()
    assert advice.text == f"{found}; train it, then ask again: `rlvr probe --run latest@30`"
    assert advise(report(of_accuracy(0.5)), sft_steps=30).word == advise(report(of_accuracy(0.5))).word
    words = ("--n", "2", "--size", "4", "--json")
    for phases, word in ((("sft", "grpo"), "after sft"), (("grpo",), "sft first")):
        told = inside(monkeypatch, capsys, "probe", "toy_countdown", f"phases={list(phases)}", *words, folder=tmp_path)
        assert json.loads(told.stdout)["verdict"] == word


class WantsAB:
    """A text is right when its words are a and b, in this order."""

    def verify_many(self, items: list[tuple[Problem, str]]) -> list[Verdict]:
        self.asked = len(items)
        return [Verdict(text.split() == ["a", "b"], 0.0, ErrorKind.NONE) for _, text in items]


def stepped(name: str, texts: list[str]) -> list[Try]:
    problem = Problem(name, "env", "s", name)
    right = [text.split() == ["a", "b"] for text in texts]
    pairs = zip(texts, right, strict=True)
    return [Try(problem, fine, float(fine), True, False, 3, 0.5, text) for text, fine in pairs]


def test_failures_that_one_edit_mends_are_told_from_others() -> None:
    """Lines: one too many, two exchanged, two too many, one that is wrong; equal answers are altered once."""
    texts = ["a\nb\n", "a\nx\nb\n", "b\na\n", "x\na\ny\nb\n", "a\nc\n", "a\nc\n"]
    tries, env = stepped("p", texts), WantsAB()
    found = look_at_steps(tries, report(tries), env)
    assert (found.failures, found.mended.value, found.dead) == (4, 0.5, 0.0)
    assert found.steps == pytest.approx((2 + 3 + 2 + 4 + 2) / 5) and found.calls == env.asked > 8
    # Of the first three deletions and two exchanges one is right; of the second two deletions and one exchange.
    assert found.edits_right.value == pytest.approx((1 / 5 + 1 / 3) / 4) and found.fresh_right == pytest.approx(1 / 6)
    assert "one edit mends 50 % of 4 failures" in found.advice and "too close" in found.advice


def test_edits_that_could_not_be_judged_count_for_nothing() -> None:
    class Failing(WantsAB):
        def verify_many(self, items: list[tuple[Problem, str]]) -> list[Verdict]:
            verdicts = super().verify_many(items)
            return [verdict if verdict.correct else unjudged("no worker") for verdict in verdicts]

    tries = stepped("p", ["a\nb\n", "b\na\n"])
    assert look_at_steps(tries, report(tries), Failing()).edits_right.value == 1.0


def test_replays_are_held_against_drawing_again() -> None:
    hopeless = [one for i in range(60) for one in stepped(f"p{i}", ["c\nd\n", "a\nb\n"])]
    found = look_at_steps(hopeless, report(hopeless), WantsAB())
    assert found.failures == MOST_FAILURES and found.mended.value == 0
    assert "less than drawing again; tree and trace" in found.advice and found.facts()["advice"] == found.advice
    sparse = [one for i in range(60) for one in stepped(f"p{i}", ["b\na\n"] * 30 + (["a\nb\n"] if i == 0 else []))]
    assert "can pay" in look_at_steps(sparse, report(sparse), WantsAB()).advice
    single = [one for i in range(3) for one in stepped(f"p{i}", ["c", "d"])]
    assert "single steps" in look_at_steps(single, report(single), WantsAB()).advice
    assert look_at_steps(tried("a", [0.0]), report(tried("a", [0.0])), WantsAB()) is None, "no text, no steps"
