"""Studies: trials in a store that survives crashes and that many processes share."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._model import Model
from ._optimize import (
    Method,
    Params,
    Trial,
    _evaluate,
    _seed,
    check_budget,
    check_seconds,
    dataframe,
    jobs,
    method_json,
    number,
    trials_from,
)
from ._space import Space, as_space, dumps, plain

if TYPE_CHECKING:
    import pandas


def studies(storage: str) -> list[dict[str, Any]]:
    """The studies of a store: name, goal, numbers of trials by state, best value."""
    found: list[dict[str, Any]] = json.loads(_native.studies(storage))
    return found


@dataclass(frozen=True)
class AskedTrial(Trial):
    """A trial to be run."""

    attempt: int = 1
    token: str | None = None


class Study:
    """Trials in a store: a SQLite file, or a PostgreSQL database for many machines.

    The same files and rules as the program `boscage`; the tables are Optuna's, so that its dashboard shows the study. A study
    goes on where it was when it is opened again.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "study.db")
    >>> study = Study({"x": (-5.0, 5.0)}, storage=path, name="bowl", seed=1)
    >>> study.optimize(lambda p: p["x"] ** 2, n_trials=12)
    'n_trials'
    >>> study = Study({"x": (-5.0, 5.0)}, storage=path, name="bowl", seed=1)
    >>> len(study.trials), study.best_value < 1
    (12, True)
    """

    def __init__(
        self,
        space: Any = None,
        *,
        storage: str = "boscage.db",
        name: str | None = None,
        goal: str = "minimize",
        method: Method = None,
        seed: int = 0,
        start: Sequence[Mapping[str, Any]] = (),
        allow_changes: bool = False,
        lost_retries: int = 3,
        lease_seconds: float = 60.0,
    ) -> None:
        check_seconds("lease_seconds", lease_seconds)
        self._lease = float(lease_seconds)
        if isinstance(lost_retries, bool) or not isinstance(lost_retries, int) or not 0 <= lost_retries < 2**32:
            raise ValueError(f"lost_retries is {lost_retries!r}; it must be an integer from 0")
        if space is None:
            self._native = _native.Study.load(storage, name)
            data = json.loads(self._native.definition())["space"]
            parameters = {p["name"]: {k: v for k, v in p.items() if k != "name"} for p in data["parameters"]}
            self._space = Space(parameters, data.get("forbidden", ()))
            return
        self._space = as_space(space)
        self._native = _native.Study.open(
            storage,
            "study" if name is None else name,
            self._space.json,
            goal,
            method_json(method),
            _seed(seed),
            allow_changes,
            dumps([dict(point) for point in start]),
            lost_retries,
        )

    @property
    def name(self) -> str:
        """The study's name."""
        return self._native.name

    @property
    def space(self) -> Space:
        """Its space."""
        return self._space

    @property
    def goal(self) -> str:
        """`minimize` or `maximize`."""
        return str(json.loads(self._native.definition())["goal"])

    def ask(self, *, lease_seconds: float = 3600.0, n_trials: int | None = None) -> AskedTrial | None:
        """The next trial; none if the study has `n_trials` already. It is given to others if it is not told in time."""
        check_seconds("lease_seconds", lease_seconds)
        check_budget(n_trials, None)
        return self._ask(lease_seconds, n_trials, watched=False)

    def _ask(self, lease: float, limit: int | None, *, watched: bool) -> AskedTrial | None:
        asked = self._native.ask(lease, limit, watched)
        if asked is None:
            return None
        trial, params, attempt, token = asked
        return AskedTrial(trial, self._space._ordered(json.loads(params)), attempt=attempt, token=token)

    def tell(self, trial: Trial | int, value: Any = None, *, state: str | None = None, reason: str = "failed") -> None:
        """Ends a trial with a value, or, with `state` "FAIL" or "PRUNED", without one.

        The same result again changes nothing; another one is an error. ``None`` and NaN mean that it failed.
        """
        wanted = trial.number if isinstance(trial, Trial) else plain(trial)
        if isinstance(wanted, bool) or not isinstance(wanted, int):
            raise TypeError(f"a trial is an AskedTrial or its number, not {type(trial).__name__}")
        if wanted < 0:
            raise ValueError(f"there is no trial {wanted}")
        token = getattr(trial, "token", None)
        if state == "PRUNED":
            self._native.prune(wanted, reason, token)
            return
        if state not in (None, "COMPLETE", "FAIL"):
            raise ValueError(f"the state {state!r} is not COMPLETE, FAIL or PRUNED")
        outcome = None if state == "FAIL" else number(value)
        if outcome is None:
            why = reason if state == "FAIL" or value is None else f"the value is {value}"
            self._native.fail(wanted, why, token)
        else:
            self._native.tell(wanted, outcome, token)

    def optimize(
        self,
        f: Callable[[Params], Any],
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        callbacks: Sequence[Callable[[Study, Trial], Any]] = (),
        catch: tuple[type[Exception], ...] = (),
    ) -> str:
        """Runs trials until the study has `n_trials`, or `timeout` seconds are over; gives the reason it ended for."""
        if n_trials is None and timeout is None and not callbacks:
            raise ValueError("it would never end; give n_trials or timeout")
        check_budget(n_trials, timeout)
        n_jobs = jobs(n_jobs)
        begin = time.monotonic()
        held: dict[int, str] = {}
        over = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(held, over), daemon=True)
        keeper.start()
        running: dict[Future[tuple[Any, str | None]], AskedTrial] = {}
        reason = ""
        pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        try:
            while True:
                while len(running) < n_jobs and not reason:
                    if timeout is not None and time.monotonic() - begin >= timeout:
                        reason = "timeout"
                        break
                    try:
                        trial = self._ask(self._lease, n_trials, watched=True)
                    except _native.SpaceExhausted:
                        reason = "exhausted"
                        break
                    if trial is None:
                        reason = "n_trials"
                        break
                    held[trial.number] = trial.token or ""
                    if pool is None:
                        reason = self._end(trial, _evaluate(f, trial.params, catch), held, callbacks) or reason
                    else:
                        running[pool.submit(_evaluate, f, trial.params, catch)] = trial
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    trial = running.pop(future)
                    reason = self._end(trial, future.result(), held, callbacks) or reason
        finally:
            over.set()
            keeper.join()
            if pool is not None:
                pool.shutdown()
        return reason

    def _end(
        self,
        trial: AskedTrial,
        found: tuple[Any, str | None],
        held: dict[int, str],
        callbacks: Sequence[Callable[[Study, Trial], Any]],
    ) -> str:
        value, failure = found
        if failure is None:
            self.tell(trial, value)
        else:
            self.tell(trial, state="FAIL", reason=failure)
        held.pop(trial.number, None)
        outcome = number(value) if failure is None else None
        state = "FAIL" if outcome is None else "COMPLETE"
        done = Trial(trial.number, trial.params, state, outcome, failure)
        return "callback" if any(callback(self, done) is True for callback in list(callbacks)) else ""

    def _keep(self, held: dict[int, str], over: threading.Event) -> None:
        while not over.wait(self._lease / 3):
            try:
                self._native.renew(list(held.items()), self._lease)
            except _native.BoscageError:
                # The result decides: it is taken if nobody else was given the trial.
                pass

    def enqueue(self, params: Mapping[str, Any]) -> int:
        """Puts a point into the queue; parameters that are left out are chosen by the method. Gives its number."""
        return self._native.enqueue(dumps(dict(params)))

    enqueue_trial = enqueue

    @property
    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return trials_from(self._native.trials(), self._space)

    @property
    def best_trial(self) -> Trial:
        """The trial with the best value."""
        best = self._native.best()
        if best is None:
            raise ValueError("no trial has a value yet")
        return self.trials[best]

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
        explanation = self._native.explain()
        return None if explanation is None else Model(explanation, self._space)

    def trials_dataframe(self) -> pandas.DataFrame:
        """All trials as a data frame (needs pandas), with Optuna's column names."""
        return dataframe(self.trials)

    def __repr__(self) -> str:
        return f"<Study {self.name!r} of {len(self._space)} parameters>"
