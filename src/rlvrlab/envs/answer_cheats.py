"""Right answers that must not count, only thought or taken back by words beside them: readers are tried with them."""

from __future__ import annotations

from rlvrlab.judge.thinking import SPELLINGS


def unthought(answer: str, prompt: str) -> dict[str, str]:
    """Cheats by name: a right answer that was only thought, the prompt in place of an answer, nothing at all."""
    return {
        "only thought": f"<think>{answer}</think>",
        "thinking without an end": f"<think>{answer}",
        "answer in a reopened think": f"<think>.</think><think>{answer}",
        "prompt echoed": prompt,
        "no text": "",
        **misspelled(answer),
    }


def misspelled(answer: str) -> dict[str, str]:
    """Cheats by name: a right answer inside thinking whose tags are spelled otherwise, with an end and without one."""
    closed = {f"only thought in {opening}": f"{opening}{answer}{closing}" for opening, closing in SPELLINGS}
    return closed | {f"{opening} without an end": f"<think>.</think>\n{opening}{answer}" for opening, _ in SPELLINGS}


def denied(answer: str) -> dict[str, str]:
    """Cheats by name: a right answer that the words beside it take back, for answers that stand in prose."""
    before = (
        "The answer is not ",
        "It isn't ",
        "It is never the right list: ",
        "Anything but ",
        "The wrong answer is ",
    )
    after = (" is not the answer.", " is wrong.", " isn't correct.", ", which is not the right one")
    return {f"denied by {words.strip()!r}": f"{words}{answer}" for words in before} | {
        f"taken back by {words.strip()!r}": f"{answer}{words}" for words in after
    }
