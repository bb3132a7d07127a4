"""What was learned, and that its parts agree with the whole."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import boscage

import numpy

SPACE: dict[str, Any] = {"a": (-2.0, 2.0), "b": (-2.0, 2.0), "c": (-1.0, 1.0), "d": (1, 4), "e": ["u", "v", "w"]}


def cost(params: dict[str, Any]) -> float:
    value: float = 3 * params["a"] * params["b"] + params["c"] ** 2 + 0.5 * params["d"]
    return value + {"u": 0.0, "v": 1.0, "w": 0.3}[params["e"]]


@pytest.fixture(scope="module")
def model() -> boscage.Model:
    optimizer = boscage.Optimizer(SPACE, seed=1)
    source = numpy.random.default_rng(1)
    for _ in range(150):
        params = {
            "a": source.uniform(-2, 2),
            "b": source.uniform(-2, 2),
            "c": source.uniform(-1, 1),
            "d": source.integers(1, 5),
            "e": source.choice(["u", "v", "w"]),
        }
        optimizer.tell(params, cost(params))
    for params in optimizer.ask(1):
        optimizer.tell(params, cost(params))
    found = optimizer.model
    assert found is not None
    return found


def test_nothing_is_learned_from_nothing() -> None:
    assert boscage.Optimizer(SPACE).model is None


def test_the_interaction_is_found(model: boscage.Model) -> None:
    assert (model.edges[0].first, model.edges[0].second) == ("a", "b")
    assert model.edges[0].frequency > 0.9
    assert all(0 <= edge.frequency <= 1 for edge in model.edges)
    # It is a forest.
    assert len(model.edges) < len(SPACE)
    strongest = model.pairs[0]
    assert (strongest.first, strongest.second) == ("a", "b")
    assert strongest.low <= strongest.share <= strongest.high
    assert "a and b must be tuned together" in str(model)


def test_importances_are_shares(model: boscage.Model) -> None:
    importances = model.importances
    assert [one.parameter for one in importances] == list(SPACE)
    assert all(0 <= one.low <= one.main <= one.high <= 1 for one in importances)
    assert all(one.main <= one.total + 1e-12 for one in importances)
    whole = sum(one.main for one in importances) + sum(pair.share for pair in model.pairs)
    assert 0.9 < whole <= 1 + 1e-9


def at(values: list[Any], mean: Any, value: Any) -> float:
    return float(mean[values.index(value)])


def test_components_sum_to_the_prediction(model: boscage.Model) -> None:
    """The average, every parameter's own effect and every pair's interaction are the model, to the last digits."""
    main = {name: model.component(name) for name in SPACE}
    edges = [(pair.first, pair.second) for pair in model.pairs]
    pairs = {edge: model.component(*edge) for edge in edges}
    grids = {name: list(main[name].values[0]) for name in SPACE}
    # A pair's grid may be coarser than a parameter's.
    for first, second in edges:
        for name, axis in zip((first, second), pairs[first, second].values):
            grids[name] = [value for value in grids[name] if value in axis]
    assert all(grids.values())
    source = numpy.random.default_rng(2)
    points, sums = [], []
    for _ in range(50):
        point = {name: grid[int(source.integers(len(grid)))] for name, grid in grids.items()}
        own = {name: at(list(main[name].values[0]), main[name].mean, point[name]) for name in SPACE}
        together = 0.0
        for (first, second), effect in pairs.items():
            i, j = effect.values[0].index(point[first]), effect.values[1].index(point[second])
            together += float(effect.mean[i, j]) - own[first] - own[second]
        points.append(point)
        sums.append(model.average + sum(own.values()) + together)
    mean, std = model.predict(points)
    assert numpy.allclose(mean, sums, atol=1e-9 * (1 + numpy.abs(mean).max()))
    assert mean.shape == std.shape == (50,) and (std >= 0).all()
    assert numpy.abs(mean - [cost(point) for point in points]).max() < 1.0


def test_effects_average_to_nothing(model: boscage.Model) -> None:
    for name in ("d", "e"):
        assert abs(float(numpy.mean(model.component(name).mean))) < 1e-6


def test_predictions(model: boscage.Model) -> None:
    point = {"a": 1.0, "b": 1.0, "c": 0.0, "d": 2, "e": "u"}
    mean, std = model.predict(point)
    assert isinstance(mean, float) and isinstance(std, float) and std >= 0
    several = model.predict([point, point])
    assert list(several[0]) == [mean, mean] and list(several[1]) == [std, std]
    assert [len(part) for part in model.predict([])] == [0, 0]
    for wrong, words in [
        ({**point, "a": 9.0}, 'parameter "a": 9.0 is not between -2 and 2'),
        ({"a": 1.0}, 'there is no value for "b"'),
        ({**point, "q": 1}, 'there is no parameter "q"'),
    ]:
        with pytest.raises(ValueError, match=words):
            model.predict(wrong)


def test_components(model: boscage.Model) -> None:
    effect = model.component("a", "e")
    assert effect.parameters == ("a", "e") and effect.values[1] == ["u", "v", "w"]
    assert effect.mean.shape == effect.std.shape == (len(effect.values[0]), 3)
    # The other way round it is the same, turned.
    turned = model.component("e", "a")
    assert numpy.allclose(turned.mean, effect.mean.T)
    assert model.component("d").values == ([1, 2, 3, 4],)
    with pytest.raises(ValueError, match="there is no parameter 'q'; there are a, b, c, d, e"):
        model.component("q")
    with pytest.raises(ValueError, match="there is no pair of parameters"):
        model.component("a", "a")


def test_points_and_trust(model: boscage.Model) -> None:
    for point in (model.recommended, model.luckiest):
        assert point.outcome == pytest.approx(cost(point.params))
        assert model.predict(point.params) == pytest.approx((point.mean, point.std))
    assert model.trust["observations"] == 151
    assert model.trust["predicted"] > 0.9


def test_edges_that_do_next_to_nothing_are_left_out(model: boscage.Model) -> None:
    learned = [pair for pair in model.pairs if pair.frequency is not None]
    assert 0 < len(model.edges) < len(model.pairs)
    assert all(pair.frequency is None or 0.05 <= pair.frequency <= 1.0 for pair in model.pairs)
    assert [(edge.first, edge.second) for edge in model.edges] == [
        (pair.first, pair.second) for pair in learned if pair.share >= 0.005
    ]


def test_other_models_are_compared(model: boscage.Model) -> None:
    found = model.comparison()
    assert found["model"] == model.trust["predicted"] and found["pairs"] == len(
        [pair for pair in model.pairs if (pair.frequency or 0.0) >= 0.5]
    )
    # What a and b do together no sum of functions of one parameter can say.
    assert found["alone"] < 0.5 < min(found["forest"], found["whole"], found["model"]) <= 1.0
    assert found["sentence"].startswith("Other models would predict: single parameters ")


def test_a_model_is_copied_and_not_pickled(model: boscage.Model) -> None:
    assert copy.copy(model) is model and copy.deepcopy({"model": model})["model"] is model
    with pytest.raises(TypeError, match="a model cannot be pickled; pickle the Result or the Optimizer"):
        pickle.dumps(model)
    result = boscage.minimize(cost, SPACE, n_trials=15, seed=1, progress=False)
    assert str(pickle.loads(pickle.dumps(result)).model) == str(result.model)


def test_the_model_is_made_once() -> None:
    optimizer = boscage.minimize(cost, SPACE, n_trials=15, seed=1, progress=False).optimizer
    first = optimizer.model
    assert first is not None and optimizer.model is first
    params = optimizer.ask()
    optimizer.tell(params, cost(params))
    second = optimizer.model
    assert second is not None and second is not first
    assert second.trust["observations"] == first.trust["observations"] + 1


def test_networkx(model: boscage.Model) -> None:
    import networkx
    graph = model.to_networkx()
    assert set(graph.nodes) == set(SPACE)
    assert {frozenset(edge) for edge in graph.edges} == {frozenset((edge.first, edge.second)) for edge in model.edges}
    assert networkx.is_forest(graph)
    assert graph.edges["a", "b"]["frequency"] == model.edges[0].frequency
    assert graph.nodes["a"]["total"] == model.importances[0].total
