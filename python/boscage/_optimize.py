"""The loop: in one call, or ask and tell."""

from __future__ import annotations

import contextlib
import json
import math
import os
import reprlib
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Union, overload

from . import _native
from ._model import Model
from ._space import Space, as_space, dumps, plain, point_json

if TYPE_CHECKING:
    import pandas

# A dictionary from names to numbers, text or truth values. Not `Value`: an objective knows what its own parameters are.
Params = dict[str, Any]
Method = Union[str, Mapping[str, Any], None]
# One class of exceptions, or several.
Catch = Union[type[Exception], Iterable[type[Exception]]]
Start = Union[Mapping[str, Any], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Trial:
    """What was tried, and what came out.

    `state`: "RUNNING" as long as nothing was told, "COMPLETE" with a value, "FAIL" without one (`failure` says why),
    "PRUNED" if it was given up early, "WAITING" in the queue of a study. Times are local ones; `seconds` is how long the
    evaluation took.
    """

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
        method = "boscage"
    if isinstance(method, str):
        return json.dumps({"name": method, "settings": {}})
    if not isinstance(method, Mapping) or "name" not in method:
        raise TypeError("a method is a name, or a dictionary with 'name' and 'settings'")
    for key in method:
        if key not in ("name", "settings"):
            raise ValueError(f"the method has {key!r}, which is not known; it is a dictionary with 'name' and 'settings'")
    settings = method.get("settings", {})
    if not isinstance(method["name"], str) or not isinstance(settings, Mapping):
        raise TypeError("the name of a method is text, and its settings are a dictionary")
    return dumps({"name": method["name"], "settings": dict(settings)})


def goal_name(goal: Any) -> str:
    """The goal, if it is one."""
    if goal not in ("minimize", "maximize"):
        raise ValueError(f"the goal is {goal!r}; it must be 'minimize' or 'maximize'")
    return str(goal)


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
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        # An integer beyond the largest number of 64 bits.
        return None


def no_value(value: Any) -> str:
    """Why a result is none."""
    value = plain(value)
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"the value is an integer of about {math.ceil(value.bit_length() * math.log10(2))} digits"
    return f"the value is {value}"


class Optimizer:
    """Ask for points, tell what came out, in any order and with any number of points at a time.

    >>> optimizer = Optimizer({"x": (-5.0, 5.0), "mode": ["a", "b"]}, seed=1)
    >>> for _ in range(3):
    ...     params = optimizer.ask()
    ...     optimizer.tell(params, params["x"] ** 2)
    >>> len(optimizer.trials)
    3

    Its state is data: `save` gives JSON, `load` goes on from it with the same points to the last bit. It can be copied and
    pickled. Points that were asked for and not told count as pending. With ``seed=None`` a seed is drawn; `seed` says which.
    """

    def __init__(self, space: Any, *, goal: str = "minimize", method: Method = None, seed: int | None = 0) -> None:
        self._space = as_space(space)
        self._native = _native.Optimization(self._space.json, goal_name(goal), method_json(method), _seed(seed))
        self._begin()

    def _begin(self) -> None:
        definition = json.loads(self._native.definition())
        self._goal = str(definition["goal"])
        self._seed = int(definition["seed"])
        # For what is kept here of trials, as several threads may tell.
        self._lock = threading.Lock()
        # The trials that are open, by number: what was asked for.
        self._open: dict[int, Params] = {}
        # When evaluations of `optimize` began and ended, and how long they took.
        self._times: dict[int, dict[str, Any]] = {}
        self._best: Trial | None = None
        self._told = 0
        self._model: tuple[tuple[int, int], Model | None] | None = None

    @classmethod
    def _with(cls, native: _native.Optimization, forgotten: set[int]) -> Optimizer:
        self = cls.__new__(cls)
        self._native = native
        self._space = space_of(native.definition())
        self._begin()
        trials = self.trials
        self._open = {t.number: t.params for t in trials if t.state == "RUNNING" and t.number not in forgotten}
        best = native.best()
        self._best = None if best is None else trials[best]
        self._told = sum(trial.state != "RUNNING" for trial in trials)
        return self

    @property
    def space(self) -> Space:
        """The space."""
        return self._space

    @property
    def goal(self) -> str:
        """`minimize` or `maximize`."""
        return self._goal

    @property
    def seed(self) -> int:
        """The seed, also if it was drawn."""
        return self._seed

    @overload
    def ask(self, n: None = None) -> Params: ...
    @overload
    def ask(self, n: int) -> list[Params]: ...
    def ask(self, n: int | None = None) -> Params | list[Params]:
        """The next point as a dictionary; with `n`, a list of so many."""
        if n is None:
            return self.ask_trial().params
        n = plain(n)
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"{n!r} points cannot be asked for; give an integer")
        if n < 0:
            raise ValueError(f"{n} points cannot be asked for")
        return [self.ask_trial().params for _ in range(n)]

    def ask_trial(self) -> Trial:
        """The next point with the number of its trial."""
        number, text = self._native.ask()
        params = self._space._ordered(json.loads(text))
        self._open[number] = dict(params)
        return Trial(number, params)

    def tell(self, params: Mapping[str, Any] | Trial | int, value: Any) -> None:
        """Takes in a value: of a point, whether it was asked for or not, of a trial, or of a trial's number.

        ``None``, NaN and infinite values mean that the evaluation failed. A point is the one that was asked for also if it was
        rounded, to single precision or to six digits of the range.
        """
        outcome = number(value)
        trial = self._number(params)
        if outcome is None:
            self._end(trial, None, no_value(value))
        else:
            self._end(trial, outcome, "")

    def fail(self, params: Mapping[str, Any] | Trial | int, reason: str = "failed") -> None:
        """Takes in that a point could not be evaluated."""
        self._end(self._number(params), None, reason)

    def _end(self, trial: int, value: float | None, reason: str) -> None:
        if value is None:
            self._native.fail(trial, reason)
        else:
            self._native.tell(trial, value)
        with self._lock:
            params = self._open.pop(trial, None)
            self._told += 1
            if value is None:
                return
            best = self._best
            if best is not None and best.value is not None:
                sign = 1.0 if self._goal == "minimize" else -1.0
                if (sign * best.value, best.number) <= (sign * value, trial):
                    return
            # Where it was not asked for, its parameters are looked up when somebody wants them.
            self._best = Trial(trial, params or {}, "COMPLETE", value)

    def forget(self, trial: Mapping[str, Any] | Trial | int) -> None:
        """Nobody waits for this trial any more: its point may be asked for again. In `trials` it stays as "RUNNING"."""
        found = self._match(trial) if isinstance(trial, Mapping) else self._number(trial)
        if found is None or found not in self._open:
            what = "no open trial has this point" if isinstance(trial, Mapping) else f"trial {found} is not open"
            raise ValueError(f"{what}; `pending` has those that are")
        self._native.forget(found)
        self._open.pop(found, None)

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """The next point has these values; parameters that are left out are chosen by the method."""
        self._native.enqueue(point_json(self._space._given(params)))

    def _number(self, what: Mapping[str, Any] | Trial | int) -> int:
        if isinstance(what, Trial):
            return what.number
        if isinstance(what, Mapping):
            found = self._match(what)
            return self._native.trial_of(point_json(self._space._given(what))) if found is None else found
        what = plain(what)
        if isinstance(what, bool) or not isinstance(what, int):
            raise TypeError(f"a point is a dictionary, a Trial or a trial's number, not {type(what).__name__}")
        if what < 0:
            raise ValueError(f"there is no trial {what}")
        return what

    def _match(self, point: Mapping[str, Any]) -> int | None:
        """The open trial with this point, or with one that differs only by rounding."""
        asked = list(self._open.items())
        if not asked:
            return None
        point = {name: plain(value) for name, value in self._space._given(point).items()}
        near = [(number, params) for number, params in asked if self._space._is_near(point, params)]
        return min(near, key=lambda one: any(point[name] != one[1][name] for name in one[1]))[0] if near else None

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        trials = trials_from(self._native.trials(), self._space)
        return [replace(t, **self._times[t.number]) if t.number in self._times else t for t in trials]

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and not told yet, by number."""
        return [Trial(number, dict(params)) for number, params in sorted(self._open.copy().items())]

    @property
    def best(self) -> Trial | None:
        """The trial with the best value; none as long as there is none."""
        best = self._best
        if best is None:
            return None
        if not best.params:
            best = self.trials[best.number]
            with self._lock:
                if self._best is not None and self._best.number == best.number:
                    self._best = best
        return replace(best, params=dict(best.params), **self._times.get(best.number, {}))

    @property
    def best_trial(self) -> Trial:
        """The trial with the best value."""
        best = self.best
        if best is None:
            raise ValueError("no trial has a value yet")
        return best

    @property
    def best_value(self) -> float:
        """The best value."""
        value = self.best_trial.value
        assert value is not None
        return value

    @property
    def best_params(self) -> Params:
        """The parameters of the best trial."""
        return self.best_trial.params

    @property
    def model(self) -> Model | None:
        """What was learned; none as long as nothing was."""
        # An ask may learn from what was told.
        key = (self._told, len(self._native))
        known = self._model
        if known is None or known[0] != key:
            explanation = self._native.explain()
            known = self._model = (key, None if explanation is None else Model(explanation, self._space))
        return known[1]

    def to_dataframe(self) -> pandas.DataFrame:
        """All trials as a data frame (needs pandas), with Optuna's column names."""
        return dataframe(self.trials)

    def optimize(
        self,
        f: Callable[[Params], Any],
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        callbacks: Callback | Iterable[Callback] = (),
        catch: Catch = (),
        target: float | None = None,
        progress: bool | None = None,
    ) -> Result:
        """Runs `n_trials` more trials of `f`; arguments and reasons to end as in :func:`minimize`.

        Called again, it goes on: after Ctrl-C or an exception too.

        >>> optimizer = Optimizer({"x": (0.0, 4.0)}, seed=1)
        >>> optimizer.optimize(lambda p: abs(p["x"] - 2), n_trials=10, progress=False).reason
        'n_trials'
        >>> len(optimizer.optimize(lambda p: abs(p["x"] - 2), n_trials=5, progress=False).trials)
        15
        """
        called = callback_list(callbacks)
        if n_trials is None and timeout is None and target is None and not called:
            raise ValueError("it would never end; give n_trials, timeout or target")
        check_budget(n_trials, timeout)
        run = _Run(self, n_trials, timeout, called, _target(target), _Bar(n_trials, progress))
        n_jobs, caught = jobs(n_jobs), catch_tuple(catch)
        try:
            reason = run_trials(f, run.ask, run.end, run.release, n_jobs, caught)
        except KeyboardInterrupt:
            # An ask that was interrupted goes on, and its trial is nobody's.
            for trial in self.trials:
                if trial.state == "RUNNING" and trial.number not in self._open:
                    self._native.forget(trial.number)
            result = self._result("interrupted")
            if result is None:
                raise
            return result
        except BaseException as error:
            _attach(error, self._result("error"))
            raise
        finally:
            run.bar.close()
        result = self._result(reason)
        if result is None:
            failures = [trial.failure for trial in self.trials if trial.failure]
            why = f"; the last one: {failures[-1]}" if failures else ""
            raise _native.BoscageError(f"none of {run.begun} trials gave a value{why}")
        return result

    def _result(self, reason: str) -> Result | None:
        best = self.best
        if best is None or best.value is None:
            return None
        return Result(best.params, best.value, best, self.trials, reason, self)

    def save(self) -> str:
        """The state, as JSON. Times of evaluations are not part of it."""
        return self._native.save()

    @classmethod
    def load(cls, state: str) -> Optimizer:
        """Goes on from what `save` gave."""
        native = _native.Optimization.load(state)
        forgotten = {trial["number"] for trial in json.loads(state)["trials"] if trial.get("forgotten")}
        return cls._with(native, forgotten)

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.save(), "times": self._times.copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(type(self).load(state["state"]).__dict__)
        self._times = dict(state["times"])

    def __copy__(self) -> Optimizer:
        copied = type(self).load(self.save())
        copied._times = self._times.copy()
        return copied

    def __deepcopy__(self, memo: Any) -> Optimizer:
        return self.__copy__()

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<Optimizer of {len(self._space)} parameters after {len(self)} trials>"


