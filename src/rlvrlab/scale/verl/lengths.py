"""How long the prompts are for the model that will read them, measured before anything is started.

verl cuts a prompt that is longer than data.max_prompt_length on its left side: the question goes first. So a job with
such a prompt is refused.

python -m rlvrlab.scale.verl.lengths FOLDER      what the launch scripts run, in verl's environment
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import LabError, ModelUnavailable, UserError, one_line
from rlvrlab.models import resolve
from rlvrlab.recipe import Resolved
from rlvrlab.scale.verl.job import Job
from rlvrlab.types import Problem

AT_ONCE = 1024


class Lengths(NamedTuple):
    """Tokens of the prompts."""

    prompts: int
    longest: int
    longest_id: str
    over: int
    """Prompts beyond the limit."""


def check_lengths(resolved: Resolved, problems: Sequence[Problem], *, fetch: bool = False) -> Lengths:
    """Refuse a job that has a prompt of more than engine.prompt_tokens.

    The model's tokenizer is taken from this machine, or with `fetch` from the hub; ModelUnavailable without it.
    """
    limit: int = resolved.recipe.engine["prompt_tokens"]
    found = measured(_tokenizer(resolved.recipe.engine["model"], fetch), resolved, problems, limit)
    if found.over:
        what = f"{found.over:,} of {found.prompts:,} prompts are longer, the longest has {found.longest:,} tokens"
        remedy = f"set engine.prompt_tokens={found.longest} or ask for smaller problems"
        raise UserError(
            f"engine.prompt_tokens = {limit}: {what} ({found.longest_id}) and verl would cut them; {remedy}"
        )
    return found


def measured(tokenizer: Any, resolved: Resolved, problems: Sequence[Problem], limit: int) -> Lengths:
    """Count the tokens of every prompt as verl will write it: in the chat template, or as it stands."""
    engine = resolved.recipe.engine
    counts: list[int] = []
    for first in range(0, len(problems), AT_ONCE):
        texts = [problem.prompt for problem in problems[first : first + AT_ONCE]]
        if engine["chat"]:
            talks = [[{"role": "user", "content": text}] for text in texts]
            texts = [tokenizer.apply_chat_template(one, tokenize=False, add_generation_prompt=True) for one in talks]
        counts += [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    longest = max(range(len(counts)), key=counts.__getitem__)
    return Lengths(len(counts), counts[longest], problems[longest].id, sum(count > limit for count in counts))


def _tokenizer(model: str, fetch: bool) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise ModelUnavailable("prompts were not measured: Transformers is not installed here") from None
    try:
        place = str(resolve(model))
        return AutoTokenizer.from_pretrained(place, trust_remote_code=False, local_files_only=not fetch)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"prompts were not measured: no tokenizer of {model} here ({one_line(error)})") from None


def main(arguments: Sequence[str]) -> int:
    """Exit code 2 and one line where a prompt is too long."""
    try:
        job = Job.read(Path(arguments[0]), launched=True)
        found = check_lengths(job.resolved, list(job.problems.values()), fetch=True)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    limit = job.resolved.recipe.engine["prompt_tokens"]
    print(f"{found.prompts:,} prompts of at most {found.longest:,} tokens; {limit:,} are allowed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
