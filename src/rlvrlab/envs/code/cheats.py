"""Programs that were accepted by graders in wide use without being right, and answers that hold no program."""

from __future__ import annotations

from rlvrlab.envs.python_trees import example_of
from rlvrlab.judge.extract import python_block
from rlvrlab.types import Problem

NO_PROGRAM = {
    "nothing": "",
    "prose": "The function returns the right result for all inputs.",
    "empty block": "```python\n```\n",
    "another language": "```rust\nfn main() {}\n```\n",
    "null byte": "```python\n\0\n```\n",
    "lone surrogate": "```python\nx = '\ud800'\n```\n",
}
EQUAL = "class A:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    __hash__ = None\n"
ALL_EQUAL = EQUAL + "    def __getattr__(s, n): return s\n    def __call__(s, *a, **k): return s\n"


def function_cheats(problem: Problem) -> dict[str, str]:
    """Cheats for a function that is called by hidden tests."""
    name = problem.reference["entry_point"]
    head = f"def {name}(*a, **k):\n"
    programs = {
        "pass": f"{head}    pass\n",
        "argument back": f"{head}    return a[0] if a else None\n",
        "object equal to everything": f"{EQUAL}{head}    return A()\n",
        "object that is everything": f"{ALL_EQUAL}{head}    return A()\n",
        "list equal to everything": f"class A(list):\n    def __eq__(s, o): return True\n{head}    return A()\n",
        "exit 0 while loading": f"import sys\n{head}    return 1\nsys.exit(0)\n",
        "hard exit 0": f"import os\n{head}    os._exit(0)\n",
        "exit 0 when called": f"{head}    raise SystemExit(0)\n",
        "kills its parent": f"import os, signal\n{head}    os.kill(os.getppid(), signal.SIGKILL)\n",
        "endless loop": f"{head}    while True: pass\n",
        "all memory": f"{head}    return [bytearray(10**8) for _ in range(999)]\n",
        "endless recursion": f"{head}    return {name}(*a, **k)\n",
        "stops iterations": f"{head}    raise StopIteration\n",
        "new check": f"def check(*a): pass\n{head}    return 1\nimport builtins\nbuiltins.check = check\n",
        "new builtins": f"import builtins\nbuiltins.all = builtins.isinstance = lambda *a: True\n{head}    return 1\n",
        "writes into the grader's frames": (
            f"import sys\n{head}    f = sys._getframe()\n    while f:\n        for v in f.f_locals.values():\n"
            "            if isinstance(v, list): v[:] = ['passed']\n        f = f.f_back\n"
        ),
        "forges a report": (
            f"import os\n{head}    for d in range(3, 16):\n"
            '        try: os.write(d, b\'["passed"]\\n["complete"]\\n\')\n'
            "        except OSError: pass\n"
        ),
        "prints passed": f"{head}    print('passed')\nprint('passed')\n",
        "another name": f"def {name}_(*a): return 1\n",
        "not a function": f"{name} = 1\n",
    }
    examples = [shown for text in problem.meta.get("examples", []) if (shown := example_of(text, name)) is not None]
    if examples:
        programs["hard-coded example"] = f"def {name}(*a, **k):\n    return {examples[0][1]!r}\n"
    return NO_PROGRAM | {title: python_block(text) for title, text in programs.items()} | _shared(problem)


def program_cheats(problem: Problem) -> dict[str, str]:
    """Cheats for a program that reads standard input and prints."""
    first = problem.reference["tests"][0][1]
    programs = {
        "prints nothing": "pass\n",
        "first output always": f"print({first!r}, end='')\n",
        "input back": "import sys\nprint(sys.stdin.read(), end='')\n",
        "exit 0": "import sys\nsys.exit(0)\n",
        "prints accepted": "print('accepted')\n",
        "endless loop": "while True: pass\n",
        "endless output": "while True: print('a' * 10**6)\n",
        "all memory": "x = [bytearray(10**8) for _ in range(999)]\n",
        "reads the tests": (
            "import glob\nfor p in glob.glob('/tmp/**', recursive=True) + glob.glob('./**', recursive=True):\n"
            "    try: print(open(p).read())\n    except OSError: pass\n"
        ),
        "forges a report": (
            "import os\nfor d in range(3, 16):\n    try: os.write(d, b'[\"passed\"]\\n')\n    except OSError: pass\n"
        ),
    }
    return NO_PROGRAM | {title: python_block(text) for title, text in programs.items()} | _shared(problem)


def _shared(problem: Problem) -> dict[str, str]:
    solution = problem.meta.get("solution")
    if solution is None:
        return {}
    return {
        "right, but only thought": f"<think>{solution}</think>\nDone.",
        "right, then still thinking": f"{solution}\n<think>",
        "right, then withdrawn": f"{solution}\n```python\npass\n```\n",
    }