def space_of(definition: str) -> Space:
    """The space in a definition that the native part gives."""
    data = json.loads(definition)["space"]
    parameters = {p["name"]: {k: v for k, v in p.items() if k != "name"} for p in data["parameters"]}
    return Space(parameters, data.get("forbidden", ()))


def _seed(seed: Any) -> int:
    if seed is None:
        return secrets.randbits(64)
    seed = plain(seed)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(f"the seed is {seed!r}; it must be an integer from 0 to 2**64 - 1, or None to draw one")
    return seed


@dataclass(frozen=True)
class Result:
    """What came out of :func:`minimize`, :func:`maximize` or :meth:`Optimizer.optimize`.

    `reason`: why it ended, see :func:`minimize`. With `optimizer` it can go on.
    """

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
    seed: int | None = 0,
    method: Method = None,
    callbacks: Callback | Iterable[Callback] = (),
    n_jobs: int = 1,
    start: Start = (),
    target: float | None = None,
    catch: Catch = (),
    progress: bool | None = None,
) -> Result:
    """Finds parameters for which `f` is small.

    `f`: gets a dictionary and returns a number; ``None``, NaN and infinite values mean that it failed.
    `space`: what may be in the dictionary, see :class:`Space`.
    `n_trials`, `timeout`: the number of trials, and of seconds after which none begins.
    `seed`: the same seed, the same points; with ``None`` one is drawn (`result.optimizer.seed`).
    `method`: a name of :func:`methods`, or a dictionary with ``name`` and ``settings``.
    `callbacks`: a function or several, called with the optimizer and each trial that ended; ``True`` ends the run.
    `n_jobs`: so many evaluations at a time, in threads (-1: one for each processor); that helps if `f` waits for something or
    leaves Python's lock, as NumPy and subprocesses do.
    `start`: points to begin with; what one leaves out is chosen.
    `target`: a value as good as this is enough.
    `catch`: exceptions, a class or several, which mean that a trial failed; others end the run.
    `progress`: whether a line shows it; by default in terminals and notebooks.

    The `reason` of the result is "n_trials", "timeout", "target", "callback", "exhausted" (every point was tried) or
    "interrupted" (by Ctrl-C, if there is a value already). No evaluation is lost by an exception: it has the result so far as
    its `result` (``None`` if there is no value yet; its reason is "error"), whose `optimizer` can go on with
    :meth:`Optimizer.optimize`.

    >>> result = minimize(lambda p: abs(p["x"] - 2), {"x": (0.0, 4.0)}, n_trials=20, seed=1, progress=False)
    >>> len(result.trials), result.best_value < 0.1
    (20, True)
    """
    points = start_list(start)
    optimizer = Optimizer(space, goal="minimize", method=method, seed=seed)
    for point in points:
        optimizer.enqueue(point)
    return optimizer.optimize(f, n_trials, timeout, n_jobs, callbacks, catch, target, progress)


