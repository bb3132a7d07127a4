"""A sampler for Optuna: ``TreeSampler``.

>>> import optuna
>>> from boscage.optuna import TreeSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> study = optuna.create_study(sampler=TreeSampler(seed=1))
>>> study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=25)
>>> study.best_value < 0.1
True

Needs Optuna 4 or 5 (``pip install "boscage[optuna]"``).
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Union

from . import _native
from ._optimize import Method, _seed, method_json

try:
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.storages import BaseStorage
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError(f'boscage.optuna needs Optuna 4 or 5: pip install "boscage[optuna]" ({error})') from error

__all__ = ["TreeSampler"]

Code = Union[int, float]
Point = tuple[Code, ...]

# How many spaces of a study are remembered; more than one only while a space changes.
_SPACES = 4


class TreeSampler(BaseSampler):
    """Suggests all parameters of a trial together, from a model of which of them depend on each other.

    `search_space`: distributions by name, as in ``{"x": FloatDistribution(0, 1)}``. Without it, the parameters that
    all complete trials have in common are used, so that the first trial is random. With it, a parameter that a trial
    did not ask for (because of a condition) counts as if it had no effect there.

    `seed`: the same seed, the same trials, as long as trials run one after another. The randomness of a trial comes
    from the seed and its number alone, so a seed may be shared by any number of processes.

    `method`: a name of :func:`boscage.methods`, or a dictionary with ``name`` and ``settings``.

    `n_startup_trials`: how many trials come before the model is used (the method's ``initial_points``).

    `independent_sampler`: for parameters that are not suggested together; random ones if none is given.

    Running trials count as pending: those of this process as soon as they were suggested something, those of others
    as soon as all their parameters are in the storage. Trials that failed, were pruned or violate a constraint count as
    failed, and so do those with an infinite value. When every point of a finite space was tried, points are repeated at
    random.

    All that it knows comes from the study: it can be copied and pickled, and a study goes on with a new sampler.

    >>> from optuna.distributions import CategoricalDistribution, IntDistribution
    >>> sampler = TreeSampler({"n": IntDistribution(1, 3), "mode": CategoricalDistribution(["a", None])}, seed=1)
    >>> import optuna
    >>> study = optuna.create_study(sampler=sampler)
    >>> trials = [study.ask(sampler.search_space) for _ in range(6)]
    >>> len({(trial.params["n"], trial.params["mode"]) for trial in trials})
    6
    """

    def __init__(
        self,
        search_space: Mapping[str, BaseDistribution] | None = None,
        *,
        seed: int | None = None,
        method: Method = None,
        n_startup_trials: int | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if search_space is not None and not isinstance(search_space, Mapping):
            raise TypeError(
                f"search_space is {search_space!r}; it must be a dictionary of distributions by name (write seed=... for a seed)"
            )
        for name, distribution in (search_space or {}).items():
            if not isinstance(distribution, BaseDistribution):
                raise TypeError(f"parameter {name!r}: {distribution!r} is not a distribution of Optuna")
        self._search_space = None if search_space is None else dict(search_space)
        self._seed = _seed(seed)
        self._method = _method(method, n_startup_trials)
        self._independent_sampler = independent_sampler
        self._lock = threading.Lock()
        self._memory: _Memory | None = None

    @property
    def search_space(self) -> dict[str, BaseDistribution] | None:
        """The distributions that were given."""
        return None if self._search_space is None else dict(self._search_space)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that are suggested together: those given, or those of all complete trials."""
        _check_one_goal(study)
        if self._search_space is not None:
            space = self._search_space
        else:
            with self._lock:
                space = self._memory_of(study).intersection.calculate(study)
        return {name: distribution for name, distribution in space.items() if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggests values of all these parameters, except those that only the independent sampler can suggest."""
        _check_one_goal(study)
        with self._lock:
            memory = self._memory_of(study)
            optimization = memory.take(search_space)
            if optimization is None:
                axes = _axes(search_space)
                if not axes:
                    return {}
                goal = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
                optimization = _Optimization(search_space, axes, goal, self._method, self._seed)
            # If anything goes wrong here, Ctrl-C included, the optimization is built anew next time.
            trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
            optimization.take_in(trials, memory.asked)
            params = optimization.ask(trial.number)
            if params is not None:
                memory.asked[trial.number] = params
            memory.optimizations = [*memory.optimizations, optimization][-_SPACES:]
        if params is not None:
            return dict(params)
        return {
            axis.name: self.sample_independent(study, trial, axis.name, axis.distribution) for axis in optimization.axes
        }

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Suggests a value of one parameter, by the independent sampler."""
        _check_one_goal(study)
        sampler = self._independent_sampler
        if sampler is None:
            # A stream of its own for each parameter of each trial: neither the order of trials nor a restart matters.
            key = f"{self._seed}/{trial.number}/{param_name}".encode()
            sampler = RandomSampler(seed=int.from_bytes(blake2b(key, digest_size=4).digest(), "little"))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Goes to the independent sampler."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Goes to the independent sampler."""
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Goes to the independent sampler. Nothing else shares random numbers: each trial has its own."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        # Of the memory nothing is needed that the study does not have.
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_memory")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._memory = None

    def _memory_of(self, study: Study) -> _Memory:
        memory = self._memory
        if memory is None or memory.storage is not study._storage or memory.study != study._study_id:
            memory = self._memory = _Memory(study._storage, study._study_id)
        return memory


class _Memory:
    """What is kept of one study, only to save time, and to know what was suggested and is not in the storage yet."""

    def __init__(self, storage: BaseStorage, study: int) -> None:
        self.storage = storage
        self.study = study
        self.intersection = IntersectionSearchSpace()
        # The one that was used last is at the end.
        self.optimizations: list[_Optimization] = []
        # What was suggested to trials, by their numbers: all of it while they run, later what they did not use.
        self.asked: dict[int, dict[str, Any]] = {}

    def take(self, space: Mapping[str, BaseDistribution]) -> _Optimization | None:
        """Takes out the optimization of this space. Spaces cannot be keys: choices may be lists."""
        for place, optimization in enumerate(self.optimizations):
            if optimization.space == space:
                return self.optimizations.pop(place)
        return None


@dataclass(frozen=True)
class _Axis:
    """A parameter, and its values as the native part knows them.

    Choices are known by their places, since they may be anything, and values with a step by the number of steps, so
    that Optuna's way to compute them is the only one.
    """

    name: str
    distribution: BaseDistribution

    @property
    def data(self) -> dict[str, Any] | None:
        """As part of a native space; none for distributions of other kinds."""
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return {"type": "categorical", "choices": list(range(len(distribution.choices)))}
        if isinstance(distribution, IntDistribution):
            if distribution.log:
                return {"type": "integer", "low": distribution.low, "high": distribution.high, "log": True}
            steps = (distribution.high - distribution.low) // distribution.step
            return {"type": "integer", "low": 0, "high": steps}
        if isinstance(distribution, FloatDistribution):
            if distribution.step is not None:
                return {"type": "integer", "low": 0, "high": self._steps(distribution.high)}
            return {"type": "real", "low": distribution.low, "high": distribution.high, "log": distribution.log}
        return None

    def encode(self, value: Any) -> Code | None:
        """The native value; none if the distribution does not have it."""
        distribution = self.distribution
        try:
            internal = distribution.to_internal_repr(value)
        except (TypeError, ValueError):
            return None
        if not distribution._contains(internal):
            return None
        if isinstance(distribution, FloatDistribution):
            return internal if distribution.step is None else self._steps(internal)
        if isinstance(distribution, IntDistribution):
            return int(value) if distribution.log else (int(value) - distribution.low) // distribution.step
        return int(internal)

    def decode(self, code: Code) -> Any:
        """The value that Optuna gets."""
        distribution = self.distribution
        if isinstance(distribution, FloatDistribution):
            value = float(code) if distribution.step is None else distribution.low + code * distribution.step
            return min(max(value, distribution.low), distribution.high)
        if isinstance(distribution, IntDistribution):
            return int(code) if distribution.log else int(distribution.low + code * distribution.step)
        assert isinstance(distribution, CategoricalDistribution)
        return distribution.choices[int(code)]

    @property
    def middle(self) -> Code:
        """A native value for parameters that have none."""
        distribution = self.distribution
        if isinstance(distribution, CategoricalDistribution):
            return 0
        assert isinstance(distribution, (FloatDistribution, IntDistribution))
        low, high = float(distribution.low), float(distribution.high)
        if isinstance(distribution, FloatDistribution) and distribution.step is not None:
            return self._steps(high) // 2
        if distribution.log:
            middle = min(max(math.sqrt(low) * math.sqrt(high), low), high)
            return middle if isinstance(distribution, FloatDistribution) else int(middle)
        if isinstance(distribution, IntDistribution):
            return (distribution.high - distribution.low) // distribution.step // 2
        return low / 2 + high / 2

    def _steps(self, value: float) -> int:
        distribution = self.distribution
        assert isinstance(distribution, FloatDistribution) and distribution.step is not None
        return round((value - distribution.low) / distribution.step)


def _axes(space: Mapping[str, BaseDistribution]) -> list[_Axis]:
    """The parameters that can be suggested together."""
    return [axis for axis in (_Axis(*item) for item in space.items()) if _is_known(axis)]


def _is_known(axis: _Axis) -> bool:
    if axis.distribution.single():
        return False
    try:
        data = axis.data
        if data is None:
            return False
        _native.space(json.dumps({"parameters": [{"name": "p", **data}]}))
    except (OverflowError, ValueError):
        # Such as more integers than numbers of 64 bits can tell apart.
        return False
    return True


class _Optimization:
    """A native optimization that is told the trials of a study."""

    def __init__(
        self, space: Mapping[str, BaseDistribution], axes: list[_Axis], goal: str, method: str, seed: int
    ) -> None:
        self.space = dict(space)
        self.axes = axes
        # Names of our own: Optuna's may be anything.
        self._names = [f"p{place}" for place in range(len(axes))]
        parameters = [{"name": name, **(axis.data or {})} for name, axis in zip(self._names, axes)]
        self._native = _native.Optimization(json.dumps({"parameters": parameters}), goal, method, seed)
        # By the trial's number in the study: its number in the native part, and its point there.
        self._open: dict[int, tuple[int, Point]] = {}
        self._ended: set[int] = set()

    def take_in(self, trials: Iterable[FrozenTrial], asked: dict[int, dict[str, Any]]) -> None:
        """Takes in what is new, in the order of the trials."""
        gone = set(self._open)
        for trial in trials:
            number = trial.number
            gone.discard(number)
            if number in self._ended or trial.state == TrialState.WAITING:
                continue
            point = self._point(trial, asked.get(number, {}))
            if not trial.state.is_finished():
                if point is not None:
                    self._place(number, point)
                continue
            self._ended.add(number)
            if point is None:
                self._forget(number)
            else:
                self._end(trial, point)
            if number in asked:
                unused = {name: value for name, value in asked.pop(number).items() if name not in trial.params}
                if unused:
                    asked[number] = unused
        for number in gone:
            self._forget(number)

    def ask(self, number: int) -> dict[str, Any] | None:
        """Values for a trial; none if all were tried."""
        self._forget(number)
        try:
            native_number, text = self._native.ask_as(number)
        except _native.SpaceExhausted:
            return None
        values = json.loads(text)
        point = tuple(values[name] for name in self._names)
        self._open[number] = (native_number, point)
        return {axis.name: axis.decode(code) for axis, code in zip(self.axes, point)}

    def _point(self, trial: FrozenTrial, asked: Mapping[str, Any]) -> Point | None:
        """The point of a trial; none if it is not one of this space, or not known yet."""
        if not any(axis.name in trial.params for axis in self.axes) and not asked:
            return None
        point = []
        for axis in self.axes:
            code: Code | None
            if axis.name in trial.params:
                code = axis.encode(trial.params[axis.name])
            elif axis.name in asked:
                code = axis.encode(asked[axis.name])
            elif trial.state == TrialState.COMPLETE:
                # It came to a value without this parameter, so any value would have done.
                code = axis.middle
            else:
                code = None
            if code is None:
                return None
            point.append(code)
        return tuple(point)

    def _end(self, trial: FrozenTrial, point: Point) -> None:
        number = self._place(trial.number, point)
        del self._open[trial.number]
        if trial.state != TrialState.COMPLETE or trial.value is None:
            self._native.fail(number, trial.state.name.lower())
        elif not _is_feasible(trial):
            self._native.fail(number, "infeasible")
        else:
            # What is not finite counts as failed there.
            self._native.tell(number, trial.value)

    def _place(self, number: int, point: Point) -> int:
        """Sees to it that a trial is open with this point."""
        known = self._open.get(number)
        if known is not None and known[1] == point:
            return known[0]
        self._forget(number)
        native_number = self._add(point)
        self._open[number] = (native_number, point)
        return native_number

    def _forget(self, number: int) -> None:
        known = self._open.pop(number, None)
        if known is not None:
            self._native.forget(known[0])

    def _add(self, point: Point) -> int:
        number: int = self._native.add(json.dumps(dict(zip(self._names, point))))
        return number


def _is_feasible(trial: FrozenTrial) -> bool:
    # Where Optuna keeps them: as a list until version 4, by name since version 5. At most 0 is feasible; NaN is not.
    attributes = trial.system_attrs
    constraints = list(attributes.get("constraints") or [])
    constraints += [value for key, value in attributes.items() if key.startswith("constraints:")]
    return all(value <= 0 for value in constraints)


def _check_one_goal(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(f"TreeSampler is for studies with one goal; this one has {len(study.directions)}")


def _method(method: Method, initial_points: int | None) -> str:
    text = method_json(method)
    if initial_points is None:
        return text
    if isinstance(initial_points, bool) or not isinstance(initial_points, int) or initial_points < 0:
        raise ValueError(f"n_startup_trials is {initial_points!r}; it must be an integer that is not negative")
    data = json.loads(text)
    data["settings"]["initial_points"] = initial_points
    return json.dumps(data)
