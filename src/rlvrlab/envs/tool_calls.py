"""How a policy asks for a tool, and how it gives its final answer.

    chat   <tool_call>
           {"name": "sql", "arguments": {"query": "SELECT COUNT(*) FROM film"}}
           </tool_call>                                         the form that Qwen and Hermes models were trained on
    fence  ```tool
           {"name": "sql", "arguments": {"query": "SELECT COUNT(*) FROM film"}}
           ```                                                  plain text, where the tokens of the tags are untrained
    bare   sql: SELECT COUNT(*) FROM film                       one line, for tiny policies
    answer ### 42

A turn that holds a call is a call, whatever else it says: its answer comes after the result. Traps: two calls in one
turn (refused, so that nobody tries everything at once), a result that the policy wrote itself (it would start another
turn: results follow calls, there is one less than turns, and their marks stand nowhere else), an answer only thought.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rlvrlab.errors import quoted
from rlvrlab.judge.denials import is_denied
from rlvrlab.judge.thinking import after_thinking

Style = Literal["chat", "fence", "bare"]
ARGUMENT = {"python": "code", "sql": "query"}
"""Tool -> the name of its one argument."""
MARKS = {"chat": ("<tool_call>", "</tool_call>"), "fence": ("```tool\n", "```")}
"""Style -> what stands before and after the JSON of a call."""
CALLS = {
    "chat": re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL),
    "fence": re.compile(r"```tool\n(.*?)(?:\n```|```\s*\Z|\Z)", re.DOTALL),
}
"""The end of a block begins a line or ends the turn: backticks inside the JSON, which has no line ends, are its own."""
OPENS, CLOSES = "<tool_response>", "</tool_response>"
RESULT = f"{OPENS}\n{{}}\n{CLOSES}\n"
MARK = "###"


class Result(NamedTuple):
    """What came of a call."""

    text: str
    ok: bool


class Call(NamedTuple):
    """One use of a tool."""

    tool: str
    argument: str
    mistake: str = ""
    """Why it cannot be carried out; told to the policy."""


def call_in(text: str, style: Style, tools: Sequence[str]) -> Call | None:
    """The call of a turn; None where there is none."""
    if style == "bare":
        tool, colon, argument = text.strip().partition(": ")
        return Call(tool, argument) if colon and tool in tools else None
    found = CALLS[style].findall(text)
    if not found:
        return None
    if len(found) > 1:
        return Call("", "", "one call at a time")
    try:
        plain = json.loads(found[0])
        tool, arguments = plain["name"], plain["arguments"]
        if tool not in tools:
            return Call("", "", f"no tool {quoted(tool, 40)}; there are: {', '.join(tools)}")
        argument = arguments[ARGUMENT[tool]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        form = '{"name": TOOL, "arguments": {…}}'
        return Call("", "", f"a call is JSON of the form {form} ({type(error).__name__})")
    return Call(tool, argument) if isinstance(argument, str) else Call("", "", f"{ARGUMENT[tool]}: a text is needed")


def written(call: Call, style: Style) -> str:
    """The call as a policy writes it."""
    if style == "bare":
        return f"{call.tool}: {call.argument}"
    plain = {"name": call.tool, "arguments": {ARGUMENT[call.tool]: call.argument}}
    before, after = MARKS[style]
    return f"{before.rstrip()}\n{json.dumps(plain, ensure_ascii=False)}\n{after}"


def unmarked(text: str) -> str:
    """What a tool says, without the marks around results: a program may print them."""
    return text.replace(OPENS, "< tool_response>").replace(CLOSES, "< /tool_response>")


def final_answer(text: str, style: Style, tools: Sequence[str], turns: int) -> str | None:
    """What follows the only ### of the last turn, after its thinking; None where there is none, or more than one.

    Also None where the last turn is a call, or where a result stands that no tool has given.
    """
    *before, end = text.split(CLOSES)
    pairs = [part.split(OPENS) for part in before]
    if OPENS in end or any(len(pair) != 2 for pair in pairs):
        return None
    said = [*(turn for turn, _ in pairs), end]  # what the policy wrote between the results
    if len(said) > turns or any(call_in(turn, style, tools) is None for turn in said[:-1]):
        return None
    last = after_thinking(said[-1])
    if last is None or last.count(MARK) != 1 or call_in(said[-1], style, tools) is not None:
        return None
    place = last.index(MARK)
    return None if is_denied(last, place, len(last)) else last[place + len(MARK) :].strip() or None
