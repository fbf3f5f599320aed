"""The candidate's side of `tests` mode: it answers calls and never sees a test.

Results that are not plain stay here and travel as numbered handles, good only for being passed back.
"""

from __future__ import annotations

from time import process_time
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import PEER, Job, Released, Report, message_of
from rlvrlab.judge.jail.frames import Frames, PeerGone
from rlvrlab.judge.jail.roles import solution


class Held:
    """Objects the tester only knows by number."""

    def __init__(self) -> None:
        self.objects: list[object] = []

    def number(self, value: object) -> plain.Encoded:
        """Keep an object and answer its handle."""
        self.objects.append(value)
        return ["handle", [len(self.objects) - 1, type(value).__name__]]

    def find(self, handle: Any) -> object:
        """The object behind a handle."""
        return self.objects[handle[0]]


def run(job: Job, report: Report) -> None:
    """Load the program, then serve calls until the tester is done."""
    peer, held = Frames(PEER), Held()
    encode, decode = plain.encode, plain.decode
    function = solution.entry(solution.load(job["code"], report, job["cpu_s"]), job["entry_point"], report)
    peer.send("ready")
    current, until = 0, 0.0
    while True:
        try:
            arguments, named, piece = peer.receive()
        except PeerGone:
            raise Released from None
        if piece != current:  # all calls of one piece of the tests share its budget
            current, until = piece, process_time() + job["cpu_s"]
        try:
            result = function(*decode(arguments, held.find), **decode(named, held.find))
            answer = ["value", encode(result, held.number)]
        except plain.NotPlain as error:
            answer = ["raised", *_described(ValueError(str(error)), held)]
        except BaseException as error:
            report.failure(error)
            answer = ["raised", *_described(error, held)]
        solution.spend(until)
        peer.send(answer)


def _described(error: BaseException, held: Held) -> tuple[list[str], str, plain.Encoded]:
    """The names of an exception's type and of all that it is a kind of, its message, and its arguments."""
    message = message_of(error)
    try:
        arguments = plain.encode(error.args, held.number)
    except Exception:  # nested too deeply, or the program's own `args`
        arguments = plain.encode((message,))
    return [kind.__name__ for kind in type(error).__mro__], message, arguments
