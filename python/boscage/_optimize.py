"""The loop: in one call, or ask and tell."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._model import Model
from ._space import Space, as_space, dumps, plain

if TYPE_CHECKING:
    import pandas

# A dictionary from names to numbers, text or truth values. Not `Value`: an objective knows what its own parameters are.
Params = dict[str, Any]
Method = Union[str, Mapping[str, Any], None]


@dataclass(frozen=True)
class Trial:
    """What was tried, and what came out."""

    number: int
    params: Params
    state: str = "RUNNING"
    value: float | None = None
    failure: str | None = None
    seconds: float | None = None
    datetime_start: str | None = None
    datetime_complete: str | None = None
    infeasible: bool = False
    user_attrs: Mapping[str, Any] = field(default_factory=dict)


def method_json(method: Method) -> str:
    """A method's name and changed settings, as the native part reads them."""
    if method is None:
        method = "tree"
    if isinstance(method, str):
        return json.dumps({"name": method, "settings": {}})
    if not isinstance(method, Mapping) or "name" not in method:
        raise TypeError("a method is a name, or a dictionary with 'name' and 'settings'")
    return dumps({"name": method["name"], "settings": method.get("settings", {})})


def methods() -> dict[str, str]:
    """The names of all methods, each with what it stands for.

    >>> "tree" in methods()
    True
    """
    return dict(_native.method_names())


def trials_from(text: str, space: Space) -> list[Trial]:
    """Trials from what the native part gives."""
    return [Trial(**{**trial, "params": space._ordered(trial["params"])}) for trial in json.loads(text)]


def dataframe(trials: Iterable[Trial]) -> pandas.DataFrame:
    """Trials as a data frame with Optuna's column names."""
    import pandas

    rows = []
    for trial in trials:
        row: dict[str, Any] = {"number": trial.number, "value": trial.value, "state": trial.state}
        row.update(
            datetime_start=trial.datetime_start,
            datetime_complete=trial.datetime_complete,
            duration_seconds=trial.seconds,
            failure=trial.failure,
        )
        row.update({f"params_{name}": value for name, value in trial.params.items()})
        row.update({f"user_attrs_{key}": value for key, value in trial.user_attrs.items()})
        rows.append(row)
    return pandas.DataFrame(rows)


def number(value: Any, what: str = "the value") -> float | None:
    """A result as a number; none if it is NaN or infinite, or None."""
    if value is None:
        return None
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is {value!r}, which is not a number")
    return float(value) if math.isfinite(value) else None


class Optimizer:
    """Ask for points, tell what came out, in any order and with any number of points at a time.

    >>> optimizer = Optimizer({"x": (-5.0, 5.0), "mode": ["a", "b"]}, seed=1)
    >>> for _ in range(3):
    ...     params = optimizer.ask()
    ...     optimizer.tell(params, params["x"] ** 2)
    >>> len(optimizer.trials)
    3

    Its state is data: `save` gives JSON, `load` goes on from it with the same points to the last bit. It can be copied and
    pickled. Points that were asked for and not told count as pending.
    """

    def __init__(self, space: Any, *, goal: str = "minimize", method: Method = None, seed: int = 0) -> None:
        self._space = as_space(space)
        self._native = _native.Optimization(self._space.json, goal, method_json(method), _seed(seed))

    @classmethod
    def _with(cls, native: _native.Optimization) -> Optimizer:
        self = cls.__new__(cls)
        self._native = native
        data = json.loads(native.definition())["space"]
        parameters = {p["name"]: {k: v for k, v in p.items() if k != "name"} for p in data["parameters"]}
        self._space = Space(parameters, data.get("forbidden", ()))
        return self

    @property
    def space(self) -> Space:
        """The space."""
        return self._space

    def ask(self, n: int | None = None) -> Any:
        """The next point as a dictionary; with `n`, a list of so many."""
        if n is None:
            return self.ask_trial().params
        if n < 0:
            raise ValueError(f"{n} points cannot be asked for")
        return [self.ask_trial().params for _ in range(n)]

    def ask_trial(self) -> Trial:
        """The next point with the number of its trial."""
        number, params = self._native.ask()
        return Trial(number, self._space._ordered(json.loads(params)))

    def tell(self, params: Mapping[str, Any] | Trial | int, value: Any) -> None:
        """Takes in a value: of a point, whether it was asked for or not, of a trial, or of a trial's number.

        ``None``, NaN and infinite values mean that the evaluation failed.
        """
        outcome = number(value)
        trial = self._number(params)
        if outcome is None:
            self._native.fail(trial, f"the value is {value}")
        else:
            self._native.tell(trial, outcome)

    def fail(self, params: Mapping[str, Any] | Trial | int, reason: str = "failed") -> None:
        """Takes in that a point could not be evaluated."""
        self._native.fail(self._number(params), reason)

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """The next point has these values; parameters that are left out are chosen by the method."""
        self._native.enqueue(dumps(dict(params)))

    def _number(self, what: Mapping[str, Any] | Trial | int) -> int:
        if isinstance(what, Trial):
            return what.number
        if isinstance(what, Mapping):
            return self._native.trial_of(dumps(dict(what)))
        what = plain(what)
        if isinstance(what, bool) or not isinstance(what, int):
            raise TypeError(f"a point is a dictionary, a Trial or a trial's number, not {type(what).__name__}")
        if what < 0:
            raise ValueError(f"there is no trial {what}")
        return what

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return trials_from(self._native.trials(), self._space)

    @property
    def best(self) -> Trial | None:
        """The trial with the best value."""
        best = self._native.best()
        return None if best is None else self.trials[best]

    @property
    def model(self) -> Model | None:
        """What was learned; none as long as nothing was."""
        explanation = self._native.explain()
        return None if explanation is None else Model(explanation, self._space)

    def save(self) -> str:
        """The state, as JSON."""
        return self._native.save()

    @classmethod
    def load(cls, state: str) -> Optimizer:
        """Goes on from what `save` gave."""
        return cls._with(_native.Optimization.load(state))

    def __getstate__(self) -> str:
        return self.save()

    def __setstate__(self, state: str) -> None:
        self.__dict__.update(type(self).load(state).__dict__)

    def __copy__(self) -> Optimizer:
        return type(self).load(self.save())

    def __deepcopy__(self, memo: Any) -> Optimizer:
        return self.__copy__()

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<Optimizer of {len(self._space)} parameters after {len(self)} trials>"


