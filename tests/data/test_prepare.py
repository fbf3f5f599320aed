"""Every known data set from rows of its shape to problems that its environment judges, with the right roles."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlvrlab.cli import main
from rlvrlab.data.manifest import path_of, read_manifest
from rlvrlab.data.prepare import Prepared
from rlvrlab.data.presets import PRESETS
from rlvrlab.data.rows import read_problems
from rlvrlab.envs.data_files import read_rows
from rlvrlab.recipe import load_recipe
from rlvrlab.record.files import read_lines
from rlvrlab.registry import find, names
from rlvrlab.train.lab import build_problems
from rlvrlab.types import Problem

GSM = [
    {"question": f"Ann has {i} apples and eats {i % 7}. How many?", "answer": f"{i}-{i % 7}\n#### {i - i % 7}"}
    for i in range(40)
]
HUMANEVAL = {"task_id": "HumanEval/0", "prompt": "def f(x):\n", "entry_point": "f",
             "canonical_solution": "    return x\n",
             "test": "def check(candidate):\n    assert candidate(1) == 1\n"}  # fmt: skip
CONTEST = {"description": "Double it.", "public_tests": {"input": ["1"], "output": ["2"]},
           "private_tests": {"input": ["3"], "output": ["6"]}, "generated_tests": {"input": [], "output": []},
           "solutions": {"language": [3], "solution": ["print(2*int(input()))"]}}  # fmt: skip
ZEBRA = {"id": "z", "size": "2*2", "puzzle": "There are 2 houses.", "solution":
         {"header": ["House", "Name"], "rows": [["1", "Ann"], ["2", "Bob"]]}}  # fmt: skip
CLRS = {"question": "minimum:\nkey: [0.2 0.1]\nmin:\n", "answer": "1\n", "algo_name": "minimum", "length": 4}
APPS = {"problem_id": 7, "question": "Echo.", "input_output": json.dumps({"inputs": ["1\n"], "outputs": ["1\n"]}),
        "solutions": json.dumps(["print(input())"])}  # fmt: skip
MATHS = {
    "svamp": {"ID": "c", "Body": "Ann has 3.", "Question": "How many?", "Answer": 3.0},
    "math500": {"problem": "1+1", "solution": "so \\boxed{2}", "answer": "2"},
    "aqua": {"question": "1+1?", "options": ["A)1", "B)2"], "correct": "B"},
    "tabmwp": {"question": "How many?", "table": "a | 1", "choices": None, "answer": "1"},
    "lmb": {"question": "1+1", "answer": "2"},
}


def run(monkeypatch, capsys, folder: Path, *words: str) -> tuple[int, str, str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["rlvr", "data", *words])
    with pytest.raises(SystemExit) as left:
        main()
    out = capsys.readouterr()
    return int(left.value.code or 0), out.out, out.err


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def problems_of(folder: Path) -> dict[str, list[Problem]]:
    return {path.stem: list(read_problems(path)) for path in sorted((folder / "data").glob("*_*.jsonl"))
            if "dropped" not in path.name}  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_names_an_environment_and_known_roles(name: str) -> None:
    preset = PRESETS[name]
    assert preset.env in names("env")
    assert preset.splits or preset.folder_key


@pytest.mark.parametrize(
    ("name", "splits", "roles"),
    [
        ("codecontests", {"train": [CONTEST | {"name": "a"}], "valid": [CONTEST | {"name": "b", "description": "Add."}],
                          "test": [CONTEST | {"name": "c", "description": "Sub."}]}, {"train": 1, "dev": 1, "test": 1}),
        ("apps", {"test": [APPS]}, {"test": 1}),
        ("humaneval", {"test": [HUMANEVAL]}, {"test": 1}),
        ("zebralogic", {"test": [ZEBRA]}, {"test": 1}),
        ("clrs_test", {"test_1": [CLRS]}, {"test": 1}),
        *((name, {"test": [row]}, {"test": 1}) for name, row in MATHS.items()),
    ],
)  # fmt: skip
def test_rows_of_each_shape(tmp_path: Path, monkeypatch, capsys, name: str, splits: dict, roles: dict) -> None:
    for split, rows in splits.items():
        lines(tmp_path / "copy" / f"{split}.jsonl", rows)
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", name, "--from", "copy")
    assert (code, err) == (0, "")
    found = problems_of(tmp_path)
    assert {key.rpartition("_")[2]: len(rows) for key, rows in found.items()} == roles
    for key, problems in found.items():
        manifest = read_manifest(path_of(tmp_path / "data" / f"{key}.jsonl"))
        assert manifest.facts["environment"] == PRESETS[name].env == problems[0].source
        assert problems[0].meta["dataset"] == name and problems[0].role == key.rpartition("_")[2]


def test_gsm8k_keeps_the_publishers_test_and_lends_dev_by_content(tmp_path: Path, monkeypatch, capsys) -> None:
    lines(tmp_path / "gsm" / "train.jsonl", GSM[:35] + GSM[:2] + [GSM[36] | {"question": GSM[36]["question"].upper()}])
    lines(tmp_path / "gsm" / "test.jsonl", GSM[35:])
    code, out, _ = run(monkeypatch, capsys, tmp_path, "prepare", "gsm8k", "style=think", "--from", "gsm", "--json")
    facts = json.loads(out)
    assert code == 0 and facts["rows"]["test"] == 5 and facts["rows"]["train"] + facts["rows"]["dev"] == 35
    assert facts["rows"]["dev"] > 0 and facts["duplicates_dropped"] == 3
    found = problems_of(tmp_path)
    assert "<think>" in found["gsm8k_train"][0].prompt
    from rlvrlab.envs.gsm8k import Gsm8k

    env = Gsm8k(path=str(tmp_path / "gsm"), style="think")
    assert {p.id for p in env.problems("dev", facts["rows"]["dev"], 0)} == {p.id for p in found["gsm8k_dev"]}
    dropped = [row for _, row in read_rows(tmp_path / "data" / "gsm8k_duplicates_dropped.jsonl")]
    assert {row["kept_role"] for row in dropped} >= {"test"} and all(row["role"] != "test" for row in dropped)
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", "gsm8k", "--from", "gsm")
    assert code == 2 and "is already there" in err


@pytest.mark.parametrize("to", ["jsonl", "parquet", "trl"])
def test_a_preparation_that_was_broken_off_is_completed_by_the_same_command(tmp_path, monkeypatch, capsys, to) -> None:
    if to == "parquet":
        pytest.importorskip("pyarrow")
    words = ("prepare", "countdown", "numbers=[2,3]", "--size", "20", "--to", to)
    assert run(monkeypatch, capsys, tmp_path, *words)[0] == 0
    made = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    lost = [path for path in made if "train" in path.name or path.parent.name != "data"]
    for path in lost:
        path.unlink()
    assert run(monkeypatch, capsys, tmp_path, *words)[0] == 0
    assert {path: path.read_bytes() for path in made} == made
    code, _, err = run(monkeypatch, capsys, tmp_path, *words, "--seed", "1")
    assert code == 2 and "is already there" in err and {path: path.read_bytes() for path in made} == made


def test_a_name_that_cannot_be_written_is_refused_before_the_problems_are_made(monkeypatch, capsys, tmp_path) -> None:
    from rlvrlab.envs.countdown import Countdown

    monkeypatch.setattr(Countdown, "problems", lambda *_: pytest.fail("made before the name was looked at"))
    code, _, err = run(monkeypatch, capsys, tmp_path, "make", "countdown", "--size", "3", "-o", "problems.csv")
    assert code == 2 and "allowed: .jsonl" in err


def mbpp(number: int) -> dict[str, Any]:
    return {"task_id": number, "text": f"Add {number}.", "code": f"def add_{number}(x):\n    return x + {number}",
            "test_list": [f"assert add_{number}(1) == {number + 1}"]}  # fmt: skip


@pytest.mark.parametrize("words", [["mbpp"], ["mbpp_reg"], ["mbpp", "--env", "code_repair"]])
@pytest.mark.parametrize("place", ["mbpp/mbpp.jsonl", "mbpp.jsonl"])
def test_a_set_made_from_another_finds_that_ones_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], place: str
) -> None:
    """mbpp_reg and repair tasks are made from mbpp's file, wherever mbpp itself finds it under $RLVRLAB_DATA."""
    copy = lines(tmp_path / "mine" / place, [mbpp(n) for n in (5, 11, 520, 700)])
    lines(copy.parent / "something_else.jsonl", [{}])
    monkeypatch.setenv("RLVRLAB_DATA", str(tmp_path / "mine"))
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", *words)
    assert code == 0, err
    [dev] = [rows for name, rows in problems_of(tmp_path).items() if name.endswith("_dev")]
    assert any(problem.id.startswith("MBPP/520") for problem in dev)


