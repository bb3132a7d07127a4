"""Pictures: that they show what they should, for every kind of parameter."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import boscage

import matplotlib
matplotlib.use("Agg")
from boscage import plots  # noqa: E402

SPACE: dict[str, Any] = {
    "a": (-2.0, 2.0),
    "b": (-2.0, 2.0),
    "rate": boscage.Real(1e-4, 1, log=True),
    "n": (1, 8),
    "mode": ["fast", "slow"],
    "cost in $ of $": bool,
}


def cost(params: dict[str, Any]) -> float | None:
    if params["n"] == 8:
        return None
    value: float = 3 * params["a"] * params["b"] + params["rate"] + 0.5 * params["n"]
    return value


@pytest.fixture(scope="module")
def result() -> boscage.Result:
    return boscage.maximize(cost, SPACE, n_trials=40, seed=1, progress=False)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")


def drawn(figure: Any, tmp_path: Path) -> None:
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5_000


def test_history(result: boscage.Result, tmp_path: Path) -> None:
    ax = plots.history(result)
    assert ax.get_ylabel() == "value (larger is better)"
    lines = {line.get_label(): list(line.get_ydata()) for line in ax.lines}  # type: ignore[arg-type]
    assert lines["value"] == [trial.value for trial in result.trials if trial.value is not None]
    best = lines["best so far"]
    assert best == sorted(best) and best[-1] == result.best_value
    failures = [trial.number for trial in result.trials if trial.state == "FAIL"]
    assert ("no value" in lines) == bool(failures)
    drawn(ax.figure, tmp_path)
    assert plots.history(result.optimizer, ax=ax) is ax


def test_history_of_a_study(tmp_path: Path) -> None:
    study = boscage.Study(SPACE, storage=str(tmp_path / "s.db"))
    assert plots.history(study).get_ylabel() == "value (smaller is better)"
    study.optimize(cost, n_trials=5)
    drawn(plots.history(study).figure, tmp_path)


def test_importances(result: boscage.Result, tmp_path: Path) -> None:
    model = result.model
    assert model is not None
    ax = plots.importances(model, top=4)
    names = [label.get_text() for label in ax.get_yticklabels()]
    expected = sorted(model.importances, key=lambda one: -one.total)[:4]
    assert names[::-1] == [one.parameter.replace("$", r"\$") for one in expected]
    drawn(ax.figure, tmp_path)


def test_main_effects(result: boscage.Result, tmp_path: Path) -> None:
    model = result.model
    assert model is not None
    figure = plots.main_effects(model)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == len(SPACE)
    drawn(figure, tmp_path)
    one = plots.main_effects(model, ["rate"])
    assert one.axes[0].get_xscale() == "log" and one.axes[0].get_xlabel() == "rate"
    assert list(one.axes[0].lines[-1].get_ydata()) == list(model.component("rate").mean)  # type: ignore[arg-type]


@pytest.mark.parametrize(("a", "b"), [("a", "b"), ("a", "rate"), ("a", "mode"), ("n", "mode"), ("mode", "cost in $ of $")])
def test_pairs(result: boscage.Result, tmp_path: Path, a: str, b: str) -> None:
    model = result.model
    assert model is not None
    ax = plots.pair(model, a, b)
    assert ax.get_xlabel() == a and ax.get_ylabel() == b.replace("$", r"\$")
    drawn(ax.figure, tmp_path)


def test_forest(result: boscage.Result, tmp_path: Path) -> None:
    model = result.model
    assert model is not None
    ax = plots.forest(model)
    assert {text.get_text() for text in ax.texts} == {name.replace("$", r"\$") for name in SPACE}
    assert len(ax.lines) == len(model.edges)
    drawn(ax.figure, tmp_path)
    assert "the 2 most important names are shown" not in ax.get_xlabel()
    assert "wider: they do more together; darker: it is surer" in ax.get_xlabel()
    few = plots.forest(model, labels=2)
    assert len(few.texts) == 2 and "the 2 most important names are shown" in few.get_xlabel()


def test_forest_widths_are_absolute(result: boscage.Result) -> None:
    model = result.model
    assert model is not None
    shares = {(pair.first, pair.second): pair.share for pair in model.pairs}
    expected = [1 + 6 * shares[edge.first, edge.second] ** 0.5 for edge in model.edges]
    assert [line.get_linewidth() for line in plots.forest(model).lines] == pytest.approx(expected)
    assert expected and all(shares[edge.first, edge.second] >= 0.005 for edge in model.edges)


def test_importances_of_a_model_that_knows_little(result: boscage.Result, tmp_path: Path) -> None:
    source = random.Random(1)
    noise = boscage.minimize(lambda _: source.random(), SPACE, n_trials=15, seed=1, progress=False)
    model = noise.model
    assert model is not None and model.trust["predicted"] < 0.2
    ax = plots.importances(noise, top=3)
    assert ax.get_title() == "the 3 most important of 6 parameters\nthe model predicts little of the outcomes yet"
    drawn(ax.figure, tmp_path)
    assert result.model is not None and result.model.trust["predicted"] > 0.2
    assert plots.importances(result).get_title() == ""


def test_whatever_has_a_model_can_be_drawn(result: boscage.Result) -> None:
    for run in (result, result.optimizer):
        assert plots.forest(run).get_title() == plots.forest(run.model).get_title()  # type: ignore[arg-type]
        assert plots.pair(run, "a", "b").get_xlabel() == "a"
        assert len(plots.main_effects(run, "a").axes) == 1


@pytest.mark.parametrize("count", [1, 2, 30, 250])
def test_no_two_nodes_are_in_one_place(count: int) -> None:
    names = [f"x{d}" for d in range(count)]
    for edges in (
        [],
        [boscage.Edge(a, b, 1.0) for a, b in zip(names, names[1:])],
        [boscage.Edge(names[0], name, 1.0) for name in names[1:]],
        [boscage.Edge(names[d], names[d // 2], 1.0) for d in range(1, count) if d % 7],
    ):
        places = plots._places(names, edges)
        assert set(places) == set(names)
        spots = sorted(places.values())
        assert len({(round(x, 6), round(y, 6)) for x, y in spots}) == count


def test_what_cannot_be_drawn(result: boscage.Result) -> None:
    model = result.model
    assert model is not None
    empty = boscage.Optimizer(SPACE)
    assert not plots.history(empty).lines
    with pytest.raises(ValueError, match="nothing was learned yet"):
        plots.forest(empty.model)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Result, Study or Optimizer has a history, not int"):
        plots.history(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="can be drawn, not str"):
        plots.importances("model")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no parameter 'q'"):
        plots.pair(model, "q", "a")
    with pytest.raises(ValueError, match="no parameters are given"):
        plots.main_effects(model, [])
