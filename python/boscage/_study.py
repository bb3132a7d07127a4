"""Studies: trials in a store that survives crashes and that many processes share."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Union, overload

from . import _native
from ._model import Model
from ._optimize import (
    Catch,
    Evaluation,
    Method,
    Params,
    Start,
    Trial,
    _seed,
    callback_list,
    called_back,
    catch_tuple,
    check_budget,
    check_seconds,
    dataframe,
    goal_name,
    jobs,
    method_json,
    no_value,
    number,
    run_trials,
    space_of,
    start_list,
    trials_from,
)
from ._space import Space, as_space, dumps, plain, point_json

if TYPE_CHECKING:
    import pandas


Storage = Union[str, "os.PathLike[str]"]


def _storage(storage: Any) -> str:
    if not isinstance(storage, (str, os.PathLike)):
        raise TypeError(f"the storage is {storage!r}; it must be the path of a file or the address of a database")
    return os.fsdecode(storage)


def studies(storage: Storage) -> list[dict[str, Any]]:
    """The studies of a store: name, goal, numbers of trials by state, best value."""
    found: list[dict[str, Any]] = json.loads(_native.studies(_storage(storage)))
    return found


@dataclass(frozen=True)
class AskedTrial(Trial):
    """A trial to be run."""

    attempt: int = 1
    token: str | None = None


class Study:
    """Trials in a store: a SQLite file, or a PostgreSQL database for many machines.

    The same files and rules as the program `boscage`; the tables are Optuna's, so that its dashboard shows the study. A study
    goes on where it was when it is opened again. It is pickled and copied as its place: who unpickles it opens it there.

    `space`: see :class:`Space`; without one, a study that is there is opened as it is.
    `storage`: a file, or the address of a database, ``postgresql://...``.
    `name`: "study" if none is given; of an existing store with one study, that one.
    `goal`: "minimize" (which it is if nothing is said) or "maximize"; `direction` is Optuna's word for it.
    `method`: a name of :func:`methods`, or a dictionary with ``name`` and ``settings``.
    `seed`: the same seed, the same points; with ``None`` one is drawn when the study begins, and `seed` says which.
    `start`: points to begin with; what one leaves out is chosen.
    `allow_changes`: whether the space and the method may differ from those that the study was begun with.
    `lost_retries`: how often a trial is given out again after its worker was lost.
    `lease_seconds`: how long after its last sign of life a worker of `optimize` counts as lost.

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
        storage: Storage = "boscage.db",
        name: str | None = None,
        goal: str | None = None,
        direction: Any = None,
        method: Method = None,
        seed: int | None = 0,
        start: Start = (),
        allow_changes: bool = False,
        lost_retries: int = 3,
        lease_seconds: float = 60.0,
    ) -> None:
        check_seconds("lease_seconds", lease_seconds)
        self._lease = float(lease_seconds)
        if isinstance(lost_retries, bool) or not isinstance(lost_retries, int) or not 0 <= lost_retries < 2**32:
            raise ValueError(f"lost_retries is {lost_retries!r}; it must be an integer from 0")
        self._storage = _storage(storage)
        wanted = _goal(goal, direction)
        points = start_list(start)
        if space is None:
            self._native = _native.Study.load(self._storage, name)
            self._space = space_of(self._native.definition())
            return
        self._space = as_space(space)
        name = "study" if name is None else name
        self._native = _native.Study.open(
            self._storage,
            name,
            self._space.json,
            wanted,
            method_json(method),
            self._drawn(name) if seed is None else _seed(seed),
            allow_changes,
            dumps([json.loads(point_json(self._space._given(point))) for point in points]),
            lost_retries,
        )

    def _drawn(self, name: str) -> int:
        """The seed of the study if it is there, otherwise a new one."""
        with contextlib.suppress(ValueError, _native.BoscageError):
            return int(json.loads(_native.Study.load(self._storage, name).definition())["seed"])
        return _seed(None)

    def __getstate__(self) -> dict[str, Any]:
        # A file stays the same one if the other process is in another folder.
        place = self._storage if "://" in self._storage else os.path.abspath(self._storage)
        return {"storage": place, "name": self.name, "lease_seconds": self._lease}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(Study(**state).__dict__)

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

    @property
    def seed(self) -> int:
        """The seed, also if it was drawn."""
        return int(json.loads(self._native.definition())["seed"])

    @overload
    def ask(self, *, lease_seconds: float = 3600.0, n_trials: None = None) -> AskedTrial: ...
    @overload
    def ask(self, *, lease_seconds: float = 3600.0, n_trials: int | None) -> AskedTrial | None: ...
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

    def tell(self, trial: Trial | int, value: Any = None, *, state: Any = None, reason: str = "failed") -> None:
        """Ends a trial with a value, or, with `state` "FAIL" or "PRUNED" (Optuna's states do too), without one.

        The same result again changes nothing; another one is an error. ``None`` and NaN mean that it failed.
        """
        wanted = trial.number if isinstance(trial, Trial) else plain(trial)
        if isinstance(wanted, bool) or not isinstance(wanted, int):
            raise TypeError(f"a trial is an AskedTrial or its number, not {type(trial).__name__}")
        if wanted < 0:
            raise ValueError(f"there is no trial {wanted}")
        token = getattr(trial, "token", None)
        state = getattr(state, "name", state)
        if state == "PRUNED":
            self._native.prune(wanted, reason, token)
            return
        if state not in (None, "COMPLETE", "FAIL"):
            raise ValueError(f"the state {state!r} is not COMPLETE, FAIL or PRUNED")
        outcome = None if state == "FAIL" else number(value)
        if outcome is None:
            why = reason if state == "FAIL" or value is None else no_value(value)
            self._native.fail(wanted, why, token)
        else:
            self._native.tell(wanted, outcome, token)

    def optimize(
        self,
        f: Callable[[Params], Any],
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        callbacks: StudyCallback | Iterable[StudyCallback] = (),
        catch: Catch = (),
    ) -> str:
        """Runs trials until the study has `n_trials`, or `timeout` seconds are over; gives the reason it ended for.

        `n_trials` is the total of the study, with the trials it has already (in Optuna it is how many more are run). The
        other arguments are as in :func:`minimize`; callbacks get the study and the trial.

        An exception that is not in `catch` is raised, and its trial has failed. Ctrl-C gives back what was not finished: the
        next ask has it again.
        """
        called, caught = callback_list(callbacks), catch_tuple(catch)
        if n_trials is None and timeout is None and not called:
            raise ValueError("it would never end; give n_trials or timeout")
        check_budget(n_trials, timeout)
        n_jobs = jobs(n_jobs)
        run = _Run(self, n_trials, timeout, called)
        over = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(run.held, over), daemon=True)
        keeper.start()
        try:
            return run_trials(f, run.ask, run.end, run.release, n_jobs, caught)
        finally:
            over.set()
            keeper.join()
            # After the last time that they were prolonged.
            run.give_back()

    def _keep(self, held: dict[int, str], over: threading.Event) -> None:
        while not over.wait(self._lease / 3):
            try:
                self._native.renew(list(held.items()), self._lease)
            except _native.BoscageError:
                # The result decides: it is taken if nobody else was given the trial.
                pass

    def enqueue(self, params: Mapping[str, Any]) -> int:
        """Puts a point into the queue; parameters that are left out are chosen by the method. Gives its number."""
        return self._native.enqueue(point_json(self._space._given(params)))

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