def test_mbpp_in_one_file_is_split_by_task_id(tmp_path: Path, monkeypatch, capsys) -> None:
    path = lines(tmp_path / "mbpp.jsonl", [mbpp(n) for n in (5, 11, 510, 511, 600, 601, 974)])
    assert run(monkeypatch, capsys, tmp_path, "prepare", "mbpp", "--from", str(path))[0] == 0
    ids = {role: [p.id for p in rows] for role, rows in problems_of(tmp_path).items()}
    assert ids["mbpp_test"] == ["MBPP/11", "MBPP/510"] and ids["mbpp_dev"] == ["MBPP/511", "MBPP/600"]
    assert ids["mbpp_train"] == ["MBPP/601", "MBPP/974"]
    assert run(monkeypatch, capsys, tmp_path, "prepare", "mbpp_reg", "--from", str(path))[0] == 0
    regression = {p.id for p in read_problems(tmp_path / "data" / "mbpp_reg_dev.jsonl")}
    assert regression == {"MBPP/5", "MBPP/511", "MBPP/600"}, "neither test nor training rows of mbpp"


def test_near_duplicates_are_dropped_with_a_record_and_raw_files_are_named(tmp_path: Path, monkeypatch, capsys) -> None:
    words = "Write a function that counts the distinct words of a long sentence and gives the number back"
    texts = {11: words, 601: f"{words} quickly", 602: "Reverse the order of all characters in each line of text",
             603: "Find the largest gap between two neighbours in a sorted list of whole numbers"}  # fmt: skip
    rows = [{**mbpp(number), "text": text} for number, text in texts.items()]
    path = lines(tmp_path / "mbpp.jsonl", rows)
    other = [{**mbpp(604), "text": f"{texts[603]} now"}]
    assert run(monkeypatch, capsys, tmp_path, "prepare", "mbpp", "--from",
               str(lines(tmp_path / "other" / "mbpp.jsonl", other)), "-o", "theirs")[0] == 0  # fmt: skip
    code, out, _ = run(
        monkeypatch, capsys, tmp_path, "prepare", "mbpp", "--from", str(path), "--near", "0.5",
        "--against", "theirs/mbpp_train.jsonl",
    )  # fmt: skip
    assert code == 0 and "near-duplicates: 2" in out
    ids = {role: [p.id for p in rows] for role, rows in problems_of(tmp_path).items()}
    assert ids["mbpp_test"] == ["MBPP/11"] and ids["mbpp_train"] == ["MBPP/602"]
    record = read_lines(tmp_path / "data" / "mbpp_near_duplicates_dropped.jsonl")
    assert {(row["id"], row["kept"], row["kept_role"]) for row in record} == {
        ("MBPP/601", "MBPP/11", "test"), ("MBPP/603", "MBPP/604", "against"),
    }  # fmt: skip
    manifest = json.loads((tmp_path / "data" / "manifests" / "mbpp_train.jsonl").read_text().splitlines()[0])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert manifest["raw"] == [{"file": "mbpp.jsonl", "bytes": path.stat().st_size, "sha256": digest}]


