"""docs/python.ipynb, written and run: `python docs/make_notebook.py` (needs nbclient and ipykernel)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELLS = [
    "# rlvrlab in a notebook\n\nA task, a reward and a policy that learns it in a second on any CPU. "
    "[python.md](python.md) explains every name.",
    """
import rlvrlab

problems = [
    {"prompt": f"{a} {b} max\\n", "answer": str(max(a, b)), "skill": "far" if abs(a - b) > 4 else "near"}
    for a in range(1, 15)
    for b in range(1, 15)
    if a != b
]


def verify(problem, text):
    return text.strip() == problem.reference


env = rlvrlab.environment(problems, verify=verify, gold=lambda problem: problem.reference, name="largest")
env.problems("train", 2, seed=0)
""",
    "The reward is a plain function; its named parts are logged one by one.",
    """
def reward(problem, completion, verdict):
    return {"correct": float(verdict.correct), "short": 0.1 * (len(completion.tokens) < 3)}


recipe = {
    "name": "largest",
    "phases": ["sft", "grpo"],
    "engine": {"type": "toy", "max_number": 20, "buckets": 16},
    "rollout": {"n": 8, "max_tokens": 3},
    "sft": {"steps": 8, "batch_size": 16, "references": 16, "learning_rate": 0.1},
    "grpo": {"steps": 30, "batch_size": 16, "learning_rate": 0.05},
}
run = rlvrlab.train(recipe, env=env, reward=reward)
run
""",
    "Metrics are records or a DataFrame.",
    """
run.metrics(as_frame=True)[["step", "phase", "train/acc", "critic/rewards/mean", "actor/entropy"]].tail(4)
""",
    "Did training help? Paired by problem, on problems it has never seen.",
    """
before, after = run.evaluate("base"), run.evaluate("last")
rlvrlab.compare(before, after)
""",
    "An interrupted cell leaves a checkpoint. These functions are in no file: another notebook has to give them again.",
    """
rlvrlab.Run(run.folder).resume(reward=reward, env=env)
""",
]


def main() -> None:
    """Write the cells, run them in an empty folder, and keep what they show."""
    make = {True: nbformat.v4.new_code_cell, False: nbformat.v4.new_markdown_cell}
    cells = [make[text.startswith("\n")](text.strip(), id=f"cell-{index}") for index, text in enumerate(CELLS)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    nbformat.write(notebook, Path(__file__).with_name("python.ipynb"))


if __name__ == "__main__":
    main()