def _seed(seed: Any) -> int:
    seed = plain(seed)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(f"the seed is {seed!r}; it must be an integer from 0 to 2**64 - 1")
    return seed


@dataclass(frozen=True)
class Result:
    """What came out of :func:`minimize` or :func:`maximize`."""

    best_params: Params
    best_value: float
    best_trial: Trial
    trials: list[Trial]
    reason: str
    optimizer: Optimizer = field(repr=False)

    @property
    def model(self) -> Model | None:
        """What was learned; none if the method learns nothing."""
        return self.optimizer.model

    def to_dataframe(self) -> pandas.DataFrame:
        """All trials as a data frame (needs pandas)."""
        return dataframe(self.trials)


Callback = Callable[["Optimizer", Trial], Any]


def minimize(
    f: Callable[[Params], Any],
    space: Any,
    *,
    n_trials: int | None = None,
    timeout: float | None = None,
    seed: int = 0,
    method: Method = None,
    callbacks: Sequence[Callback] = (),
    n_jobs: int = 1,
    start: Sequence[Mapping[str, Any]] = (),
    target: float | None = None,
    catch: tuple[type[Exception], ...] = (),
    progress: bool | None = None,
) -> Result:
    """Finds parameters for which `f` is small.

    `f` gets a dictionary and returns a number; ``None`` and NaN mean that it failed, and so do exceptions in `catch`.
    It ends after `n_trials`, after `timeout` seconds, when a value as good as `target` was found, or when a callback, called
    with the optimizer and the trial, returns ``True``. `n_jobs` evaluations run at a time, in threads (-1: one for each
    processor); that helps if `f` waits for something or leaves Python's lock, as NumPy and subprocesses do.

    >>> result = minimize(lambda p: abs(p["x"] - 2), {"x": (0.0, 4.0)}, n_trials=20, seed=1, progress=False)
    >>> len(result.trials), result.best_value < 0.1
    (20, True)
    """
    arguments = _Arguments(n_trials, timeout, callbacks, n_jobs, start, target, catch, progress)
    return _run(f, Optimizer(space, goal="minimize", method=method, seed=seed), arguments, "minimize")


def maximize(
    f: Callable[[Params], Any],
    space: Any,
    *,
    n_trials: int | None = None,
    timeout: float | None = None,
    seed: int = 0,
    method: Method = None,
    callbacks: Sequence[Callback] = (),
    n_jobs: int = 1,
    start: Sequence[Mapping[str, Any]] = (),
    target: float | None = None,
    catch: tuple[type[Exception], ...] = (),
    progress: bool | None = None,
) -> Result:
    """Finds parameters for which `f` is large; otherwise as :func:`minimize`."""
    arguments = _Arguments(n_trials, timeout, callbacks, n_jobs, start, target, catch, progress)
    return _run(f, Optimizer(space, goal="maximize", method=method, seed=seed), arguments, "maximize")


@dataclass
class _Arguments:
    n_trials: int | None
    timeout: float | None
    callbacks: Sequence[Callback]
    n_jobs: int
    start: Sequence[Mapping[str, Any]]
    target: float | None
    catch: tuple[type[Exception], ...]
    progress: bool | None

    def check(self) -> None:
        if self.n_trials is None and self.timeout is None and self.target is None and not self.callbacks:
            raise ValueError("it would never end; give n_trials, timeout or target")
        check_budget(self.n_trials, self.timeout)
        self.n_jobs = jobs(self.n_jobs)