def test_countdown_rows_are_solved_and_split_as_the_environment_does(tmp_path: Path, monkeypatch, capsys) -> None:
    rows = [{"nums": [a, b, 9], "target": a * b + 9} for a in range(3, 9) for b in range(3, 9)] + [
        {"nums": [1, 1, 1], "target": 99}
    ]
    lines(tmp_path / "train.jsonl", rows)
    code, out, _ = run(monkeypatch, capsys, tmp_path, "prepare", "countdown", "--from", "train.jsonl")
    assert code == 0 and "not judgeable: 1" in out
    from rlvrlab.envs.countdown import Countdown, Instance

    env = Countdown()
    found = [p for rows in problems_of(tmp_path).values() for p in rows]
    assert len(found) == 21 and len({p.role for p in found}) > 1
    for problem in found:
        assert env.verify(problem, str(env.gold(problem))).correct
        instance = Instance(tuple(sorted(problem.reference["numbers"])), problem.reference["target"])
        assert instance.role == problem.role and instance.shuffled == problem.reference["numbers"]


def test_your_own_csv(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "mine.csv").write_text("question,answer\n" + "".join(f"what is {i}+1?,{i + 1}\n" for i in range(40)))
    assert run(monkeypatch, capsys, tmp_path, "prepare", "mine.csv", "--env", "math", "--role", "split")[0] == 0
    assert {role: len(rows) for role, rows in problems_of(tmp_path).items()}.keys() == {
        "mine_train",
        "mine_dev",
        "mine_test",
    }


