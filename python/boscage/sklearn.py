"""The additive Gaussian process as a regressor with scikit-learn's conventions.

It needs scikit-learn: ``pip install "boscage[sklearn]"``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _native
from ._model import Edge
from ._optimize import Method, _seed, method_json

try:
    import numpy
    from sklearn.base import BaseEstimator, RegressorMixin  # type: ignore[import-untyped]
    from sklearn.utils import check_random_state  # type: ignore[import-untyped]
    from sklearn.utils.validation import (  # type: ignore[import-untyped]
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError(
        f'boscage.sklearn needs scikit-learn 1.6 or later: pip install "boscage[sklearn]" ({error})'
    ) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AdditiveGPRegressor"]


class AdditiveGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A sum of functions of one or two features, with uncertainty; which features go together is learned.

    >>> import numpy
    >>> rng = numpy.random.default_rng(0)
    >>> X = rng.uniform(size=(80, 5))
    >>> y = numpy.sin(6 * X[:, 0]) + 4 * X[:, 1] * X[:, 2]
    >>> regressor = AdditiveGPRegressor().fit(X, y)
    >>> [(edge.first, edge.second) for edge in regressor.edges_]
    [('x1', 'x2')]
    >>> mean, std = regressor.predict(X[:3], return_std=True)
    >>> bool(abs(mean - y[:3]).max() < 0.01)
    True

    Features are scaled to the range they have in the training data; targets are standardised, with outliers drawn in.
    Far outside of that range the mean goes back to the average of the targets and the standard deviation to what it is
    without data. The time of `fit` grows with the third power of the number of rows: a few thousand rows are the
    limit. What comes out depends only on the data, the parameters and `random_state`.

    The fitted model is kept in native memory. Pickles and deep copies carry the training data instead of it, and the
    model is fitted again, with the same result, when it is first needed.

    Parameters
    ----------
    method
        ``"tree"`` (a forest of pairs), ``"overlap"``, ``"no-overlap"`` (groups), ``"gp-ucb"`` (one function of all
        features), or a dictionary with ``name`` and ``settings``, as everywhere in boscage.
    random_state
        A seed, a NumPy ``RandomState`` that one is drawn from, or ``None`` for a different one each time.

    Attributes
    ----------
    edges_
        The learned pairs, those first that most structure samples had, as :class:`boscage.Edge`. Features without a
        name are ``x0``, ``x1``, ….
    edge_frequencies_
        All pairs that any structure sample had, in the same form.
    noise_
        The standard deviation of the noise, in units of the targets.
    log_likelihood_
        The log marginal likelihood of the standardised targets.
    n_features_in_, feature_names_in_
        The number of features, and their names if the training data had names.
    """

    def __init__(self, method: Method = "tree", random_state: Any = 0) -> None:
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> AdditiveGPRegressor:
        """Learns which features go together, and the functions."""
        X, y = validate_data(self, X, y, dtype=numpy.float64, order="C", y_numeric=True)
        rows = numpy.ascontiguousarray(X, dtype=numpy.float64)
        targets = numpy.ascontiguousarray(y, dtype=numpy.float64)
        # Everything that fitting again needs, whatever becomes of the parameters and of the caller's arrays.
        self._training = (
            rows.tobytes(),
            int(rows.shape[1]),
            targets.tobytes(),
            method_json(self.method),
            self._seed(),
        )
        self._regression = _native.Regression.fit(*self._training)
        summary = json.loads(self._regression.summary())
        names = self._names()
        frequencies = {(low, high): share for low, high, share in summary["edge_frequencies"]}
        edges = [
            Edge(names[low], names[high], float(frequencies.get((low, high), 0.0))) for low, high in summary["edges"]
        ]
        self.edges_ = sorted(edges, key=lambda edge: -edge.frequency)
        every = [Edge(names[low], names[high], float(share)) for (low, high), share in frequencies.items()]
        self.edge_frequencies_ = sorted(every, key=lambda edge: -edge.frequency)
        self.noise_ = float(summary["noise"])
        self.log_likelihood_ = float(summary["log_likelihood"])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the function at each row; with `return_std`, its standard deviation (without noise) too."""
        check_is_fitted(self, "edges_")
        X = validate_data(self, X, dtype=numpy.float64, order="C", reset=False)
        rows = numpy.ascontiguousarray(X, dtype=numpy.float64)
        mean, std = (_writable(numbers) for numbers in self._fitted().predict(rows.tobytes()))
        return (mean, std) if return_std else mean

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, numpy.integer)) and not isinstance(self.random_state, bool):
            return _seed(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _fitted(self) -> _native.Regression:
        regression = self.__dict__.get("_regression")
        if regression is None:
            regression = self._regression = _native.Regression.fit(*self._training)
        return regression

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_regression", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags


def _writable(numbers: bytes) -> NDArray[numpy.float64]:
    return numpy.frombuffer(numbers, dtype=numpy.float64).copy()
