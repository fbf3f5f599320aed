"""pandas' tables across the wall: exactly as they were, or not at all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rlvrlab.judge import compare, written
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.jail import arrays, plain
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, TestsTask

pd: Any = pytest.importorskip("pandas")
ROOMY = Limits(cpu_s=20.0, job_cpu_s=20.0)


@pytest.fixture(autouse=True)
def _learnt() -> None:
    arrays.learn()


def sold() -> Any:
    return pd.DataFrame({"k": ["x", "y", "x"], "a": [1, 2, 3], "v": [1.5, 2.0, np.nan]})


WRITTEN = {
    "mixed": sold,
    "grouped": lambda: sold().groupby("k").v.sum(),
    "grouped by two": lambda: sold().groupby(["k", "a"]).v.sum(),
    "columns of two levels": lambda: sold().groupby("k").agg({"v": ["sum", "mean"]}),
    "pivot": lambda: sold().pivot(index="k", columns="a", values="v"),
    "unused levels": lambda: sold().set_index(["k", "a"]).loc[["y"]],
    "missing labels": lambda: pd.Series([1, 2], index=pd.MultiIndex.from_tuples([(1, np.nan), (2, "a")])),
    "labels twice": lambda: pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"], index=[0, 0]),
    "a range of its own": lambda: pd.Series([1], index=pd.RangeIndex(5, 6, 3, name="r"), name=("a", 1)),
    "nothing": lambda: pd.DataFrame(),
    "columns only": lambda: pd.DataFrame(columns=["a"]),
    "labels only": lambda: pd.DataFrame(index=[1, 2]),
    "bytes": lambda: pd.Series([1], dtype="int8"),
    "no floats": lambda: pd.Series([], dtype="float32"),
    "largest": lambda: pd.Series([2**64 - 1], dtype="uint64"),
    "complex": lambda: pd.Series([1j], dtype="complex64"),
    "another order of bytes": lambda: pd.Series(np.array([1], ">i4")),
    "nullable": lambda: pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")}),
    "texts": lambda: pd.DataFrame({"a": pd.array(["x", None], "string"), "b": pd.array(["x", None], "str")}),
    "objects": lambda: pd.Series(["a", None, 1, [1], (1, 2), pd.NA, pd.Timestamp("2020")], dtype=object),
    "categories": lambda: pd.cut(pd.Series([1, 5, 9]), [0, 2, 6], labels=["low", "high"]),
    "an axis of categories": lambda: sold().astype({"k": "category"}).groupby("k", observed=False).v.sum(),
    "dates": lambda: pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None]), "t": pd.to_timedelta([1, 2], "h")}),
    "dates with a frequency": lambda: pd.Series([1, 2], index=pd.date_range("2020", periods=2, freq="W-MON")),
}
REFUSED = {
    "a time zone": lambda: pd.Series(pd.date_range("2020", periods=2, tz="UTC")),
    "a moment in a time zone": lambda: pd.Timestamp("2020", tz="UTC"),
    "periods": lambda: pd.Series([1], index=pd.period_range("2020", periods=1, freq="D")),
    "intervals": lambda: pd.cut(pd.Series([1, 2]), 2),
    "sparse": lambda: pd.Series(pd.arrays.SparseArray([0, 1])),
    "attributes": lambda: pd.Series([1]).set_flags(allows_duplicate_labels=False),
    "long doubles": lambda: pd.Series(np.array([1], np.longdouble)),
    "a subclass": lambda: type("Series", (pd.Series,), {})([1]),
}


def parts(axis: Any) -> Any:
    """What assert_frame_equal does not look at."""
    levels = [(level.dtype, level.tolist()) for level in axis.levels] if type(axis) is pd.MultiIndex else None
    ends = (axis.start, axis.stop, axis.step) if type(axis) is pd.RangeIndex else None
    return type(axis), axis.dtype, list(axis.names), levels, ends


@pytest.mark.parametrize("name", WRITTEN)
def test_tables_come_back_as_they_were_sent(name: str) -> None:
    table = WRITTEN[name]()
    form = plain.encode(table)
    back = plain.decode(json.loads(json.dumps(form)))
    exactly = {"check_index_type": "exact", "check_exact": True}
    if type(table) is pd.Series:
        pd.testing.assert_series_equal(back, table, **exactly)
    else:
        pd.testing.assert_frame_equal(back, table, check_column_type="exact", **exactly)
        assert parts(back.columns) == parts(table.columns)
    assert parts(back.index) == parts(table.index) and plain.encode(back) == form


@pytest.mark.parametrize("moment", ["Timestamp('2020')", "Timestamp('2020').as_unit('ns')", "Timedelta(1, 'h')"])
def test_moments_come_back_as_they_were_sent(moment: str) -> None:
    kind, _, unit = moment.partition(".as_unit")
    given = pd.Timedelta(1, "h") if "delta" in kind else pd.Timestamp("2020")
    given = given.as_unit("ns") if unit else given
    back = plain.decode(plain.encode(given))
    assert type(back) is type(given) and back == given and back.unit == given.unit


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_written_exactly_is_refused_as_a_whole(name: str) -> None:
    value = REFUSED[name]()
    with pytest.raises(plain.NotPlain):
        plain.encode(value)
    assert plain.encode(value, lambda whole: ["handle", whole is value]) == ["handle", True]


def test_texts_keep_the_width_of_their_array() -> None:
    for given in (np.array(["a"], "U10"), np.array([], "U7"), np.array([b"a"], "S3")):
        assert plain.decode(plain.encode(given)).dtype == given.dtype
    with pytest.raises(ValueError, match="not an array"):
        plain.decode(["ndarray", ["<U100000000", [1], ["a"]]])


@pytest.mark.parametrize(
    ("got", "expected", "kind", "same"),
    [
        (lambda: pd.Series([1, 2], index=[0, 1]), lambda: pd.Series([1, 2]), "exact", True),
        (lambda: pd.Series([1, 2], dtype="int8"), lambda: pd.Series([1, 2]), "exact", True),
        (lambda: pd.Series([1.0, 2.0]), lambda: pd.Series([1, 2]), "exact", False),
        (lambda: pd.Series([1.0, 2.0]), lambda: pd.Series([1.0, 2.0 + 1e-9]), "float", True),
        (lambda: pd.Series([1], pd.Index([0], name="k")), lambda: pd.Series([1]), "json", False),
        (lambda: pd.Series(["a"], dtype=object), lambda: pd.Series(["a"]), "json", True),
        (lambda: pd.Series(["a"], dtype="category"), lambda: pd.Series(["a"]), "json", True),
        (lambda: pd.Series(["a"], dtype="category"), lambda: pd.Series(["a"]), "exact", False),
        (lambda: pd.to_timedelta(pd.Series([5]), "s"), lambda: pd.Series([5]), "json", False),
        (lambda: pd.to_timedelta(pd.Series([5]), "s"), lambda: pd.to_timedelta(pd.Series([5]), "s"), "json", True),
        (lambda: sold().set_index(["k", "a"]).loc[["y"]], lambda: sold()[1:2].set_index(["k", "a"]), "exact", True),
        (lambda: pd.DataFrame(index=pd.RangeIndex(10**12)), lambda: pd.DataFrame(index=[0]), "exact", False),
        (lambda: pd.DataFrame(index=pd.RangeIndex(3)), lambda: pd.DataFrame(index=pd.RangeIndex(3)), "exact", True),
    ],
)
def test_values_labels_and_names_are_compared_and_not_how_they_are_stored(
    got: Any, expected: Any, kind: Any, same: bool
) -> None:
    policy = Comparison(kind, abs_tol=1e-6 if kind == "float" else 0.0)
    assert compare.same_form(plain.encode(got()), plain.encode(expected()), policy) is same


AXIS = ["RangeIndex", [0, 1, 1], [None], None]
FORGED = [
    ["Series", [AXIS, ["<i8", [1, 2]], None]], ["Series", [AXIS, ["<V8", [2]], None]],
    ["Series", [AXIS, ["Categorical", [[5], AXIS, False]], None]], ["Series", [AXIS, 5, None]],
    ["Series", [["MultiIndex", [[AXIS, [7]]], [None], None], ["<i8", [1]], None]],
    ["Series", [["RangeIndex", [0, 1, 0], [None], None], ["<i8", [1]], None]],
    ["Series", [AXIS, ["<i8", [1]], ["list", []]]], ["DataFrame", [AXIS, AXIS, [["<i8", [1, 2]]]]],
    ["DataFrame", [AXIS, AXIS, 5]], ["DataFrame", []], ["Timestamp", ["<i8", 1]], ["Timestamp", []],
]  # fmt: skip


@pytest.mark.parametrize("form", FORGED)
def test_forged_tables_equal_nothing_and_cannot_be_made(form: Any) -> None:
    for kind in ("exact", "json", "float", "unordered", "python"):
        assert not compare.same_form(form, plain.encode(pd.Series([1])), Comparison(kind))  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        plain.decode(form)


def test_tables_that_need_hashes_are_not_made_of_what_a_caller_writes() -> None:
    assert written.read(plain.encode(sold())).form == plain.encode(sold())
    for name in ("categories", "grouped by two"):
        with pytest.raises(ValueError, match="inside a Series"):
            written.read(plain.encode(WRITTEN[name]()))


HEAD = "import pandas as pd\n"
SOLD = HEAD + "df = pd.DataFrame({'k': ['x', 'y', 'x'], 'v': [1, 2, 3]})\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "code", "right"),
    [
        (SOLD + "pd.testing.assert_series_equal(f(df), df.groupby('k').v.sum())", "d.groupby('k').v.sum()", True),
        (SOLD + "pd.testing.assert_series_equal(f(df), df.groupby('k').v.sum())", "d.groupby('k').v.max()", False),
        (SOLD + "pd.testing.assert_frame_equal(f(df), df.set_index('k'))", "d.set_index('k')", True),
        (SOLD + "pd.testing.assert_frame_equal(f(df), df)", "d.rename_axis('wrong')", False),
        (SOLD + "assert f(df.set_index('k')) == 'k'", "d.index.name", True),
        (HEAD + "s = pd.Series([1], dtype='int8')\npd.testing.assert_series_equal(f(s), s)", "d", True),
        (HEAD + "pd.testing.assert_series_equal(f(0), pd.Series([1]))", "pd.Series([1], dtype='int8')", False),
        (HEAD + "s = pd.Series([1], [pd.Timestamp('2020')])\nassert f(f(s).index[0]).year == 2020", "d", True),
    ],
)
def test_tests_meet_tables_as_the_answer_made_them(judge: Judge, test: str, code: str, right: bool) -> None:
    verdict = judge.verify(TestsTask("f", (test,), limits=ROOMY), f"{HEAD}def f(d): return {code}")
    assert verdict.correct is right, verdict.detail


@pytest.mark.slow
def test_tables_are_compared_as_results(judge: Judge) -> None:
    task = CallsTask("f", (Call((sold(),), sold().groupby("k").v.sum()),), limits=ROOMY, packages=("pandas",))
    assert judge.verify(task, "def f(d): return d.groupby('k').v.sum()").detail == "accepted"
    assert judge.verify(task, "def f(d): return d.groupby('k').v.sum().rename_axis(None)").correct is False
