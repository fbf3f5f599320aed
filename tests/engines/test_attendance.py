"""Which server was lost when, in words."""

from __future__ import annotations

from rlvrlab.engines.openai.attendance import Attendance
from rlvrlab.replicas import Change

NOON = 1_800_014_400.0 - 1_800_014_400.0 % 86_400 + 43_200


def lost(url: str, second: int, why: str = "connection refused") -> Change:
    return Change(url, False, NOON + second, why)


def back(url: str, second: int) -> Change:
    return Change(url, True, NOON + second)


def test_lost_in_one_call_and_back_in_another() -> None:
    roll = Attendance()
    assert list(roll.sentences([lost("http://a", 5)])) == ["http://a is lost since 12:00:05Z (connection refused)"]
    assert list(roll.sentences([])) == []
    assert list(roll.sentences([back("http://a", 98)])) == ["http://a is back after 93 s, since 12:01:38Z"]
    assert list(roll.sentences([back("http://a", 99)])) == ["http://a takes part since 12:01:39Z"]


def test_to_and_fro_within_a_call_is_one_sentence_per_server() -> None:
    changes = [lost("http://a", 1), lost("http://b", 2), back("http://a", 3), lost("http://a", 4, "cut off")]
    words = ["http://a is lost 2 times, the last time since 12:00:04Z (cut off)",
             "http://b is lost since 12:00:02Z (connection refused)"]  # fmt: skip
    roll = Attendance()
    assert list(roll.sentences(changes)) == words
    assert list(roll.sentences([back("http://a", 6), lost("http://a", 7), back("http://a", 8)])) == [
        "http://a was lost at 12:00:07Z (connection refused) and is back since 12:00:08Z"
    ]
    assert list(roll.sentences([back("http://b", 12)])) == ["http://b is back after 10 s, since 12:00:12Z"]


def test_one_that_stays_away_for_another_reason_is_lost_since_it_was_lost() -> None:
    roll = Attendance()
    list(roll.sentences([lost("http://a", 1)]))
    list(roll.sentences([lost("http://a", 20, "no longer on the list")]))
    assert list(roll.sentences([back("http://a", 31)])) == ["http://a is back after 30 s, since 12:00:31Z"]
