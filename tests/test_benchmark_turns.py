"""Benchmarks that take turns: nobody is always first, the other version is the one that runs, and spinners end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from living import alive, left_of

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import against
import turns

BENCHMARKS = Path(turns.__file__).parent
TELL = "import rlvrlab, sys; open(sys.argv[1], 'a').write(rlvrlab.NAME + ' ')"


def version(folder: Path, name: str) -> Path:
    """A source folder whose package knows its name."""
    (folder / name / "rlvrlab").mkdir(parents=True)
    (folder / name / "rlvrlab/__init__.py").write_text(f"NAME = {name!r}\n")
    return folder / name


def test_every_second_round_begins_with_the_other_side() -> None:
    asked: list[str] = []
    rounds = turns.in_turn(["a", "b", "c"], 3, lambda side: asked.append(side) or len(asked))
    assert asked == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]
    assert rounds == [{"a": 1, "b": 2, "c": 3}, {"c": 4, "b": 5, "a": 6}, {"a": 7, "b": 8, "c": 9}]


def test_a_command_runs_with_both_versions_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(turns, "OWN", version(tmp_path, "new"))
    words = [str(version(tmp_path, "old")), "--rounds", "2", "--", "-c", TELL, str(tmp_path / "told")]
    monkeypatch.setattr(sys, "argv", ["against.py", *words])
    against.main()
    assert (tmp_path / "told").read_text().split() == ["new", "old", "old", "new"]
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == words[4:] and len(found["rounds"]) == 2
    assert all(one[side]["cpu_s"] > 0 for one in found["rounds"] for side in (turns.THIS, turns.OTHER))
    median, least, most = found["this version / the other"]["cpu_s"]
    assert 0 < least <= median <= most


def test_ratios_are_this_version_s_share_of_the_other_s() -> None:
    rounds = [{turns.THIS: {"cpu_s": own}, turns.OTHER: {"cpu_s": 2.0}} for own in (1.0, 3.0, 5.0)]
    assert against.ratios(rounds) == {"cpu_s": [1.5, 0.5, 2.5]}


def test_a_folder_without_the_package_and_a_command_that_fails_are_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no rlvrlab is imported from there; name the src folder of a worktree"):
        turns.refuse_without_package(tmp_path)
    with pytest.raises(SystemExit, match=r"the command ended with 3\nwhy"):
        against.measured(version(tmp_path, "new"), ["-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"])


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends processes with their parent on Linux only")
@pytest.mark.parametrize("killed", [False, True])
def test_spinners_spin_during_the_block_and_end_with_it_or_with_their_parent(killed: bool) -> None:
    code = (
        "import subprocess, sys, turns\n"
        "made, begin = [], subprocess.Popen\n"
        "subprocess.Popen = lambda words: made.append(begin(words)) or made[-1]\n"
        "with turns.spinning(2):\n"
        "    assert all(one.poll() is None for one in made)\n"
        "    print(*(one.pid for one in made), flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(turns.OWN), str(BENCHMARKS)])}
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2 and all(map(alive, pids))
        if killed:
            parent.send_signal(signal.SIGKILL)
        else:
            parent.stdin.write("go on\n")
            parent.stdin.flush()
        assert parent.wait(60) == (-signal.SIGKILL if killed else 0)
    left = left_of(pids)
    for pid in left:  # a failure here must not slow down all other tests
        os.kill(pid, signal.SIGKILL)
    assert not left
