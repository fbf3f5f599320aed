"""Ctrl-C is one line and exit code 130 at any moment: while the command loads, and while a heavy package does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from command_line import inside, tiny

from rlvrlab import cli

LOADS = {
    "lets it pass": """
press()
""",
    "makes an error of it": """
try:
    press()
except KeyboardInterrupt:
    raise ImportError("half loaded") from None
""",
    "prints what it cannot raise": """
class Late:
    def __del__(self):
        press()

Late()
raise RuntimeError("half loaded")
""",
    "swallows it": """
try:
    press()
except BaseException:
    pass
time.sleep(5)
print("went on")
""",
    "drops it": """
class Late:
    def __del__(self):
        press()

Late()
time.sleep(5)
print("went on")
""",
}
"""What a package does that is interrupted while it loads."""
PRESS = """
import os, signal, time

def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
"""


@pytest.mark.parametrize("name", LOADS)
def test_whatever_a_package_makes_of_it(tmp_path: Path, monkeypatch, capsys, name: str) -> None:
    monkeypatch.setattr(cli, "PATIENCE_S", 0.3)
    (tmp_path / "heavy.py").write_text(PRESS + LOADS[name])
    tiny(tmp_path)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    before = signal.getsignal(signal.SIGINT)
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "env.type=heavy.py:Heavy", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "error: interrupted")
    assert signal.getsignal(signal.SIGINT) is before


class _Pressed:
    """Presses Ctrl-C when the verbs are looked for."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name == "rlvrlab.cli.verbs":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        return None


def test_while_the_command_itself_loads(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(cli, "PATIENCE_S", 0.3)
    monkeypatch.delitem(sys.modules, "rlvrlab.cli.verbs", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Pressed(), *sys.meta_path])
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    done = inside(monkeypatch, capsys, "--version", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "error: interrupted")


def test_an_import_comes_to_its_end_first(tmp_path: Path, monkeypatch, capsys) -> None:
    """Torch aborts, or drops it, where it is interrupted while it loads."""
    quick = PRESS.replace("time.sleep(5)", "time.sleep(0.2)") + "press()\nopen('loaded', 'w').close()\n"
    (tmp_path / "heavy.py").write_text(quick)
    tiny(tmp_path)
    done = inside(monkeypatch, capsys, "train", "tiny.toml", "env.type=heavy.py:Heavy", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "error: interrupted")
    assert (tmp_path / "loaded").exists()


def test_what_is_pressed_between_two_imports_is_not_lost_in_the_second(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "presses.py").write_text(PRESS.replace("time.sleep(5)", "time.sleep(0.2)") + "press()\n")
    swallows = "import time\ntry:\n    time.sleep(1)\nexcept BaseException:\n    open('dropped', 'w').close()\n"
    (tmp_path / "swallows.py").write_text(swallows)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with pytest.raises(KeyboardInterrupt), cli.CtrlC():
        import_module("presses")
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            pass
        import_module("swallows")
        time.sleep(5)
    assert not (tmp_path / "dropped").exists()


def test_a_reminder_that_was_spared_comes_again_to_whoever_handles_it_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import had begun when it came; before it was looked who handles the signal, a training had taken it over."""
    ctrl_c, told, presses = cli.CtrlC(), list[int](), list[int]()

    def press() -> None:
        presses.append(1)
        if len(presses) == 1:
            ctrl_c._reminds = False
            signal.signal(signal.SIGINT, lambda *_: told.append(1))
        else:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ctrl_c, "_press", press)
    with ctrl_c:
        ctrl_c._remind(0)
    assert (told, len(presses)) == ([1], 2)


def test_work_that_begins_although_somebody_swallowed_the_interruption_is_told() -> None:
    told = list[int]()
    with cli.CtrlC():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except BaseException:
            pass
        signal.signal(signal.SIGINT, lambda *_: told.append(1))
        until = time.monotonic() + 5
        while not told and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
    assert told == [1]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["train", "eval", "probe"])
@pytest.mark.parametrize("after_s", [0.2, 0.5, 1.0, 2.0])
def test_while_torch_loads(tmp_path: Path, verb: str, after_s: float) -> None:
    pytest.importorskip("torch", reason="a language model needs torch")
    engine = ["engine.type=hf"] if verb == "train" else ["--engine", "hf"]
    more = (
        ["--size", "2000"] if verb == "eval" else []
    )  # the usual 120 are answered within two seconds where it is idle
    words = [verb, "toy_countdown", *engine, *more, "engine.model=nano"]
    begun = "from rlvrlab.cli import main; print(flush=True); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", begun, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline(), "before that Python itself is still starting"
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=120)
    # Python may end by the signal itself, where it interrupted an `exec`; for a shell that is 130, too.
    assert process.returncode in (130, -signal.SIGINT), said
    # A run that has its folder already ends in order and tells so on stdout.
    last = (told or said).splitlines()[0 if told else -1]
    assert "Traceback" not in said and "interrupted" in last, (told, said)
