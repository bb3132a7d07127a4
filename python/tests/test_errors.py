"""Whatever is given to whatever can be called: only ordinary exceptions come back."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import boscage
from boscage import _native


class Odd:
    """Something with an `item` that is of no use."""

    ndim = 0

    def item(self) -> Any:
        return self


def garbage(tmp_path: Path) -> list[Any]:
    return [
        None, True, 0, -1, 3, 2**63, 2**64, 10**40, 0.5, -0.0, 1e308, 1e-320, math.nan, math.inf, -math.inf, 1j,
        "", "x", "tree", "minimize", "{}", "[]", "[[]]", '{"x": 1}', "null", "\0", "\ud800", "é" * 50, "x == ", "`x` > 1",
        b"", b"\xff" * 9, (), (1,), (0.0, 1.0), (1, 2, 3), [], [None], ["a", "b"], [{}], [{"x": 0.5}],
        {}, {"x": None}, {"x": 0.5}, {"x": (0.0, 1.0)}, {None: 1}, {"x": {"x": {}}}, {"name": "tree", "settings": []},
        set(), object(), Odd(), int, bool, len, lambda *_: None, range(3), boscage.Real(0, 1), boscage.Integer(3, 1),
        boscage.Categorical([]), boscage.Trial(0, {}), boscage.Trial(-5, {"x": 2}), boscage.Space({"x": (0.0, 1.0)}),
        str(tmp_path), str(tmp_path / "new" / "file.db"),
    ]  # fmt: skip


def calls(tmp_path: Path) -> dict[str, Callable[..., Any]]:
    """Everything that is public, by name; what keeps a state gets a new one each time."""
    space = {"x": (0.0, 1.0), "n": (1, 3)}

    def optimizer() -> boscage.Optimizer:
        made = boscage.Optimizer(space, method="random")
        made.ask()
        return made

    store = tmp_path / "garbage.db"
    study = boscage.Study(space, storage=str(store), method="random")
    learned = boscage.minimize(lambda p: p["x"], space, n_trials=12, progress=False)
    model = learned.model
    assert model is not None
    found: dict[str, Callable[..., Any]] = {
        name: getattr(boscage, name)
        for name in boscage.__all__
        if callable(getattr(boscage, name)) and name not in ("minimize", "maximize", "Model", "Result", "Study", "studies")
    }
    for name in ("ask", "tell", "fail", "enqueue", "load"):
        found[f"Optimizer.{name}"] = lambda *a, _name=name, **k: getattr(optimizer(), _name)(*a, **k)
    for name in ("ask", "tell", "enqueue"):
        found[f"Study.{name}"] = getattr(study, name)
    for name in ("component", "predict"):
        found[f"Model.{name}"] = getattr(model, name)
    found["minimize"] = lambda f, s, n, j: boscage.minimize(f, s, n_trials=n, n_jobs=j, timeout=0.01, progress=False)
    found["studies"] = lambda s: boscage.studies(s)
    for kind in (_native.Optimization, _native.Explanation):
        made: Any = optimizer()._native if kind is _native.Optimization else model._native
        for name in dir(kind):
            if not name.startswith("_"):
                found[f"_native.{kind.__name__}.{name}"] = getattr(made, name)
    for name in ("space", "import_space", "method_settings"):
        found[f"_native.{name}"] = getattr(_native, name)
    found["_native.Regression.fit"] = _native.Regression.fit
    found["_native.Optimization"] = _native.Optimization
    return found


def test_only_ordinary_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = random.Random(1)
    things = garbage(tmp_path)
    refused = 0
    for name, call in calls(tmp_path).items():
        try:
            most = len(inspect.signature(call).parameters)
        except (TypeError, ValueError):
            most = 4
        most = min(most, 5) or 1
        tries = [[thing] for thing in things]
        tries += [[source.choice(things) for _ in range(source.randint(0, most + 1))] for _ in range(150)]
        for arguments in tries:
            # So many points would take a while, and nobody would call it an error.
            if name == "Optimizer.ask" and any(isinstance(one, int) and one > 100 for one in arguments):
                continue
            try:
                call(*arguments)
            except Exception as error:
                refused += 1
                assert "boscage has made a mistake" not in str(error), (name, arguments)
            except BaseException as error:
                raise AssertionError(f"{name}{tuple(arguments)!r} raised {type(error)!r}") from error
    assert refused > 1_000


def test_exceptions_have_their_places() -> None:
    for kind in (boscage.SpaceExhausted, boscage.StorageError, boscage.StudyChanged):
        assert issubclass(kind, boscage.BoscageError)
    assert issubclass(boscage.BoscageError, Exception)
    assert not issubclass(boscage.BoscageError, ValueError)


def test_garbage_from_the_objective() -> None:
    for value in ("1", [], {}, object(), True, Odd()):
        with pytest.raises(TypeError, match="the value of trial 0 is .* which is not a number"):
            boscage.minimize(lambda _: value, {"x": (0.0, 1.0)}, n_trials=2, progress=False)
