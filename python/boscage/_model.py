"""What was learned: which parameters matter, which depend on each other, and what they do."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, overload

from . import _native
from ._space import Space, Value, point_json

if TYPE_CHECKING:
    import networkx


# What does less than this share of the variance is left out, as the program `boscage` does when it shows a study.
LEAST_SHARE = 0.005


def floats(data: bytes) -> Any:
    """Numbers from the native part: a NumPy array if NumPy is installed, otherwise an array of Python's."""
    try:
        import numpy
    except ImportError:
        numbers = array("d")
        numbers.frombytes(data)
        return numbers
    return numpy.frombuffer(data, dtype=float)


@dataclass(frozen=True)
class Edge:
    """Two parameters that were learned to depend on each other, and the share of structure samples that had the edge.

    With the default method that share estimates the probability that they do; of weak ones it is too low.
    """

    first: str
    second: str
    frequency: float


@dataclass(frozen=True)
class Importance:
    """How much a parameter matters: shares of the variance over the whole space.

    `main` is what it does alone, between `low` and `high` for nine of ten functions that fit as well; `total` has its pairs too.
    """

    parameter: str
    main: float
    low: float
    high: float
    total: float


@dataclass(frozen=True)
class PairImportance:
    """How much two parameters do together, beyond what each does alone."""

    first: str
    second: str
    share: float
    low: float
    high: float
    frequency: float | None


@dataclass(frozen=True)
class Point:
    """A point that was tried, with what the model expects there."""

    trial: int
    params: dict[str, Value]
    outcome: float
    mean: float
    std: float


@dataclass(frozen=True)
class Effect:
    """What one or two parameters do, on a grid: the outcome above or below its average over the space."""

    parameters: tuple[str, ...]
    values: tuple[list[Value], ...]
    mean: Any
    std: Any


Component = Effect


class Model:
    """What was learned of an objective.

    >>> import boscage
    >>> f = lambda p: (p["a"] * p["b"] - 1) ** 2 + p["c"]
    >>> space = {"a": (-2.0, 2.0), "b": (-2.0, 2.0), "c": (0.0, 1.0)}
    >>> model = boscage.minimize(f, space, n_trials=40, seed=1, progress=False).model
    >>> sorted(model.importances, key=lambda i: -i.total)[0].parameter in "ab"
    True
    >>> model.component("a", "b").mean.shape
    (21, 21)
    """

    def __init__(self, native: _native.Explanation, space: Space) -> None:
        self._native = native
        self._space = space
        self._names = space.names
        self._summary: dict[str, Any] = json.loads(native.summary())

    @property
    def edges(self) -> list[Edge]:
        """The learned dependency graph, strongest interaction first.

        Without edges that do less than 0.5 % of the variance; `pairs` has all.
        """
        return [
            Edge(pair.first, pair.second, pair.frequency)
            for pair in self.pairs
            if pair.frequency is not None and pair.share >= LEAST_SHARE
        ]

    @property
    def importances(self) -> list[Importance]:
        """How much each parameter matters, in the order of the space."""
        return [
            Importance(one["parameter"], one["main"]["value"], one["main"]["low"], one["main"]["high"], one["total"])
            for one in self._summary["parameters"]
        ]

    @property
    def pairs(self) -> list[PairImportance]:
        """How much each pair matters, strongest first; those that are no edge have no `frequency`."""
        return [
            PairImportance(
                pair["first"],
                pair["second"],
                pair["share"]["value"],
                pair["share"]["low"],
                pair["share"]["high"],
                pair["frequency"],
            )
            for pair in self._summary["pairs"]
        ]

    @property
    def recommended(self) -> Point:
        """The point to use: of all that were tried, the one of which the model expects most."""
        return Point(**self._summary["recommended"])

    @property
    def luckiest(self) -> Point:
        """The point with the best outcome, and what the model expects there."""
        return Point(**self._summary["luckiest"])

    @property
    def trust(self) -> dict[str, Any]:
        """How well each outcome is predicted from the others: `predicted` is the share of their variance."""
        return dict(self._summary["trust"])

    def comparison(self) -> dict[str, Any]:
        """How well models of other kinds predict the same outcomes, each from all others: shares of their variance.

        `model` is this one, `alone` a sum of functions of one parameter each, `forest` that with the likely `pairs`, `whole` one
        function of all parameters; `sentence` says what follows, and which ranges should be logarithmic. They are learned when
        this is called, which takes a moment.
        """
        found: dict[str, Any] = json.loads(self._native.comparison())
        return found

    @property
    def average(self) -> float:
        """The average of what is expected over the space, which effects are above or below of."""
        return float(self._summary["average"])

    def __str__(self) -> str:
        return str(self._summary["sentence"])

    def __repr__(self) -> str:
        return f"<Model of {len(self._names)} parameters, {len(self.edges)} edges>"

    def _index(self, name: str) -> int:
        try:
            return self._names.index(name)
        except ValueError:
            raise ValueError(f"there is no parameter {name!r}; there are {', '.join(self._names)}") from None

    def component(self, first: str, second: str | None = None) -> Effect:
        """What a parameter does, or a pair: mean and standard deviation on a grid."""
        if second is None:
            values, mean, std = self._native.main_effect(self._index(first))
            return Effect((first,), tuple(json.loads(values)), floats(mean), floats(std))
        values, mean, std = self._native.pair_surface(self._index(first), self._index(second))
        axes = tuple(json.loads(values))
        shape = tuple(len(axis) for axis in axes)
        reshaped = [
            numbers.reshape(shape) if hasattr(numbers, "reshape") else numbers for numbers in (floats(mean), floats(std))
        ]
        return Effect((first, second), axes, *reshaped)

    @overload
    def predict(self, points: Mapping[str, Any]) -> tuple[float, float]: ...
    @overload
    def predict(self, points: Iterable[Mapping[str, Any]]) -> tuple[Any, Any]: ...
    def predict(self, points: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> tuple[Any, Any]:
        """Mean and standard deviation of the objective, without noise: at one point, or at each of several."""
        if isinstance(points, Mapping):
            mean, std = self._native.predict(f"[{self._point(points)}]")
            return float(floats(mean)[0]), float(floats(std)[0])
        mean, std = self._native.predict(f"[{','.join(map(self._point, points))}]")
        return floats(mean), floats(std)

    def _point(self, point: Any) -> str:
        if not isinstance(point, Mapping):
            raise TypeError(f"a point is a dictionary, not {type(point).__name__}")
        return point_json(self._space._given(point))

    def __copy__(self) -> Model:
        # Nothing of it can change.
        return self

    def __deepcopy__(self, memo: Any) -> Model:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a model cannot be pickled; pickle the Result or the Optimizer, whose `model` is the same")

    def to_networkx(self) -> networkx.Graph[str]:
        """The learned graph (needs networkx): nodes with `importance`, edges with `share` and `frequency`."""
        import networkx

        graph: networkx.Graph[str] = networkx.Graph()
        for one in self.importances:
            graph.add_node(one.parameter, importance=one.main, total=one.total)
        for pair in self.pairs:
            if pair.frequency is not None and pair.share >= LEAST_SHARE:
                graph.add_edge(pair.first, pair.second, share=pair.share, frequency=pair.frequency)
        return graph
