"""How EvalPlus decides: results are compared with those of the reference solution, which is run beside the tests.

This file is imported by nobody here: its text is the set-up of the tests that evalplus.py makes, and runs in the jailed
process of the tests (see docs/code_environments.md). Rules, special cases and the ids of problems whose inputs are not
plain JSON are those of evalplus 0.3.1 (evalplus/eval/__init__.py, eval/_special_oracle.py, data/mbpp.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

LEAST_TOLERANCE, RELATIVE = 1e-6, 1e-7
MOST_VALUES = (16 << 20) // 3
"""No message between the processes of the answer and of the tests holds more: each value takes three bytes at least."""
COLLECTIONS = (list, tuple, set)
SETS = """
similar_elements find_char_long common_in_nested_lists extract_singly larg_nnum intersection_array find_dissimilar Diff
"""
NOT_NONE = "check_str text_match_three text_starta_endb"
TUPLES = {2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809}
LISTS_OF_TUPLES = {63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780}
TUPLES_OF_TUPLES = {259, 401, 445}
LIST_OF_TUPLES_FIRST = {75, 413, 444, 753}
TUPLE_FIRST, TUPLE_SECOND = {250, 307, 405, 446, 617, 720, 763, 808}, {106, 750}
TUPLES_ALL_THE_WAY = {580, 615, 791}


def all_right(
    candidate: Callable[..., Any], reference: Callable[..., Any], problem: str, text: str, atol: float
) -> None:
    """AssertionError unless the candidate does as the reference does on every input; `problem` is "Mbpp/2 function"."""
    name, _, function = problem.partition(" ")
    mbpp = int(name.removeprefix("Mbpp/")) if name.startswith("Mbpp/") else None
    compared = 0
    for given in json.loads(text):
        arguments = given if mbpp is None else mbpp_arguments(mbpp, given)
        expected, too_large = expected_of(reference, deepcopy(arguments))
        if too_large:
            continue
        compared += 1
        result = candidate(*arguments)
        assert right(result, expected, arguments, function if mbpp else f"HumanEval {function}", atol), given
    assert compared, "no result of the reference could be held and sent"


def expected_of(reference: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, bool]:
    """What the reference returns, and whether that is too large for anybody's answer to be judged by it.

    Mbpp/255 asks for more than a million tuples of 77 values.
    """
    try:
        expected = reference(*arguments)
        return expected, values_in(expected) > MOST_VALUES
    except MemoryError:
        return None, True


def values_in(result: Any) -> int:
    """How many values there are in a result, at any depth; counting ends above MOST_VALUES."""
    found, waiting = 0, [result]
    while waiting and found <= MOST_VALUES:
        one = waiting.pop()
        if isinstance(one, COLLECTIONS):
            found += len(one)
            if any(issubclass(kind, COLLECTIONS) for kind in set(map(type, one))):  # a million numbers in no time
                waiting.extend(item for item in one if isinstance(item, COLLECTIONS))
    return found


def right(result: Any, expected: Any, arguments: Sequence[Any], function: str, atol: float) -> bool:
    """Is it the expected result, or another that the problem allows?"""
    if isinstance(result, np.generic):
        result = result.item()
    if function not in SETS.split() and not arrays_fit(result, expected):
        return False
    if function == "HumanEval find_zero":
        return abs(sum(factor * math.pow(result, power) for power, factor in enumerate(arguments[0]))) <= atol
    if function in NOT_NONE.split():
        return bool((expected is not None) == (result if isinstance(result, bool) else result is not None))
    if function in SETS.split():
        return bool(set(result) == set(expected))
    if result == expected or (function in OTHERS and OTHERS[function](result, arguments, atol)):
        return True
    tolerance = LEAST_TOLERANCE if atol == 0 and is_floats(expected) else atol
    if tolerance == 0 or type(result) is not type(expected):
        return False
    try:
        same_shape = np.shape(result) == np.shape(expected)
    except ValueError:  # lists of different lengths in one list
        return False
    # Without it, allclose stretches one to the other: an empty list would be close to any number.
    return same_shape and bool(np.allclose(result, expected, rtol=RELATIVE, atol=tolerance))


def arrays_fit(result: Any, expected: Any) -> bool:
    """Is each array beside an array of its shape? One of a single item is as true as that, so `[[3]]` passes for 3."""
    if isinstance(result, np.ndarray) or isinstance(expected, np.ndarray):
        return type(result) is type(expected) and bool(result.shape == expected.shape)
    if isinstance(result, list | tuple) and isinstance(expected, list | tuple):
        return all(map(arrays_fit, result, expected))
    if isinstance(result, dict) and isinstance(expected, dict):
        return all(arrays_fit(value, expected.get(key)) for key, value in result.items())
    return True


def is_floats(value: Any) -> bool:
    """A float, or a list or tuple of nothing but floats."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(item, float) for item in value)
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype in (np.float32, np.float64))


def surface_by_height(result: Any, arguments: Sequence[Any], atol: float) -> bool:
    """Mbpp/581 with the height of the pyramid itself, where the reference takes that of its sides."""
    edge, height = arguments
    return bool(abs(result - round(edge**2 + 2 * edge * math.sqrt((edge / 2) ** 2 + height**2))) <= atol)


def distance_of_padded(result: Any, arguments: Sequence[Any], atol: float) -> bool:
    """Mbpp/558 digit by digit, the shorter number filled up with zeros."""
    one, other = map(str, arguments)
    width = max(len(one), len(other))
    pairs = zip(one.zfill(width), other.zfill(width), strict=True)
    return bool(result == sum(abs(int(left) - int(right)) for left, right in pairs))


OTHERS: dict[str, Callable[[Any, Sequence[Any], float], bool]] = {
    "sum_div": lambda result, arguments, atol: bool(result == 0),
    "surface_Area": surface_by_height,
    "digit_distance_nums": distance_of_padded,
}
"""Function of MBPP -> what else is right."""


def mbpp_arguments(number: int, given: Any) -> Any:
    """The arguments as MBPP's functions take them: JSON has no tuples, sets or complex numbers."""
    if number in TUPLES:
        return [tuple(one) for one in given]
    if number in LISTS_OF_TUPLES:
        return [list(map(tuple, one)) for one in given]
    if number in TUPLES_OF_TUPLES:
        return [tuple(map(tuple, one)) for one in given]
    if number in LIST_OF_TUPLES_FIRST:
        return [list(map(tuple, given[0])), *given[1:]]
    if number in TUPLE_FIRST:
        return [tuple(given[0]), *given[1:]]
    if number in TUPLE_SECOND:
        return [given[0], tuple(given[1])]
    if number in TUPLES_ALL_THE_WAY:
        return deep_tuple(given)
    return SINGLE[number](given) if number in SINGLE else given


def deep_tuple(value: Any) -> Any:
    """Lists as tuples at every depth."""
    return tuple(map(deep_tuple, value)) if isinstance(value, list) else value


SINGLE: dict[int, Callable[[Any], Any]] = {
    115: lambda given: [[set(item) if isinstance(item, list) and item else {} for item in given[0]]],
    124: lambda given: [float(given[0]), complex(given[1])],
    252: lambda given: [complex(given[0])],
    278: lambda given: [tuple(tuple(item) if isinstance(item, list) else item for item in given[0])],
    722: lambda given: [{key: tuple(value) for key, value in given[0].items()}, *given[1:]],
}
"""Problems of which there is one of a kind."""