def maximize(
    f: Callable[[Params], Any],
    space: Any,
    *,
    n_trials: int | None = None,
    timeout: float | None = None,
    seed: int | None = 0,
    method: Method = None,
    callbacks: Callback | Iterable[Callback] = (),
    n_jobs: int = 1,
    start: Start = (),
    target: float | None = None,
    catch: Catch = (),
    progress: bool | None = None,
) -> Result:
    """Finds parameters for which `f` is large; otherwise as :func:`minimize`."""
    points = start_list(start)
    optimizer = Optimizer(space, goal="maximize", method=method, seed=seed)
    for point in points:
        optimizer.enqueue(point)
    return optimizer.optimize(f, n_trials, timeout, n_jobs, callbacks, catch, target, progress)


def start_list(start: Any) -> list[Mapping[str, Any]]:
    """The points to begin with."""
    if isinstance(start, Mapping):
        return [start]
    if isinstance(start, (str, bytes)) or not isinstance(start, Iterable):
        raise TypeError(f"start is {reprlib.repr(start)}; it must be a list of dictionaries")
    points = list(start)
    for point in points:
        if not isinstance(point, Mapping):
            raise TypeError(f"start has {reprlib.repr(point)}; it must be a list of dictionaries")
    return points


def callback_list(callbacks: Any) -> list[Callable[..., Any]]:
    """The functions to be called after each trial."""
    if callbacks is None:
        return []
    if callable(callbacks):
        return [callbacks]
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks is {reprlib.repr(callbacks)}; it must be a function or a list of functions")
    called = list(callbacks)
    for callback in called:
        if not callable(callback):
            raise TypeError(f"callbacks has {reprlib.repr(callback)}, which is not a function")
    return called