OWN = """
from dataclasses import dataclass
from rlvrlab.envs.base import BaseEnvironment, Read
from rlvrlab.registry import register
from rlvrlab.types import Problem, Verdict

@register("env", "lands")
@dataclass(frozen=True)
class Capitals(BaseEnvironment):
    version = "1"

    def problems(self, role, size, seed):
        return []

    def verify(self, problem, text):
        return Verdict(text == problem.reference)

    def read_row(self, row):
        land, capital = row["land"], row["capital"]
        if not capital:
            return None
        return Read.by_text(land, lambda role: [Problem(land, "lands", "lands", land, capital, role=role)])
"""


def test_an_environment_of_your_own_reads_its_rows(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    rows = [{"land": "Peru", "capital": "Lima"}, {"land": "peru ", "capital": "Lima"}, {"land": "Sea", "capital": ""}]
    lines(tmp_path / "lands.jsonl", rows)
    words = ("prepare", "lands.jsonl", "--env", "mine.py:Capitals", "--role", "dev")
    code, out, _ = run(monkeypatch, capsys, tmp_path, *words)
    assert code == 0 and "1 dev; dropped as duplicates: 1, not judgeable: 1" in out
    assert [(p.id, p.reference, p.role) for p in problems_of(tmp_path)["lands_dev"]] == [("Peru", "Lima", "dev")]
    lines(tmp_path / "lands.jsonl", [{"land": "Peru"}])
    code, _, err = run(monkeypatch, capsys, tmp_path, *words, "-o", "other")
    assert code == 2 and "lands.jsonl:1: column 'capital' is missing; there are: land" in err


def test_a_prepared_file_changes_its_format_and_nothing_else(tmp_path: Path, monkeypatch, capsys) -> None:
    pytest.importorskip("pyarrow")
    assert run(monkeypatch, capsys, tmp_path, "prepare", "countdown", "--size", "20")[0] == 0
    source = "data/countdown_train.jsonl"
    words = ("prepare", source, "--env", "countdown", "-o", "again", "--to")
    assert run(monkeypatch, capsys, tmp_path, *words, "parquet")[0] == 0
    again = tmp_path / "again" / "countdown_train_train.parquet"
    assert list(read_problems(again)) == list(read_problems(tmp_path / source))
    code, _, err = run(monkeypatch, capsys, tmp_path, *words, "jsonl", "--role", "dev")
    assert code == 2 and "is train already; a role is given once" in err
    assert run(monkeypatch, capsys, tmp_path, *words, "trl")[0] == 0
    _, row = next(read_rows(tmp_path / "again" / "countdown_train_train_trl.jsonl"))
    assert set(row) == {"prompt", "ground_truth", "data_source", "id", "split"} and row["prompt"][0]["role"] == "user"


class Hub:
    """What `datasets` offers, as far as it is used; remote code would need an argument that is never given."""

    def __init__(self, splits: dict[str, list[dict[str, Any]]]) -> None:
        self.splits, self.asked = splits, []

    def load_dataset(self, *words: str, split: str) -> list[dict[str, Any]]:
        self.asked.append((*words, split))
        if split not in self.splits:
            raise ConnectionError("no route to host\nsecond line")
        return self.splits[split]


def test_the_hub(tmp_path: Path, monkeypatch, capsys) -> None:
    hub = Hub({"train": GSM[:20], "test": GSM[20:]})
    monkeypatch.setattr("rlvrlab.data.sources.go_offline_without_network", lambda: False)
    monkeypatch.delenv("RLVRLAB_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=hub.load_dataset))
    assert run(monkeypatch, capsys, tmp_path, "prepare", "gsm8k")[0] == 0
    assert hub.asked == [("openai/gsm8k", "main", "train"), ("openai/gsm8k", "main", "test")]
    assert len(problems_of(tmp_path)["gsm8k_test"]) == 20
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", "humaneval", "-o", "x")
    assert code != 0 and len(err.splitlines()) == 1 and "KeyError" not in err
    del hub.splits["test"]
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", "math500")
    assert code == 1 and err.strip().endswith(
        "(no route to host second line); give your copy with --from PATH or in $RLVRLAB_DATA"
    )
    monkeypatch.setitem(sys.modules, "datasets", None)
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", "svamp")
    assert code == 2 and "rlvrlab[hub]" in err


def test_any_set_of_the_hub_through_the_environment_of_own_answers(tmp_path: Path, monkeypatch, capsys) -> None:
    rows = [{"ask": f"{i} plus 1?", "reply": i + 1} for i in range(40)]
    hub = Hub({"train": rows})
    monkeypatch.setattr("rlvrlab.data.sources.go_offline_without_network", lambda: False)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=hub.load_dataset))
    keys = ("--env", "answers", "--role", "split", "prompt=ask", "answer=reply", "matcher=number")
    assert run(monkeypatch, capsys, tmp_path, "prepare", "hub:me/sums:small@train", *keys)[0] == 0
    assert hub.asked == [("me/sums", "small", "train")]
    assert sum(len(problems) for problems in problems_of(tmp_path).values()) == 40
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", "hub:sums", *keys)
    assert code == 2 and "write hub:OWNER/NAME" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gsm9k"], "unknown data set, environment, file or run folder 'gsm9k'; did you mean 'gsm8k'?"),
        (["gsm8k", "--from", "gone"], "gone: no such file or folder"),
        (["gsm8k", "--from", "odd.jsonl"], "odd.jsonl: which split of gsm8k is it? name it train.jsonl or test.jsonl"),
        (["gsm8k", "--from", "."], ".: no file of gsm8k; needed are train.jsonl, test.jsonl"),
        (["gsm8k", "--from", "bad"], "bad/test.jsonl:2: column 'answer' is missing; there are: question"),
        (["humaneval", "--role", "train"], "--role is for files; humaneval is none"),
        (["odd.jsonl"], "odd.jsonl: which environment judges it? give --env, one of: answers, clrs, code"),
        (["odd.jsonl", "--env", "gsm8k"], "odd.jsonl:1: no role; give --role train, dev, test or split"),
        (["odd.jsonl", "--env", "graph", "--role", "train"], "environment 'graph' makes its problems itself"),
        (["twins.jsonl", "--env", "code", "--role", "dev"], "twins.jsonl:2: id 'MBPP/1' is also that of twins.jsonl:1"),
        (["spider"], "spider: give your copy, --from its folder"),
        (["olympiadbench"], "olympiadbench: is not on the hub in a readable form; give your copy with --from PATH"),
        (["odd.jsonl", "--as", "sft"], "odd.jsonl: a file, not a run; name a run's folder"),
        (["gsm8k", "--from", "odd.jsonl", "colour=1"], "colour"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch, capsys, words: list[str], message: str) -> None:
    monkeypatch.delenv("RLVRLAB_DATA", raising=False)  # where the tester's own copies lie
    lines(tmp_path / "odd.jsonl", GSM[:2])
    lines(tmp_path / "other.jsonl", GSM[:2])
    lines(tmp_path / "twins.jsonl", [mbpp(1), mbpp(1) | {"text": "Another."}])
    lines(tmp_path / "bad" / "test.jsonl", [GSM[0], {"question": "no answer"}])
    code, out, err = run(monkeypatch, capsys, tmp_path, "prepare", *words)
    assert (code, out) == (2, "") and message in err and len(err.strip().splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_row_whose_own_code_fails_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a gold answer and without one, whether setup or tests are broken."""
    broken = {"test": "import no_such_module\n" + HUMANEVAL["test"]}
    rows = [
        HUMANEVAL,
        {**HUMANEVAL, **broken, "task_id": "HumanEval/1", "prompt": "def f(x):\n    # one\n"},
        {**HUMANEVAL, **broken, "task_id": "HumanEval/2", "prompt": "def f(x):\n    # two\n", "canonical_solution": ""},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, out, _ = run(
        monkeypatch, capsys, tmp_path, "prepare", "humaneval", "--from", "rows.jsonl", "-o", "x", "--json"
    )
    told = json.loads(out)
    assert code == 0 and told["rows"]["test"] == 1 and set(told["bad_tasks"]) == {"HumanEval/1", "HumanEval/2"}
    listed = (tmp_path / "x" / "humaneval_bad_tasks.jsonl").read_text()
    assert "HumanEval/2" in listed and "no_such_module" in listed


def test_what_is_left_out_when_tried_is_told_by_reason_the_most_met_first() -> None:
    """Of 2,839 made bugs 2,539 are left out because two others are enough: the first of all tells nothing of that."""
    prepared = Prepared("bugs", find("env", "countdown")())
    prepared.bad_tasks = {"a": "too slow", "b": "enough", "c": "enough", "d": "no test", "e": "for ever"}
    told = prepared.summary().partition("left out when tried: ")[2]
    assert told == "5 (2 × enough, as b; 1 × too slow, as a; 1 × no test, as d; …)"


def test_a_recipes_rows_are_those_it_trains_on(monkeypatch, capsys, tmp_path) -> None:
    recipe = tmp_path / "small.toml"
    table = 'name = "small"\n[env]\ntype = "countdown"\nnumbers = [2]\nstyle = "bare"\n'
    recipe.write_text(table + "[data]\ntrain_size = 30\ndev_size = 7\n[eval]\ntest_size = 5\n[grpo]\nbatch_size = 4\n")
    code, out, err = run(monkeypatch, capsys, tmp_path, "prepare", "small.toml", "data.dev_size=9", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == {"train": 30, "dev": 9, "test": 5}
    rows = [problem.id for problem in read_problems(tmp_path / "data" / "small_train.jsonl")]
    assert rows == [problem.id for problem in build_problems(load_recipe(recipe))["train"]]
    code, _, err = run(monkeypatch, capsys, tmp_path, "prepare", "small.toml", "--size", "9")
    assert code and "data.train_size" in err


def test_countdown_3to4_has_the_published_ranges_and_the_recipes_volume() -> None:
    preset = PRESETS["countdown_3to4"]
    env = find("env", preset.env)(**{key: tuple(v) if isinstance(v, list) else v for key, v in preset.keys.items()})
    asked = [problem.reference for problem in env.problems("train", 60, 0)]
    assert {len(one["numbers"]) for one in asked} == {3, 4}
    assert all(10 <= one["target"] <= 100 and 1 <= min(one["numbers"]) <= max(one["numbers"]) <= 99 for one in asked)
    for name in ("verl_countdown", "countdown_gsm8k/countdown"):
        resolved = load_recipe(Path(name))
        assert resolved.recipe.data.train_size == preset.made_size
        assert all(list(v) == resolved.recipe.env[k] if isinstance(v, list) else v == resolved.recipe.env[k]
                   for k, v in preset.keys.items())  # fmt: skip


@pytest.mark.parametrize("name", ["countdown_gsm8k/countdown", "countdown_gsm8k/gsm8k", "verl_countdown", "verl_gsm8k"])
def test_rates_fit_the_way_of_tuning(name: str) -> None:
    """Full tuning and adapters differ by a factor of ten; each recipe is within a factor of three of its preset."""
    resolved = load_recipe(Path(name))
    usual = resolved.build("engine").preset().values["online.learning_rate"].value
    assert 1 / 6 < resolved.recipe.phase_tables["grpo"]["learning_rate"] / usual < 3


SPELT = ("what  IS 2+2?", "What is 2+2?\u200b", "What is ２+2?", "What is 2+2?\n", "What is\u00a02+2?")


def test_own_questions_of_test_are_not_trained_on_in_another_spelling(tmp_path: Path, monkeypatch, capsys) -> None:
    others = [{"question": text, "answer": "4", "split": "train"} for text in SPELT]
    wrong = {"question": "What is 2+2?", "answer": "5", "split": "dev"}
    rows = [*others, wrong, {"question": "What is 2+2?", "answer": "4", "split": "test"}]
    lines(
        tmp_path / "own.jsonl", [*rows, {"question": "Name the capital of Peru.", "answer": "Lima", "split": "train"}]
    )
    code, out, _ = run(monkeypatch, capsys, tmp_path, "prepare", "own.jsonl", "--env", "answers")
    assert code == 0 and "1 test, 1 train; dropped as duplicates: 6 (1 with another answer or other tests)" in out
    assert [p.reference for p in problems_of(tmp_path)["own_train"]] == ["Lima"]
    dropped = [row for _, row in read_rows(tmp_path / "data" / "own_duplicates_dropped.jsonl")]
    assert [row["role"] for row in dropped if not row["same_answer"]] == ["dev"]
