"""Bayesian optimization of expensive functions with 10 to 1,000 parameters.

>>> import boscage
>>> result = boscage.minimize(
...     lambda p: (p["x"] - 1) ** 2 + (p["n"] - 3) ** 2,
...     {"x": (-5.0, 5.0), "n": (1, 8)},
...     n_trials=30,
...     seed=1,
...     progress=False,
... )
>>> result.best_value < 0.5
True
>>> result.best_params["n"]
3

The objective is modelled as a sum of functions of one or two parameters; which pairs depend on each other is learned on the
way (`result.model`). Spaces are plain dictionaries; see :class:`Real`, :class:`Integer`, :class:`Ordinal`,
:class:`Categorical` and :class:`Boolean` for defaults, scales and conditions.
"""

from typing import TYPE_CHECKING

from ._model import Component, Edge, Effect, Importance, Model, PairImportance, Point
from ._native import BoscageError, SpaceExhausted, StorageError, StudyChanged, __version__
from ._optimize import Optimizer, Result, Trial, maximize, methods, minimize
from ._space import Boolean, Categorical, Integer, Ordinal, Real, Space
from ._study import AskedTrial, Study, studies

if TYPE_CHECKING:
    from . import plots as plots
else:

    def __getattr__(name):
        # Only when it is used: drawing is not what most programs do.
        if name == "plots":
            import importlib

            return importlib.import_module(".plots", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AskedTrial",
    "Boolean",
    "BoscageError",
    "Categorical",
    "Component",
    "Edge",
    "Effect",
    "Importance",
    "Integer",
    "Model",
    "Optimizer",
    "Ordinal",
    "PairImportance",
    "Point",
    "Real",
    "Result",
    "Space",
    "SpaceExhausted",
    "StorageError",
    "Study",
    "StudyChanged",
    "Trial",
    "__version__",
    "maximize",
    "methods",
    "minimize",
    "studies",
]