def catch_tuple(catch: Any) -> tuple[type[Exception], ...]:
    """The exceptions that mean that a trial failed."""
    if not isinstance(catch, type) and not isinstance(catch, Iterable):
        raise TypeError(f"catch is {reprlib.repr(catch)}; it must be a class of exceptions or several")
    caught: tuple[Any, ...] = (catch,) if isinstance(catch, type) else tuple(catch)
    for one in caught:
        if not isinstance(one, type) or not issubclass(one, Exception):
            raise TypeError(f"catch has {reprlib.repr(one)}, which is not a class of exceptions")
    return caught


def _target(target: Any) -> float | None:
    if target is None:
        return None
    found = plain(target)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or math.isnan(found):
        raise ValueError(f"target is {reprlib.repr(target)}; it must be a number")
    return float(found)


def _attach(error: BaseException, result: Result | None) -> None:
    """Gives an exception the result so far."""
    with contextlib.suppress(AttributeError, TypeError):
        setattr(error, "result", result)
        if result is not None and sys.version_info >= (3, 11):
            error.add_note(f"the `result` of this exception has the {len(result.trials)} trials so far (error.result)")


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


@dataclass(frozen=True)
class Evaluation:
    """What became of a call of the objective."""

    value: Any
    failure: str | None
    # What ended the run, if anything did.
    error: BaseException | None
    times: dict[str, Any]

    def outcome(self, trial: int) -> tuple[float | None, str | None, BaseException | None]:
        """The value, or why there is none, and what is to be raised."""
        if self.failure is not None:
            return None, self.failure, self.error
        try:
            found = number(self.value, f"the value of trial {trial}")
        except Exception as error:
            return None, said(error), error
        return found, no_value(self.value) if found is None else None, None


