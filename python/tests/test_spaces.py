"""Spaces: every form they may have, and what is said about those that make no sense."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import boscage
from boscage import Boolean, Categorical, Integer, Ordinal, Real, Space

import numpy
NAN, INF = math.nan, math.inf


def parameters(space: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Space(space).json)["parameters"]
    return found


def test_every_form_of_a_parameter() -> None:
    space = {
        "real": (0, 1.0),
        "integer": (1, 8),
        "choices": ["a", 2, True],
        "three": (1, 2, 3),
        "truth": bool,
        "numpy": (numpy.float64(0.5), numpy.int64(2)),
        "numpy integer": (numpy.int32(1), numpy.int64(2)),
        "array": numpy.array([1, 2, 4]),
        "as in a file": {"type": "integer", "low": 1, "high": 4},
        "log": Real(1e-4, 1, log=True, default=0.01),
        "step": Real(0, 1, step=0.25),
        "even": Integer(2, 8, step=2),
        "ratio": Integer(1, 1024, log=True, default=4),
        "level": Ordinal(["low", "mid", "high"], default="mid"),
        "mode": Categorical(["x", "y"], condition="truth == true"),
        "flag": Boolean(default=True),
    }
    assert parameters(space) == [
        {"name": "real", "type": "real", "low": 0.0, "high": 1.0},
        {"name": "integer", "type": "integer", "low": 1, "high": 8},
        {"name": "choices", "type": "categorical", "choices": ["a", 2, True]},
        {"name": "three", "type": "categorical", "choices": [1, 2, 3]},
        {"name": "truth", "type": "boolean"},
        {"name": "numpy", "type": "real", "low": 0.5, "high": 2.0},
        {"name": "numpy integer", "type": "integer", "low": 1, "high": 2},
        {"name": "array", "type": "categorical", "choices": [1, 2, 4]},
        {"name": "as in a file", "type": "integer", "low": 1, "high": 4},
        {"name": "log", "type": "real", "low": 1e-4, "high": 1.0, "log": True, "default": 0.01},
        {"name": "step", "type": "real", "low": 0.0, "high": 1.0, "step": 0.25},
        {"name": "even", "type": "integer", "low": 2, "high": 8, "step": 2},
        {"name": "ratio", "type": "integer", "low": 1, "high": 1024, "log": True, "default": 4},
        {"name": "level", "type": "ordinal", "levels": ["low", "mid", "high"], "default": "mid"},
        {"name": "mode", "type": "categorical", "choices": ["x", "y"], "condition": "truth == true"},
        {"name": "flag", "type": "boolean", "default": True},
    ]
    assert Space(space).names == list(space)
    assert len(Space(space)) == len(space)


def test_points_are_of_their_types_and_within_their_bounds() -> None:
    space = {
        "x": (-1.0, 2.0),
        "n": Integer(2, 8, step=2),
        "s": Real(0, 1, step=0.25),
        "m": ["a", 2, True],
        "b": bool,
        "z": Real(0, 1, condition='m == "a"'),
    }
    with_z = 0
    for point in boscage.Optimizer(space, method="random", seed=1).ask(60):
        assert set(point) - {"z"} == {"x", "n", "s", "m", "b"}
        assert isinstance(point["x"], float) and -1 <= point["x"] <= 2
        assert type(point["n"]) is int and point["n"] in (2, 4, 6, 8)
        assert point["s"] in (0, 0.25, 0.5, 0.75, 1)
        assert any(point["m"] is choice or point["m"] == choice for choice in ["a", 2, True])
        assert type(point["b"]) is bool
        assert ("z" in point) == (point["m"] == "a")
        with_z += "z" in point
    assert 0 < with_z < 60


def test_forbidden_points_are_not_asked_for() -> None:
    space = Space({"a": (1, 4), "b": (1, 4)}, forbidden=["a > 2 and b > 2"])
    for point in boscage.Optimizer(space, method="random", seed=3).ask(12):
        assert not (point["a"] > 2 and point["b"] > 2)


def test_equal_spaces_are_equal() -> None:
    assert Space({"x": (0.0, 1.0)}) == Space({"x": (0.0, 1.0)})
    assert Space({"x": (0.0, 1.0)}) != Space({"x": (0.0, 2.0)})
    assert Space(Space({"x": (0.0, 1.0)}).parameters).names == ["x"]


def test_optuna_distributions() -> None:
    import optuna
    of = optuna.distributions
    space = {
        "x": of.FloatDistribution(1e-3, 1.0, log=True),
        "s": of.FloatDistribution(0.0, 1.0, step=0.5),
        "n": of.IntDistribution(1, 9, step=2),
        "k": of.IntDistribution(1, 64, log=True),
        "c": of.CategoricalDistribution(["a", 1, 2.5]),
        "b": of.CategoricalDistribution([True, False]),
    }
    assert parameters(space) == [
        {"name": "x", "type": "real", "low": 1e-3, "high": 1.0, "log": True},
        {"name": "s", "type": "real", "low": 0.0, "high": 1.0, "step": 0.5},
        {"name": "n", "type": "integer", "low": 1, "high": 9, "step": 2},
        {"name": "k", "type": "integer", "low": 1, "high": 64, "log": True},
        {"name": "c", "type": "categorical", "choices": ["a", 1, 2.5]},
        {"name": "b", "type": "boolean"},
    ]
    with pytest.raises(ValueError, match=r"parameter 'c': choices must be numbers, text or truth values, not \[None, 1\]"):
        Space({"c": of.CategoricalDistribution([None, 1])})


def test_configspace() -> None:
    import ConfigSpace as configspace
    theirs = configspace.ConfigurationSpace(seed=1)
    mode = configspace.Categorical("mode", ["fast", "slow"], default="slow")
    rate = configspace.Float("rate", (1e-4, 1.0), log=True, default=0.1)
    layers = configspace.Integer("layers", (1, 8), default=2)
    level = configspace.OrdinalHyperparameter("level", ["low", "mid", "high"])
    theirs.add(mode, rate, layers, level)
    theirs.add(configspace.EqualsCondition(rate, mode, "fast"))
    theirs.add(
        configspace.ForbiddenAndConjunction(
            configspace.ForbiddenEqualsClause(mode, "slow"), configspace.ForbiddenEqualsClause(layers, 8)
        )
    )
    ours = Space(theirs)
    assert sorted(ours.names) == ["layers", "level", "mode", "rate"]
    found = {parameter["name"]: parameter for parameter in json.loads(ours.json)["parameters"]}
    assert found["rate"]["log"] is True and found["rate"]["default"] == 0.1
    assert found["level"]["levels"] == ["low", "mid", "high"]
    for point in boscage.Optimizer(ours, method="random", seed=2).ask(60):
        assert ("rate" in point) == (point["mode"] == "fast")
        assert not (point["mode"] == "slow" and point["layers"] == 8)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    ({}, ValueError, "the space has no parameters"),
    (None, TypeError, "a space is a dictionary from names to ranges, such as {'x': (0.0, 1.0)}, not NoneType"),
    ("x", TypeError, "a space is a dictionary from names to ranges, such as {'x': (0.0, 1.0)}, not str"),
    ({1: (0, 1)}, TypeError, "the name 1 is not text"),
    ({"": (0, 1)}, ValueError, "empty name"),
    ({"x": None}, TypeError, "parameter 'x': None is no range"),
    ({"x": 3}, TypeError, "parameter 'x': 3 is no range"),
    ({"x": "ab"}, TypeError, "parameter 'x': 'ab' is no range"),
    ({"x": int}, TypeError, "parameter 'x': <class 'int'> is no range"),
    ({"x": (0, NAN)}, ValueError, "parameter 'x': the bound nan is not finite"),
    ({"x": (-INF, 0.0)}, ValueError, "parameter 'x': the bound -inf is not finite"),
    ({"x": (1.0, 0.0)}, ValueError, 'parameter "x": low 1 is above high 0; swap them'),
    ({"x": []}, ValueError, 'parameter "x": there are no choices'),
    ({"x": ["a", "a"]}, ValueError, 'parameter "x": the choice a occurs twice'),
    ({"x": Real(0, 1, log=True)}, ValueError, 'parameter "x": a log scale needs low above 0, not 0'),
    ({"x": Real(0, 1, default=2)}, ValueError, 'parameter "x": the default: 2 is not between 0 and 1'),
    ({"x": Boolean(default="yes")}, ValueError, 'parameter "x": the default: yes is not false or true'),  # type: ignore[arg-type]
    ({"x": Real(0, 1, condition="y == 1")}, ValueError, 'parameter "x": its condition `y == 1`: there is no parameter "y"'),
    ({"x": {"type": "reel"}}, ValueError, "unknown variant `reel`"),
    ({"x": {"type": "real", "low": 0, "high": 1, "lgo": True}}, ValueError, "unknown field `lgo`"),
    ({"x": (0.1, 1.0, "log")}, TypeError, "parameter 'x': (0.1, 1.0, 'log') is no range; write Real(0.1, 1.0, log=True)"),
    ({"x": (1, 8, "log-uniform")}, TypeError, "write Integer(1, 8, log=True) for a log scale"),
    ({"x": [0.0, 1.0]}, TypeError, "write (0.0, 1.0) for a range, Categorical([0.0, 1.0]) for two choices"),
    ({"x": numpy.array([0.0, 1.0])}, TypeError, "write (0.0, 1.0) for a range, Categorical([0.0, 1.0]) for two choices"),
    ({"x": {"name": "y", "type": "boolean"}}, ValueError, "parameter 'x': its dictionary has the name 'y'; leave that out"),
    ({"x": Integer(0.5, 3)}, TypeError, "parameter 'x': the bound 0.5 is not an integer; Real is for real numbers"),  # type: ignore[arg-type]
    ({"x": Integer(0, 9, step=1.5)}, TypeError, "parameter 'x': the step 1.5 is not an integer"),  # type: ignore[arg-type]
    ({"x": (0, 2**63)}, ValueError, "parameter 'x': the bound 9223372036854775808 is beyond integers of 64 bits"),
    ({"x": {"type": "integer", "low": 0, "high": True}}, TypeError, "parameter 'x': the bound True is not an integer"),
    ({"x": Real(0, 10**400)}, ValueError, "parameter 'x': a bound or the step is beyond numbers of 64 bits"),
    ({"x": (0.5, 10**400)}, ValueError, "is beyond numbers of 64 bits"),
    ({"x": Real(0, 1, condition=3)}, TypeError, "parameter 'x': the condition 3 is not text"),  # type: ignore[arg-type]
    ({"x": {"type": "boolean", "condition": ["b"]}}, TypeError, "parameter 'x': the condition ['b'] is not text"),
    ({"x": [object()]}, TypeError, "is not a number, text or truth value"),
]


def test_two_real_choices_may_be_meant() -> None:
    space = {"x": Categorical([0.0, 1.0]), "y": [0.0, 0.5, 1.0], "z": {"name": "z", "type": "boolean"}, "n": [1, 2]}
    assert [one["type"] for one in parameters(space)] == ["categorical", "categorical", "boolean", "categorical"]


@pytest.mark.parametrize(("space", "kind", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_refused(space: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as raised:
        Space(space)
    assert words in str(raised.value)


# Each message has the name of the parameter that is wrong.
NAMED: list[Any] = [
    {"good": (0, 1), "wrong": [None]},
    {"good": (0, 1), "wrong": [[1]]},
    {"good": (0, 1), "wrong": [NAN, 1.0]},
    {"good": (0, 1), "wrong": Real("a", 1)},  # type: ignore[arg-type]
    {"good": (0, 1), "wrong": Real(None, 1)},  # type: ignore[arg-type]
    {"good": (0, 1), "wrong": Real(0, NAN)},
    {"good": (0, 1), "wrong": Real(0, 1, step=INF)},
    {"good": (0, 1), "wrong": Real(0, 1, default=NAN)},
    {"good": (0, 1), "wrong": Integer(0.5, 3)},  # type: ignore[arg-type]
    {"good": (0, 1), "wrong": Integer(0, 3, step=None)},  # type: ignore[arg-type]
    {"good": (0, 1), "wrong": (10**30, 10**31)},
    {"good": (0, 1), "wrong": Categorical(3)},  # type: ignore[arg-type]
    {"good": (0, 1), "wrong": Categorical("abc")},
    {"good": (0, 1), "wrong": Real(0, 1, condition="((")},
    {"good": (0, 1), "wrong": {"type": "reel"}},
    {"good": (0, 1), "wrong": {"type": "real", "low": 0, "high": 1, "lgo": True}},
    {"good": (0, 1), "wrong": {"low": 0, "high": 1}},
    {"good": (0, 1), "wrong": {"b", "a"}},
]


@pytest.mark.parametrize("space", NAMED, ids=lambda value: str(value["wrong"])[:40])
def test_the_parameter_is_named(space: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        Space(space)
    assert "wrong" in str(raised.value)


@pytest.mark.parametrize("forbidden", [["x >"], ["y > 1"], [3], ["x"]])
def test_forbidden_conditions_that_make_no_sense(forbidden: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Space({"x": (0.0, 1.0)}, forbidden=forbidden)


def test_a_point_by_numpy_is_a_point() -> None:
    optimizer = boscage.Optimizer({"x": (0.0, 1.0), "n": (1, 8), "b": bool, "m": ["a", "b"]})
    point = {"x": numpy.float64(0.5), "n": numpy.int64(3), "b": numpy.bool_(True), "m": numpy.str_("b")}
    optimizer.tell(point, numpy.float64(1.5))
    optimizer.tell({**point, "x": numpy.array(0.25)}, numpy.array(2))
    assert [trial.value for trial in optimizer.trials] == [1.5, 2.0]
    assert optimizer.trials[0].params == {"x": 0.5, "n": 3, "b": True, "m": "b"}
