"""Boscage as a search algorithm of Ray Tune: on a cluster, with Tune's schedulers, loggers and checkpoints.

It needs Ray: ``pip install "boscage[ray]"``.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _native
from ._model import Model
from ._optimize import Method, Optimizer, number
from ._space import Categorical, Integer, Real, Space, as_space, dumps, plain

try:
    from ray.tune.result import DEFAULT_METRIC
    from ray.tune.search import Searcher
    from ray.tune.search import sample as tune_sample
except ImportError as error:
    raise ImportError(f'boscage.ray needs Ray Tune: pip install "boscage[ray]" ({error})') from error

__all__ = ["BoscageSearch"]

logger = logging.getLogger(__name__)

_FORMAT = 2


class BoscageSearch(Searcher):
    """Suggests what to try next in a Ray Tune experiment.

    >>> from ray import tune
    >>> search = BoscageSearch(seed=1)
    >>> space = {"rate": tune.loguniform(1e-4, 1e-1), "net": {"layers": tune.randint(1, 9)}, "epochs": 5}
    >>> search.set_search_properties("loss", "min", space)
    True
    >>> config = search.suggest("a")
    >>> sorted(config), 1 <= config["net"]["layers"] <= 8
    (['net', 'rate'], True)
    >>> search.on_trial_complete("a", {"loss": 0.25})
    >>> search.optimizer.best.value
    0.25

    With a tuner: ``tune.Tuner(train, param_space=space, tune_config=tune.TuneConfig(metric="loss", mode="min",
    search_alg=BoscageSearch(), num_samples=100, max_concurrent_trials=4))``.

    Ranges come from the tuner's ``param_space``: ``uniform``, ``quniform``, ``loguniform``, ``qloguniform``,
    ``randint``, ``qrandint``, ``lograndint``, ``qlograndint`` and ``choice``, in nested dictionaries too; everything
    else in it is a constant. Or they are given here, as anything that :class:`boscage.Space` takes; names with ``/``
    then stand for nested dictionaries, and constants beside Tune's ranges are part of every configuration. Trials that
    are running count as pending; trials that end with an error, without the metric or with NaN have failed.

    The saved state is JSON and holds no code: choices and constants that JSON does not know come from the space again.

    Parameters
    ----------
    space
        The ranges, if they are not in ``param_space``.
    metric, mode
        What the trials report, and ``"min"`` or ``"max"``, if the tuner does not say it.
    method, seed
        As in :class:`boscage.Optimizer`.
    points_to_evaluate
        Configurations to begin with; what one leaves out is chosen.
    max_concurrent
        How many trials may run at once; None for no limit.
    """

    def __init__(
        self,
        space: Any = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        method: Method = None,
        seed: int | None = 0,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
        max_concurrent: int | None = None,
    ) -> None:
        _check_metric(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._method = method
        self._seed = seed
        self._points = [dict(point) for point in points_to_evaluate]
        self._max_concurrent: int | None = None
        if max_concurrent is not None:
            self.set_max_concurrency(max_concurrent)
        # Choices of a parameter that JSON does not know: there they are called by their index.
        self._objects: dict[str, list[Any]] = {}
        # Steps on a log scale, which the engine does not have: it sees how many steps a value is.
        self._steps: dict[str, float] = {}
        # What else was in the space that was given here; what is in the tuner's, Tune adds itself. Each value in a list, which
        # is empty as long as it is not known.
        self._constants: dict[str, list[Any]] = {}
        self._space: Space | None = None
        self._optimizer: Optimizer | None = None
        self._live: dict[str, int] = {}
        self._configs: dict[str, dict[str, Any]] = {}
        if space is not None:
            if isinstance(space, Mapping) and any(_is_domain(value) for _, value in _leaves(space)):
                self._space, self._objects, self._steps = _converted(space)
                self._constants = {name: [value] for name, value in _leaves(space) if not _is_domain(value)}
            else:
                self._space = as_space(space)
            self._begin()

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer: all trials, the best one, and what was learned."""
        if self._optimizer is None:
            missing = "space (the tuner's param_space)" if self._space is None else "mode ('min' or 'max')"
            raise RuntimeError(f"the search has no {missing} yet")
        return self._optimizer

    @property
    def model(self) -> Model | None:
        """What was learned; none as long as nothing was."""
        return None if self._optimizer is None else self._optimizer.model

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Takes metric, mode and ranges from a tuner. False if there is another space already."""
        _check_metric(metric, mode)
        has_domains = any(_is_domain(value) for _, value in _leaves(config))
        if self._space is not None and has_domains:
            space, objects, steps = _converted(config)
            if (space.json, steps) != (self._space.json, self._steps):
                return False
            self._objects = objects
            known = dict(_leaves(config))
            self._constants = {n: [known[n]] if n in known else value for n, value in self._constants.items()}
        elif has_domains:
            self._space, self._objects, self._steps = _converted(config)
        elif self._space is None:
            # Without anything to vary there is nothing to search; Tune says so when it asks.
            return False
        if mode is not None and self._mode is not None and mode != self._mode and self._optimizer is not None:
            raise ValueError(f"the search was begun with mode {self._mode!r}; it cannot go on with {mode!r}")
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        self._begin()
        return True

    def _begin(self) -> None:
        if self._optimizer is not None or self._space is None or self._mode is None:
            return
        self._metric = self._metric or DEFAULT_METRIC
        goal = "maximize" if self._mode == "max" else "minimize"
        self._optimizer = Optimizer(self._space, goal=goal, method=self._method, seed=self._seed)
        for point in self._points:
            self._optimizer.enqueue(self._flat(point))

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]
        """The next configuration; None if enough trials are running, `FINISHED` if everything has been tried."""
        if trial_id in self._configs:
            return self._nested(self._configs[trial_id])
        if self._max_concurrent is not None and len(self._live) >= self._max_concurrent:
            return None
        try:
            trial = self.optimizer.ask_trial()
        except _native.SpaceExhausted:
            return str(Searcher.FINISHED)
        self._live[trial_id] = trial.number
        self._configs[trial_id] = dict(trial.params)
        return self._nested(trial.params)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Takes in what came out of a trial; of one that was not suggested here, nothing."""
        trial = self._live.pop(trial_id, None)
        self._configs.pop(trial_id, None)
        if trial is None:
            logger.debug("nothing is known of trial %s", trial_id)
            return
        value, reason = self._value(result)
        if error:
            self.optimizer.fail(trial, "the trial ended with an error")
        elif value is None:
            self.optimizer.fail(trial, reason)
        else:
            self.optimizer.tell(trial, value)

    def _value(self, result: Mapping[str, Any] | None) -> tuple[float | None, str]:
        if not result:
            return None, "the trial ended without a result"
        found: Any = result.get(str(self._metric))
        if found is None:
            # Tune flattens results; others may not.
            found = dict(_leaves(result)).get(str(self._metric))
        if found is None:
            return None, f"the result has no {self._metric!r}"
        try:
            return number(found), f"{self._metric!r} is {found}"
        except TypeError as error:
            return None, str(error)

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Takes in a point that was evaluated elsewhere. If it was pruned, it counts as failed."""
        outcome = None if error or pruned else number(value)
        # Never one that is running here, even if it is the same point.
        trial = self.optimizer._native.add(dumps(self._flat(parameters)))
        if outcome is None:
            reason = "the trial ended with an error" if error else "pruned" if pruned else f"the value is {value}"
            self.optimizer.fail(trial, reason)
        else:
            self.optimizer.tell(trial, outcome)

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Sets how many trials may run at once. True: it is kept to here."""
        if isinstance(max_concurrent, bool) or not isinstance(max_concurrent, int) or max_concurrent < 1:
            raise ValueError(f"max_concurrent is {max_concurrent!r}; it must be a whole number from 1")
        self._max_concurrent = max_concurrent
        return True

    def get_state(self) -> dict[str, Any]:
        """The state, as data."""
        return {
            "boscage_search": _FORMAT,
            "metric": self._metric,
            "mode": self._mode,
            "max_concurrent": self._max_concurrent,
            "objects": {name: _data(choices) for name, choices in self._objects.items()},
            "constants": {name: _data(value) for name, value in self._constants.items()},
            "steps": self._steps,
            "live": self._live,
            "configs": self._configs,
            "optimizer": None if self._optimizer is None else json.loads(self._optimizer.save()),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from what `get_state` gave."""
        if state.get("boscage_search") != _FORMAT:
            raise ValueError("this is not the state of a BoscageSearch of this version")
        optimizer = None if state["optimizer"] is None else Optimizer.load(json.dumps(state["optimizer"]))
        self._metric, self._mode = state["metric"], state["mode"]
        self._max_concurrent = state["max_concurrent"]
        self._live = {str(trial): int(number) for trial, number in state["live"].items()}
        self._configs = {str(trial): dict(config) for trial, config in state["configs"].items()}
        # What is not known yet comes with the tuner's param_space.
        self._objects = {name: list(found) or self._objects.get(name, []) for name, found in state["objects"].items()}
        self._constants = {n: list(found) or self._constants.get(n, []) for n, found in state["constants"].items()}
        self._steps = dict(state["steps"])
        if optimizer is not None:
            self._optimizer, self._space = optimizer, optimizer.space

    def save(self, checkpoint_path: str) -> None:
        """Writes the state, as JSON."""
        text = json.dumps(self.get_state(), allow_nan=False)
        with open(checkpoint_path, "w", encoding="utf-8") as file:
            file.write(text)

    def restore(self, checkpoint_path: str) -> None:
        """Goes on from what `save` wrote."""
        try:
            with open(checkpoint_path, encoding="utf-8") as file:
                state = json.load(file)
            if not isinstance(state, dict):
                raise ValueError("it is not a JSON object")
            self.set_state(state)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{checkpoint_path} does not hold the state of a BoscageSearch: {error}") from error

    def _nested(self, params: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: _restored(name, known)[0] for name, known in self._constants.items()}
        values.update({name: self._decoded(name, value) for name, value in params.items()})
        config: dict[str, Any] = {}
        for name, value in values.items():
            *above, last = name.split("/")
            place = config
            for key in above:
                place = place.setdefault(key, {})
            place[last] = value
        return config

    def _decoded(self, name: str, value: Any) -> Any:
        if name in self._objects:
            return _restored(name, self._objects[name])[int(value)]
        return value * self._steps[name] if name in self._steps else value

    def _flat(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The values of our parameters in a configuration, without what else there is in it."""
        assert self._space is not None
        names = set(self._space.names)
        flat = {name: value for name, value in [*_leaves(config), *config.items()] if name in names}
        for name, objects in self._objects.items():
            if name in flat:
                at = next((i for i, one in enumerate(objects) if one is flat[name] or _equal(one, flat[name])), None)
                if at is None:
                    raise ValueError(f"{name!r} is {flat[name]!r}, which is none of its choices")
                flat[name] = str(at)
        for name, step in self._steps.items():
            if name in flat:
                flat[name] = round(plain(flat[name]) / step)
        return {name: plain(value) for name, value in flat.items()}


def _restored(name: str, known: list[Any]) -> list[Any]:
    """What is known of a parameter that JSON has no words for."""
    if not known:
        raise RuntimeError(f"the values of {name!r} are not in the saved state; give the searcher or the tuner the space")
    return known


def _data(values: list[Any]) -> list[Any]:
    """Values that JSON gives back as they are; otherwise nothing."""
    try:
        same: list[Any] = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return []
    return same if all(map(_equal, same, values)) else []


def _equal(one: Any, other: Any) -> bool:
    """Whether two choices are the same, also where == gives an array or an error."""
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def _check_metric(metric: Any, mode: Any) -> None:
    if isinstance(metric, (list, tuple)) or isinstance(mode, (list, tuple)):
        raise ValueError("boscage searches for one metric; several were given")
    if mode not in (None, "min", "max"):
        raise ValueError(f"the mode is {mode!r}; it must be 'min' or 'max'")


def _is_domain(value: Any) -> bool:
    return isinstance(value, tune_sample.Domain) or (isinstance(value, Mapping) and set(value) == {"grid_search"})


def _leaves(config: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """What is in nested dictionaries (and lists), with names such as ``a/b``."""
    for key, value in config.items():
        name = f"{above}{key}"
        if _is_domain(value):
            yield name, value
        elif isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/")
        elif isinstance(value, (list, tuple)) and any(_is_domain(one) for one in value):
            raise ValueError(f"{name!r} is a list with ranges in it; write it as a dictionary, with a name for each")
        else:
            yield name, value


def _converted(config: Mapping[str, Any]) -> tuple[Space, dict[str, list[Any]], dict[str, float]]:
    """A space from Tune's ranges, the choices that JSON does not know, and the steps on log scales."""
    parameters: dict[str, Any] = {}
    objects: dict[str, list[Any]] = {}
    steps: dict[str, float] = {}
    for name, domain in _leaves(config):
        if not _is_domain(domain):
            continue
        if name in parameters:
            raise ValueError(f"there are two ranges for {name!r}; names must not have '/' in them")
        if isinstance(domain, Mapping) or not isinstance(domain, (tune_sample.Float, tune_sample.Integer)):
            parameters[name], choices = _categorical(name, domain)
            if choices is not None:
                objects[name] = choices
            continue
        parameters[name], step = _range(name, domain)
        if step is not None:
            steps[name] = step
    return Space(parameters), objects, steps


def _range(name: str, domain: Any) -> tuple[Real | Integer, float | None]:
    """A range of numbers; with a step, the integers in it are to be multiplied by it."""
    sampler: Any = domain.get_sampler()
    step = None
    if isinstance(sampler, tune_sample.Quantized):
        step = plain(sampler.q)
        sampler = sampler.sampler
    log = isinstance(sampler, tune_sample.LogUniform)
    if not log and not isinstance(sampler, tune_sample.Uniform):
        kind = type(sampler).__name__.strip("_").lower()
        raise ValueError(f"{name!r}: a {kind} distribution has no bounds; use uniform, loguniform, randint or choice")
    low, high = plain(domain.lower), plain(domain.upper)
    for bound in (low, high):
        if bound is None or not math.isfinite(bound):
            raise ValueError(f"{name!r}: the bound {bound} is not finite")
    whole = isinstance(domain, tune_sample.Integer)
    if whole and step in (None, 1):
        # Tune's integers end before the upper bound, unless they are multiples of more than 1.
        return Integer(int(low), int(high) - 1, log=log), None
    if step is None:
        return Real(float(low), float(high), log=log), None
    if not step > 0:
        raise ValueError(f"{name!r}: the step {step} is not above 0")
    first, last = _multiples(name, low, high, step)
    if log:
        if first < 1:
            raise ValueError(f"{name!r}: a log scale begins above 0, here at {step}")
        return Integer(first, last, log=True), int(step) if whole else float(step)
    if whole:
        return Integer(first * int(step), last * int(step), int(step)), None
    return Real(first * step, last * step, step=float(step)), None


def _multiples(name: str, low: float, high: float, step: float) -> tuple[int, int]:
    """The first and the last multiple of a step between two bounds, as Tune counts them."""

    def index(bound: float, rounded: Any) -> int:
        nearest = round(bound / step)
        return nearest if math.isclose(bound / step, nearest) else int(rounded(bound / step))

    first, last = index(low, math.ceil), index(high, math.floor)
    if last < first:
        raise ValueError(f"{name!r}: no multiple of {step} lies between {low} and {high}")
    return first, last


def _categorical(name: str, domain: Any) -> tuple[Categorical, list[Any] | None]:
    """Choices; those that are not simply text, numbers or truth values are called by their index."""
    if isinstance(domain, tune_sample.Function):
        raise ValueError(f"{name!r}: sample_from cannot be searched; use uniform, loguniform, randint or choice")
    if isinstance(domain, Mapping) or not isinstance(domain.get_sampler(), tune_sample.Uniform):
        raise ValueError(f"{name!r}: boscage does not search grids; write tune.choice([...])")
    choices = list(domain.categories)
    if not choices:
        raise ValueError(f"{name!r} has no choices")
    simple = [plain(choice) for choice in choices]
    if all(isinstance(c, (str, int)) or (isinstance(c, float) and math.isfinite(c)) for c in simple):
        if len(set(map(str, simple))) == len(set(simple)) == len(simple):
            return Categorical(simple), None
    return Categorical([str(i) for i in range(len(choices))]), choices