def check_budget(n_trials: Any, timeout: Any) -> None:
    """Refuses budgets that make no sense."""
    count = plain(n_trials)
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ValueError(f"n_trials is {n_trials!r}; it must be an integer from 1")
    if timeout is not None:
        check_seconds("timeout", timeout)


def check_seconds(what: str, seconds: Any) -> None:
    """Refuses times that make no sense."""
    seconds = plain(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        raise ValueError(f"{what} is {seconds!r}; it must be a positive number of seconds")


def jobs(n_jobs: Any) -> int:
    """How many evaluations run at a time; -1 stands for as many as there are processors."""
    n_jobs = plain(n_jobs)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs is {n_jobs!r}; it must be at least 1, or -1 for as many as there are processors")
    return n_jobs if n_jobs > 0 else os.cpu_count() or 1


def _evaluate(f: Callable[[Params], Any], params: Params, catch: tuple[type[Exception], ...]) -> tuple[Any, str | None]:
    try:
        return f(dict(params)), None
    except catch as error:
        return None, f"{type(error).__name__}: {error}"


def _run(f: Callable[[Params], Any], optimizer: Optimizer, arguments: _Arguments, goal: str) -> Result:
    arguments.check()
    sign = 1.0 if goal == "minimize" else -1.0
    for point in arguments.start:
        optimizer.enqueue(point)
    begin = time.monotonic()
    bar = _Bar(arguments.n_trials, arguments.progress)
    best: Trial | None = None
    reason = ""
    begun = 0
    running: dict[Future[tuple[Any, str | None]], Trial] = {}

    def is_over() -> str:
        if arguments.n_trials is not None and begun >= arguments.n_trials:
            return "n_trials"
        if arguments.timeout is not None and time.monotonic() - begin >= arguments.timeout:
            return "timeout"
        return reason

    def ended(trial: Trial, value: Any, failure: str | None) -> str:
        nonlocal best
        outcome = number(value, f"the value of trial {trial.number}") if failure is None else None
        if outcome is None:
            optimizer.fail(trial, failure or f"the value is {value}")
            done = Trial(trial.number, trial.params, "FAIL", failure=failure or f"the value is {value}")
        else:
            optimizer.tell(trial, outcome)
            done = Trial(trial.number, trial.params, "COMPLETE", outcome)
            if best is None or best.value is None or sign * outcome < sign * best.value:
                best = done
        bar.show(begun, best)
        if arguments.target is not None and outcome is not None and sign * outcome <= sign * arguments.target:
            return "target"
        return "callback" if any(callback(optimizer, done) is True for callback in list(arguments.callbacks)) else ""

    try:
        if arguments.n_jobs == 1:
            while not (reason := is_over()):
                try:
                    trial = optimizer.ask_trial()
                except _native.SpaceExhausted:
                    reason = "exhausted"
                    break
                begun += 1
                value, failure = _evaluate(f, trial.params, arguments.catch)
                reason = ended(trial, value, failure)
                if reason:
                    break
        else:
            with ThreadPoolExecutor(arguments.n_jobs) as pool:
                while True:
                    while len(running) < arguments.n_jobs and not (reason := reason or is_over()):
                        try:
                            trial = optimizer.ask_trial()
                        except _native.SpaceExhausted:
                            reason = "exhausted"
                            break
                        begun += 1
                        running[pool.submit(_evaluate, f, trial.params, arguments.catch)] = trial
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        trial = running.pop(future)
                        reason = ended(trial, *future.result()) or reason
    finally:
        bar.close()
    if best is None or best.value is None:
        failures = [trial.failure for trial in optimizer.trials if trial.failure]
        why = f"; the last one: {failures[-1]}" if failures else ""
        raise _native.BoscageError(f"none of {begun} trials gave a value{why}")
    return Result(best.params, best.value, best, optimizer.trials, reason or is_over(), optimizer)


class _Bar:
    """A line that shows progress, in a terminal unless somebody wants it otherwise."""

    def __init__(self, total: int | None, wanted: bool | None) -> None:
        self._total = total
        self._shown = sys.stderr.isatty() if wanted is None else wanted
        self._last = 0.0

    def show(self, begun: int, best: Trial | None) -> None:
        now = time.monotonic()
        if not self._shown or (now - self._last < 0.1 and begun != self._total):
            return
        self._last = now
        total = "" if self._total is None else f"/{self._total}"
        standing = "" if best is None else f", best {best.value:.6g} (trial {best.number})"
        sys.stderr.write(f"\r\033[K{begun}{total} trials{standing}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown and self._last:
            sys.stderr.write("\n")


