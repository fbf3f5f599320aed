"""Suites: members load, what is missing is said, and the table's numbers and comparisons are right."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import errors, inside, tiny

from rlvrlab.errors import UnknownName, UserError
from rlvrlab.evals.answering import Answer, Ask, Ready, failed
from rlvrlab.evals.statistics import compare, wilson
from rlvrlab.evals.suites import SUITES, members_of
from rlvrlab.evals.suites.base import Member, Skipped, prepare
from rlvrlab.evals.suites.base import Ready as Prepared
from rlvrlab.evals.suites.examine import Model, examine
from rlvrlab.judge.extract import python_block
from rlvrlab.judge.isolation import probe
from rlvrlab.types import Completion, Problem

needs_jail = pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
NAMED = {
    "graphs": "np_tsp np_ged np_mcp np_mis np_mvc np_mcs p_tasks wiz_tasks nlgraph node_classification "
    "link_prediction cora_nodes cora_links grapharena graphinstruct",
    "math": "aime24 aime25 math500 lmb minerva_math gaokao2023en gaokao2024_mix college_math cmath gsm8k svamp asdiv "
    "mawps sat_math aqua tabmwp amc23 mmlu_stem",
    "logic": "zebra zebralogic clrs clrs_text",
    "coding": "countdown gsm8k humaneval mbpp_reg codecontests_valid codecontests_test",
}


def member(name: str) -> Member:
    return next(one for one in members_of("all") if one.name == name)


def test_every_named_data_set_is_a_member_with_its_protocol() -> None:
    assert {name: {m.name for m in suite.members} for name, suite in SUITES.items()} == {
        name: set(names.split()) for name, names in NAMED.items()
    }
    at = {m.name: m.protocol() for m in SUITES["math"].members}
    assert all(at[name].ks == (1, 64) for name in ("aime24", "aime25"))
    assert all(at[name].ks == (1, 8) for name in ("math500", "lmb", "minerva_math", "gaokao2023en"))
    assert all(at[name].name == "EVAL@1" for name in ("college_math", "svamp", "tabmwp", "mmlu_stem"))
    assert {one.n for one in SUITES["math"].members} == {1, 8, 64}, "both tiers draw the same k answers"
    assert all(m.fast <= m.full and m.size("fast") == m.fast for m in members_of("all"))
    assert all(m.role == "test" for m in members_of("all") if m.name not in ("mbpp_reg", "codecontests_valid"))
    assert member("np_tsp").protocol(max_tokens=99).sampling.max_tokens == 99
    with pytest.raises(UnknownName, match="did you mean 'graphs'"):
        members_of("grahps")


def test_missing_data_is_said_in_one_line_with_where_to_get_it(tmp_path: Path) -> None:
    for one in members_of("all"):
        if not one.files:
            continue
        found = prepare(one, "fast", tmp_path)
        assert isinstance(found, Skipped) and "\n" not in found.why
        assert str(tmp_path) in found.why and "get it: " in found.why and len(found.why.partition("get it: ")[2]) > 10


CONTEST = {
    "name": "1_A. Sums", "description": "Print the sum of the two numbers on the line.",
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": ["4 5\n"], "output": ["9\n"]},
    "generated_tests": {"input": [], "output": []},
    "solutions": {"language": [3], "solution": ["print(sum(map(int, input().split())))"]},
    "difficulty": 7, "source": 2, "time_limit": {"seconds": 1, "nanos": 0},
}  # fmt: skip
ZEBRA = {
    "id": "lgp-test-2x2-0", "size": "2*2",
    "puzzle": "There are 2 houses … Peter, Eric; tea, milk.\n## Clues:\n1. Eric is in the first house. 2. He has tea.",
    "solution": {"header": ["House", "Name", "Drink"], "rows": [["1", "Eric", "tea"], ["2", "Peter", "milk"]]},
    "created_at": "2024-07-03",
}  # fmt: skip
CHOICES = ["$1", "$2", "$3", "$4"]
ROWS: dict[str, tuple[str, list[dict[str, Any]], list[str]]] = {
    # member: (file, rows in the publisher's shape, a right answer each)
    "lmb": ("lmb/test.jsonl", [
        {"question": "设 $x+1=3$，求 $x$。", "answer": "$2$", "question_type": "问答"},
        {"problem": "Find $3!$.", "answer": "6"},
    ], ["\\boxed{2}", "\\boxed{6}"]),
    "tabmwp": ("tabmwp_test.jsonl", [
        {"question": "What is the mean?", "choices": None, "answer": "1,430", "unit": None, "table_title": "Cars",
         "table": "Year | Cars\n1 | 1,400\n2 | 1,460", "ques_type": "free_text", "ans_type": "integer_number"},
        {"question": "Is it a function?", "choices": ["yes", "no"], "answer": "no", "unit": None, "table_title": None,
         "table": "x | y\n1 | 2\n1 | 3", "ques_type": "multi_choice", "ans_type": "boolean_text"},
    ], ["\\boxed{1430}", "\\boxed{B}"]),
    "aqua": ("aqua/test.jsonl", [
        {"question": "2 + 2?", "options": ["A)1", "B)4", "C)5", "D)6", "E)7"], "rationale": "", "correct": "B"},
    ], ["\\boxed{B}"]),
    "sat_math": ("math_suites/sat_math_test.jsonl", [
        {"id": "0", "question": "f(1)?", "options": "A) 1 B) 2 C) 3 D) 4", "Answer": "C"},
    ], ["\\boxed{C}"]),
    "mmlu_stem": ("mmlu_stem_test.jsonl", [
        {"question": "How much?", "subject": "physics", "choices": CHOICES, "answer": 3},
    ], ["\\boxed{D}"]),
    "svamp": ("svamp/SVAMP.json", [
        {"ID": "chal-1", "Body": "Ben has 8 pens. He loses 3", "Question": "How many are left?", "Answer": 5.0},
    ], ["\\boxed{5}"]),
    "zebralogic": ("zebralogic/test.jsonl", [ZEBRA], [
        "<think>.</think>" + json.dumps({"House 1": {"Name": "Eric", "Drink": "tea"},
                                         "House 2": {"Name": "Peter", "Drink": "milk"}}),
    ]),
    "clrs_text": ("clrs_text_sample.jsonl", [
        {"question": "insertion_sort:\nkey: [0.5 0.2]\npred:\n", "answer": "[0.2 0.5]", "algo_name": "insertion_sort",
         "length": 2},
    ], ["[0.2 0.5]"]),
}  # fmt: skip


def lay(folder: Path, file: str, rows: list[dict[str, Any]]) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rows) if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(text)


@pytest.mark.parametrize("name", ROWS)
def test_rows_in_the_publisher_s_shape_are_read_and_judged(name: str, tmp_path: Path) -> None:
    file, rows, answers = ROWS[name]
    lay(tmp_path, file, rows)
    found = prepare(member(name), "full", tmp_path)
    assert isinstance(found, Prepared), found
    assert len(found.problems) == len(rows) and {p.role for p in found.problems} == {"test"}
    verdicts = found.env.verify_many([(problem, text) for problem in found.problems for text in answers])
    assert sum(verdict.correct is True for verdict in verdicts) == len(rows), "each answer is right for its own row"


@needs_jail
@pytest.mark.parametrize(("name", "file"), [("codecontests_valid", "valid"), ("codecontests_test", "test")])
def test_codecontests_rows_have_the_role_of_their_split(name: str, file: str, tmp_path: Path) -> None:
    lay(tmp_path, f"codecontests/{file}.jsonl", [CONTEST])
    found = prepare(member(name), "full", tmp_path)
    assert isinstance(found, Prepared), found
    assert [p.role for p in found.problems] == ["dev" if file == "valid" else "test"]
    answers = [python_block("print(sum(map(int, input().split())))"), python_block("print(3)")]
    verdicts = found.env.verify_many([(found.problems[0], text) for text in answers])
    assert [verdict.correct for verdict in verdicts] == [True, False]
    assert getattr(found.env, "timeout_s", None) == found.protocol.run_timeout_s == 30.0


def test_a_file_that_cannot_be_read_skips_its_member_with_the_reason(tmp_path: Path) -> None:
    lay(tmp_path, "aqua/test.jsonl", [{"question": "2 + 2?"}])
    found = prepare(member("aqua"), "fast", tmp_path)
    assert isinstance(found, Skipped) and "test.jsonl" in found.why
    masked = {"header": ["House", "Name"], "rows": [["1", "___"], ["2", "___"]]}
    lay(tmp_path, "zebralogic/test.jsonl", [{**ZEBRA, "solution": masked}])
    found = prepare(member("zebralogic"), "fast", tmp_path)
    assert isinstance(found, Skipped) and "masked" in found.why, "a benchmark without its solutions judges nothing"
    found = prepare(member("countdown"), "fast", tmp_path, {"stile": "bare"})
    assert isinstance(found, Skipped) and "stile" in found.why


def test_made_members_are_the_same_everywhere_and_fast_begins_full() -> None:
    for name in ("node_classification", "clrs", "countdown"):
        fast, more = (prepare(member(name), "fast", Path("none"), size=size) for size in (3, 5))
        assert isinstance(fast, Prepared) and isinstance(more, Prepared)
        assert [p.id for p in more.problems[:3]] == [p.id for p in fast.problems]
        golds = [(p, str(fast.env.gold(p))) for p in fast.problems]
        assert all(verdict.correct for verdict in fast.env.verify_many(golds))


def given_data() -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared"
    root = Path(os.environ.get("RLVRLAB_DATA") or Path(os.environ.get("RLVRLAB_SHARED", beside)) / "data")
    if not (root / "math_suites").exists():
        pytest.skip("needs math_suites, gsm8k, … under RLVRLAB_DATA")
    return root


@pytest.mark.slow
def test_published_files_are_loaded_whole() -> None:
    root = given_data()
    wanted = {
        "aime24": 30, "aime25": 30, "math500": 500, "minerva_math": 272, "gaokao2023en": 380, "gaokao2024_mix": 85,
        "college_math": 2750, "cmath": 600, "gsm8k": 1319, "svamp": 1000, "asdiv": 2200, "mawps": 1850, "sat_math": 32,
        "aqua": 254, "amc23": 40, "mmlu_stem": 2950, "humaneval": 164, "mbpp_reg": 95, "nlgraph": 900,
        "clrs_text": 280,
    }  # fmt: skip
    for name, least in wanted.items():
        found = prepare(member(name), "full", root)
        assert isinstance(found, Prepared), found
        assert least <= len(found.problems) <= found.member.full, name
        assert {p.role for p in found.problems} == {"dev" if name == "mbpp_reg" else "test"}


class Scripted:
    """Answers as a function of the problem and the sample; None fails."""

    def __init__(self, says: Callable[[Problem, int], str | None]) -> None:
        self.says, self.asked = says, 0

    def identity(self) -> dict[str, Any]:
        return {"kind": "scripted"}

    def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
        for ask in asks:
            self.asked += 1
            text = self.says(ask.problem, ask.sample)
            yield [(ask, failed("gone") if text is None else Answer(Completion(text, (), ()), 3))]


def ready(name: str = "countdown", size: int = 40, **fields: Any) -> Prepared:
    one = Member(name, "countdown", size, size, {"numbers": [2], "style": "bare"}, **fields)
    found = prepare(one, "full", Path("none"))
    assert isinstance(found, Prepared)
    return found


def solves(share: float, base: float = 0.0) -> Callable[[Problem, int], str]:
    """Right on a fixed share of the problems: those with the lowest targets modulo 100."""

    def says(problem: Problem, sample: int) -> str:
        place = problem.reference["target"] % 100 / 100
        return problem.meta["solution"] if base <= place < share else "1"

    return says


def broken() -> Scripted:
    raise UserError("no weights")


def test_cells_intervals_and_corrected_comparisons() -> None:
    first, second = ready("a"), ready("b", size=30)
    scripts = {"base": Scripted(solves(0.3)), "better": Scripted(solves(0.9)), "same": Scripted(solves(0.3))}
    models = [Model("broken", broken), *(Model(name, lambda one=one: one) for name, one in scripts.items())]
    found = examine(models, [first, Skipped("c", "no file"), second])
    by = {(cell.model, cell.member): cell for cell in found.cells}
    assert list(by) == [(m, d) for m in scripts for d in "ab"]
    assert found.skipped == (Skipped("c", "no file"), Skipped("broken", "no weights"))
    targets = {
        d: np.array([p.reference["target"] % 100 for p in one.problems]) for d, one in (("a", first), ("b", second))
    }
    for (model, data), cell in by.items():
        right = (targets[data] < (90 if model == "better" else 30)).astype(float)
        assert cell.value == pytest.approx(right.mean())
        assert (cell.low, cell.high) == pytest.approx(wilson(int(right.sum()), len(right)))
        assert (cell.versus is None) == (model == "base")
    pairs = {k: compare((targets[k[1]] < 30) * 1.0, (targets[k[1]] < (90 if k[0] == "better" else 30)) * 1.0)
             for k in by if k[0] != "base"}  # fmt: skip
    assert {k: by[k].versus for k in pairs} == {k: one.adjusted(len(pairs)) for k, one in pairs.items()}
    assert by["better", "a"].significant and not by["same", "a"].significant
    assert [cell.value for cell in found.averages] == pytest.approx(
        [np.mean([by[m, d].value for d in "ab"]) for m in scripts]
    )
    assert json.loads(json.dumps(found.facts()))["cells"][2]["versus"]["problems"] == 40


def test_pass_at_k_and_failures_that_are_nobody_s_wrong_answer() -> None:
    one = ready(n=4)

    def now_and_then(problem: Problem, sample: int) -> str | None:
        if problem == one.problems[0]:
            return None
        return problem.meta["solution"] if sample == 2 else "1"

    [cell] = examine([Model("m", lambda: Scripted(now_and_then))], [one]).cells
    assert (cell.metric, cell.value, cell.problems, cell.unjudged) == ("pass@4", 1.0, 39, 4)
    assert cell.bounds == pytest.approx((39 / 40, 1.0))


def test_an_interrupted_suite_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first, second = ready("a", size=12), ready("b", size=12)
    policy = Scripted(solves(0.5))

    class Stopping(Scripted):
        def answers(self, asks: Iterable[Ask]) -> Iterator[Ready]:
            for batch in super().answers(asks):
                if self.asked == 17:
                    raise KeyboardInterrupt
                yield batch

    with pytest.raises(KeyboardInterrupt):
        examine([Model("m/1", lambda: Stopping(solves(0.5)))], [first, second], output=tmp_path)
    found = examine([Model("m/1", lambda: policy)], [first, second], output=tmp_path)
    assert policy.asked == 24 - 16
    assert found.cells == examine([Model("m/1", lambda: Scripted(solves(0.5)))], [first, second]).cells
    assert {path.parent.name for path in tmp_path.glob("m_1/*/metrics.json")} == {"a", "b"}


def test_a_suite_without_a_place_is_kept_and_says_where(monkeypatch, capsys, tmp_path: Path) -> None:
    recipe = tiny(tmp_path).name
    inside(monkeypatch, capsys, "train", recipe, 'phases=["sft"]', "sft.steps=1", folder=tmp_path)
    words = ["suite", "coding", "--only", "countdown", "--models", "experiments", "--size", "2", "--max-tokens", "2"]
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("evaluations/suite_coding_fast_*")
    assert done.stdout.splitlines()[-1] == f"Everything: {folder.relative_to(tmp_path)}"
    assert json.loads((folder / "suite.json").read_text())["cells"] and list(folder.glob("*/countdown/samples.jsonl"))

    def interrupted(*_: object, **__: object) -> None:
        raise UserError("stopped")

    monkeypatch.setattr("rlvrlab.evals.suites.examine.examine", interrupted)
    done = inside(monkeypatch, capsys, *words, "-o", str(folder.relative_to(tmp_path)), folder=tmp_path)
    assert f"go on with the same command and -o {folder.relative_to(tmp_path)}" in done.stderr


@pytest.mark.parametrize("more", [(), ("--contamination",), ("--json",), ("-o", "res")], ids=" ".join)
def test_a_suite_without_any_data_says_what_is_missing_and_how_to_get_it(
    monkeypatch, capsys, tmp_path: Path, more: tuple[str, ...]
) -> None:
    recipe = tiny(tmp_path).name
    inside(monkeypatch, capsys, "train", recipe, 'phases=["sft"]', "sft.steps=1", folder=tmp_path)
    words = ["suite", "math", "--only", "gsm8k", "--only", "cmath", "--models", "experiments", "--data", "no where"]
    done = inside(monkeypatch, capsys, *words, *more, folder=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    [line] = errors(done)
    assert "suite math: no data set is left to examine" in line
    assert "gsm8k: no gsm8k/test.jsonl under no where; get it: `rlvr data prepare gsm8k -o 'no where'`" in line
    assert "cmath: no cmath/test.jsonl" in line and "github.com/QwenLM/Qwen2.5-Math" in line
    assert not (tmp_path / "evaluations").exists() and not (tmp_path / "res").exists()
    done = inside(monkeypatch, capsys, "suite", "math", "--models", "experiments", "--data", "no", folder=tmp_path)
    assert re.search(r" … and \d+ more$", errors(done)[0])


def test_a_suite_whose_only_model_cannot_be_opened_says_why(monkeypatch, capsys, tmp_path: Path) -> None:
    recipe = tiny(tmp_path).name
    inside(monkeypatch, capsys, "train", recipe, 'phases=["sft"]', "sft.steps=1", folder=tmp_path)
    [run] = (tmp_path / "experiments").iterdir()
    for part in run.glob("checkpoints/*/actor"):
        shutil.rmtree(part)
    words = ("suite", "coding", "--only", "countdown", "--models", "experiments", "--size", "2")
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert done.returncode == 2 and f"no model is left to examine; skipped {run.name}: " in errors(done)[0]
    assert "suite.json" not in errors(done)[0] and not (tmp_path / "evaluations").exists()


@pytest.mark.slow
def test_one_command_examines_every_run_of_a_folder(monkeypatch, capsys, tmp_path: Path) -> None:
    recipe = tiny(tmp_path).name
    for name, steps in (("cold", 1), ("warm", 30)):
        words = (f"name={name}", 'phases=["sft"]', f"sft.steps={steps}", "sft.references=40", "output_dir=out")
        rest = ("sft.learning_rate=0.1", "env.order=ascending")
        done = inside(monkeypatch, capsys, "train", recipe, *words, *rest, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    (tmp_path / "out" / "notes").mkdir()
    words = (
        "suite", "coding", "countdown.numbers=[2]", "countdown.high=9", "countdown.style=bare",
        "countdown.order=ascending", "--only", "countdown", "--only", "humaneval", "--models", "out",
        "--data", "nowhere", "--size", "12", "--max-tokens", "6",
    )  # fmt: skip
    found = json.loads(inside(monkeypatch, capsys, *words, "-o", "res", "--json", folder=tmp_path).stdout)
    assert [cell["model"].partition("_")[0] for cell in found["cells"]] == ["cold", "warm"]
    assert found["cells"][1]["value"] > found["cells"][0]["value"]
    assert {one["name"] for one in found["skipped"]} == {"humaneval", "notes"}
    before = json.loads(inside(monkeypatch, capsys, *words, "--models", "out@base", "--json", folder=tmp_path).stdout)
    assert before["cells"][1]["value"] < found["cells"][1]["value"], "before training the warm one was no better"
    shown = inside(monkeypatch, capsys, *words, "-o", "res", folder=tmp_path)
    assert shown.returncode == 0 and "skipped humaneval" in shown.stdout and "warm" in shown.stdout
    assert json.loads((tmp_path / "res" / "suite.json").read_text())["cells"] == found["cells"]
    assert "did you mean 'countdown'" in errors(
        inside(monkeypatch, capsys, "suite", "coding", "countdwn.numbers=[2]", "--models", "out", folder=tmp_path)
    )[0]  # fmt: skip
    assert "--models DIR" in errors(inside(monkeypatch, capsys, "suite", "coding", folder=tmp_path))[0]
    known = json.loads(inside(monkeypatch, capsys, *words, "--contamination", "--json", folder=tmp_path).stdout)
    assert all(row["exact"] == 0 and row["exact_high"] > 0 for row in known["contamination"]) and known["skipped"]
    listed = inside(monkeypatch, capsys, "suite", "--data", "nowhere", "--json", folder=tmp_path)
    assert {row["member"] for row in json.loads(listed.stdout)} >= set(NAMED["logic"].split())


@pytest.mark.slow
def test_a_model_folder_is_examined_like_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two untrained language models in Hugging Face's layout: both in the table, told apart by their weights."""
    pytest.importorskip("torch", reason="language models need the hf extra")
    pytest.importorskip("peft", reason="language models need the hf extra")
    from rlvrlab.cli.model_folders import engine_of_model, is_model
    from rlvrlab.models import nano

    for seed, name in enumerate(("first", "second")):
        (tmp_path / name).mkdir()
        nano.build(tmp_path / name, "nano", seed)
    assert is_model(tmp_path / "first") and not is_model(tmp_path)
    found = [engine_of_model(tmp_path / name, chat=True)[1] for name in ("first", "second")]
    assert found[0]["weights"] != found[1]["weights"] and found[0]["chat"] is True
    words = ["suite", "coding", "--only", "countdown", "--size", "4", "--max-tokens", "8", "--models", str(tmp_path)]
    done = inside(monkeypatch, capsys, *words, "--json", folder=tmp_path)
    assert {cell["model"] for cell in json.loads(done.stdout)["cells"]} == {"first", "second"}