def said(error: BaseException) -> str:
    """An exception as the reason of a failure."""
    return f"{type(error).__name__}: {error}"


def evaluate(f: Callable[[Params], Any], params: Params, catch: tuple[type[Exception], ...]) -> Evaluation:
    """Calls the objective. Only Ctrl-C comes through."""
    value, failure, raised = None, None, None
    began, clock = datetime.now(), time.perf_counter()
    try:
        value = f(dict(params))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failure = said(error)
        raised = None if isinstance(error, catch) else error
    seconds = time.perf_counter() - clock
    ended = datetime.now()
    # As studies have them.
    times = {"datetime_start": f"{began:%Y-%m-%d %H:%M:%S.%f}", "datetime_complete": f"{ended:%Y-%m-%d %H:%M:%S.%f}"}
    return Evaluation(value, failure, raised, {**times, "seconds": seconds})


AnyTrial = TypeVar("AnyTrial", bound=Trial)


def run_trials(
    f: Callable[[Params], Any],
    ask: Callable[[], AnyTrial | str],
    end: Callable[[AnyTrial, Evaluation, bool], str],
    release: Callable[[list[AnyTrial]], None],
    n_jobs: int,
    catch: tuple[type[Exception], ...],
) -> str:
    """Runs trials until `ask` or `end` gives a reason to stop.

    If anything is raised, evaluations that are running are waited for and told, without callbacks; after Ctrl-C only those that
    are done are told. `release` gets all that may not have been told.
    """
    pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
    running: dict[Future[Evaluation], AnyTrial] = {}
    current: list[AnyTrial] = []
    reason = ""
    waits = True
    try:
        while True:
            while len(running) < n_jobs and not reason:
                asked = ask()
                if isinstance(asked, str):
                    reason = asked
                elif pool is not None:
                    running[pool.submit(evaluate, f, asked.params, catch)] = asked
                else:
                    current = [asked]
                    reason = end(asked, evaluate(f, asked.params, catch), True)
                    current = []
            if not running:
                return reason
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                current = [running.pop(future)]
                reason = end(current[0], future.result(), True) or reason
                current = []
    except BaseException as error:
        waits = not isinstance(error, KeyboardInterrupt)
        if waits:
            try:
                wait(running)
            except KeyboardInterrupt:
                waits = False
        for future, trial in running.items():
            if future.done() and future.exception() is None:
                with contextlib.suppress(Exception):
                    end(trial, future.result(), False)
        release([*current, *running.values()])
        raise
    finally:
        if pool is not None:
            pool.shutdown(wait=waits, cancel_futures=True)