StudyCallback = Callable[[Study, Trial], Any]


def _goal(goal: Any, direction: Any) -> str:
    """The goal, by our word or by Optuna's."""
    if direction is not None:
        # Optuna's directions are an enumeration, with names in capitals.
        direction = str(getattr(direction, "name", direction)).lower()
        if goal is not None and goal != direction:
            raise ValueError(f"the goal is {goal!r} and the direction {direction!r}; give one of them")
    return goal_name(next((one for one in (goal, direction) if one is not None), "minimize"))


@dataclass
class _Run:
    """One call of `Study.optimize`."""

    study: Study
    n_trials: int | None
    timeout: float | None
    callbacks: list[Callable[..., Any]]
    # The trials that are being evaluated, with their tokens.
    held: dict[int, str] = field(default_factory=dict)
    released: list[tuple[int, str]] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)

    def ask(self) -> AskedTrial | str:
        if self.timeout is not None and time.monotonic() - self.begin >= self.timeout:
            return "timeout"
        study = self.study
        try:
            trial = study._ask(study._lease, self.n_trials, watched=True)
        except _native.SpaceExhausted:
            return "exhausted"
        if trial is None:
            return "n_trials"
        self.held[trial.number] = trial.token or ""
        return trial

    def end(self, trial: AskedTrial, evaluation: Evaluation, calls: bool) -> str:
        value, failure, error = evaluation.outcome(trial.number)
        if value is None:
            # What was raised matters more than that it could not be stored.
            with contextlib.suppress(*((_native.BoscageError,) if error is not None else ())):
                self.study._native.fail(trial.number, failure or "failed", trial.token)
        else:
            self.study._native.tell(trial.number, value, trial.token)
        self.held.pop(trial.number, None)
        if not calls:
            return ""
        if error is not None:
            raise error
        state = "FAIL" if value is None else "COMPLETE"
        plain_trial = Trial(trial.number, trial.params)
        done = replace(plain_trial, state=state, value=value, failure=failure, **evaluation.times)
        return called_back(self.callbacks, self.study, done)

    def release(self, trials: list[AskedTrial]) -> None:
        for trial in trials:
            token = self.held.pop(trial.number, None)
            if token is not None:
                self.released.append((trial.number, token))

    def give_back(self) -> None:
        """Lets what was released run out, so that the next ask gives it again."""
        if self.released:
            with contextlib.suppress(_native.BoscageError):
                for number, token in self.released:
                    self.study._native.release(number, token)
