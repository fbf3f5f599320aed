"""One judge per process, ended with it."""

from __future__ import annotations

import subprocess
import sys

from rlvrlab.envs.code import shared_judge
from rlvrlab.envs.code.shared_judge import shared_judge as judge


def test_everyone_gets_the_same_judge_and_a_new_one_after_closing() -> None:
    first = judge()
    assert judge() is first and judge(every_test=False) is not first
    assert first.every_test and not judge(every_test=False).every_test
    shared_judge.close()
    shared_judge.close()
    assert judge() is not first


def test_a_process_that_used_it_ends_cleanly_and_leaves_nothing_behind() -> None:
    program = (
        "from rlvrlab.envs.minicode import Minicode\n"
        "env = Minicode()\n"
        "[problem] = env.problems('train', 1, 0)\n"
        "print(env.verify(problem, env.gold(problem)).correct)\n"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True\n", "")


def test_a_forked_child_gets_its_own() -> None:
    program = (
        "import os, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from rlvrlab.envs.minicode import Minicode\n"
        "env = Minicode()\n"
        "[problem] = env.problems('train', 1, 0)\n"
        "env.verify(problem, env.gold(problem))\n"
        "pid = os.fork()\n"
        "right = env.verify(problem, env.gold(problem)).correct\n"
        "if not pid: os._exit(0 if right else 1)\n"
        "print(right, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert ran.stdout == "True 0\n", ran.stderr