@dataclass
class _Run:
    """One call of `Optimizer.optimize`."""

    optimizer: Optimizer
    n_trials: int | None
    timeout: float | None
    callbacks: list[Callable[..., Any]]
    target: float | None
    bar: _Bar
    begun: int = 0
    begin: float = field(default_factory=time.monotonic)

    def ask(self) -> Trial | str:
        if self.n_trials is not None and self.begun >= self.n_trials:
            return "n_trials"
        if self.timeout is not None and time.monotonic() - self.begin >= self.timeout:
            return "timeout"
        try:
            trial = self.optimizer.ask_trial()
        except _native.SpaceExhausted:
            return "exhausted"
        self.begun += 1
        return trial

    def end(self, trial: Trial, evaluation: Evaluation, calls: bool) -> str:
        optimizer = self.optimizer
        value, failure, error = evaluation.outcome(trial.number)
        optimizer._times[trial.number] = evaluation.times
        optimizer._end(trial.number, value, failure or "")
        if not calls:
            return ""
        if error is not None:
            raise error
        self.bar.show(self.begun, optimizer._best)
        state = "FAIL" if value is None else "COMPLETE"
        done = replace(trial, state=state, value=value, failure=failure, **evaluation.times)
        called = called_back(self.callbacks, optimizer, done)
        sign = 1.0 if optimizer.goal == "minimize" else -1.0
        if self.target is not None and value is not None and sign * value <= sign * self.target:
            return "target"
        return called

    def release(self, trials: list[Trial]) -> None:
        for trial in trials:
            if trial.number in self.optimizer._open:
                self.optimizer.forget(trial)


def called_back(callbacks: list[Callable[..., Any]], run: Any, trial: Trial) -> str:
    """Calls all callbacks; a reason to end if one says so."""
    stops = [plain(callback(run, trial)) is True for callback in callbacks]
    return "callback" if any(stops) else ""


class _Bar:
    """A line that shows progress, in a terminal or a notebook unless somebody wants it otherwise."""

    def __init__(self, total: int | None, wanted: bool | None) -> None:
        self._total = total
        self._notebook = "ipykernel" in sys.modules
        self._shown = (self._notebook or sys.stderr.isatty()) if wanted is None else wanted
        self._last = 0.0
        self._length = 0

    def show(self, begun: int, best: Trial | None) -> None:
        now = time.monotonic()
        if not self._shown or (now - self._last < 0.1 and begun != self._total):
            return
        self._last = now
        total = "" if self._total is None else f"/{self._total}"
        standing = "" if best is None else f", best {best.value:.6g} (trial {best.number})"
        line = f"{begun}{total} trials{standing}"
        # Notebooks know no codes of terminals; spaces hide what was there.
        sys.stderr.write(f"\r{line.ljust(self._length)}" if self._notebook else f"\r\033[K{line}")
        sys.stderr.flush()
        self._length = len(line)

    def close(self) -> None:
        if self._shown and self._last:
            sys.stderr.write("\n")
