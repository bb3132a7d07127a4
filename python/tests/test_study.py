"""Studies: the same files and rules as the program, shared by processes."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import boscage
from boscage import Optimizer, Study

SPACE: dict[str, Any] = {
    "x": (-5.0, 5.0),
    "n": (1, 8),
    "mode": ["a", "b"],
    "z": boscage.Real(0.001, 1, log=True, condition='mode == "a"'),
}


def cost(params: dict[str, Any]) -> float:
    value: float = (params["x"] - 1) ** 2 + params["n"] + params.get("z", 0.5)
    return value


def outcome(number: int, params: dict[str, Any]) -> float | None:
    return None if number % 6 == 4 else cost(params)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "study.db")


def test_ask_tell_and_best(store: str) -> None:
    study = Study(SPACE, storage=store, name="one", seed=1)
    assert study.name == "one" and study.goal == "minimize" and study.space.names == list(SPACE)
    with pytest.raises(ValueError, match="no trial has a value yet"):
        _ = study.best_trial
    for _ in range(5):
        trial = study.ask()
        assert trial is not None and trial.state == "RUNNING" and trial.attempt == 1
        study.tell(trial, cost(trial.params))
    values = [trial.value for trial in study.trials]
    assert all(trial.value == cost(trial.params) for trial in study.trials)
    assert study.best_value == min(value for value in values if value is not None)
    assert study.best_params == study.best_trial.params
    assert boscage.studies(store) == [
        {"name": "one", "goal": "minimize", "trials": {"COMPLETE": 5}, "best_value": study.best_value}
    ]


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_the_same_points_as_in_memory(store: str, goal: str) -> None:
    study = Study(SPACE, storage=store, seed=9, goal=goal)
    optimizer = Optimizer(SPACE, seed=9, goal=goal)
    for number in range(30):
        ours, theirs = study.ask(), optimizer.ask_trial()
        assert ours is not None
        assert repr(ours.params) == repr(theirs.params), f"trial {number}"
        study.tell(ours, outcome(number, ours.params))
        optimizer.tell(theirs, outcome(number, theirs.params))
        if number % 10 == 9:
            study = Study(SPACE, storage=store, seed=9, goal=goal)
    assert str(study.model) == str(optimizer.model)


def test_the_same_points_as_the_program(tmp_path: Path) -> None:
    program = os.environ.get("BOSCAGE_TEST_BINARY")
    if not program:
        pytest.skip("BOSCAGE_TEST_BINARY does not name the program")
    file = tmp_path / "same.toml"
    file.write_text(
        """
name = "same"
seed = 9
[parameters]
x = { type = "real", low = -5, high = 5 }
n = { type = "integer", low = 1, high = 8 }
mode = { type = "categorical", choices = ["a", "b"] }
z = { type = "real", low = 0.001, high = 1, log = true, condition = 'mode == "a"' }
[program]
command = ["true", "{parameters_file}"]
"""
    )

    def call(*arguments: str) -> str:
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    optimizer = Optimizer(SPACE, seed=9)
    for number in range(20):
        asked = json.loads(call("ask", "same.toml"))
        ours = optimizer.ask_trial()
        assert asked["number"] == ours.number
        assert asked["params"] == ours.params, f"trial {number}"
        value = outcome(number, ours.params)
        optimizer.tell(ours, value)
        if value is None:
            call("tell", "same.toml", str(number), "--failed", "no value")
        else:
            call("tell", "same.toml", str(number), repr(value))
    # The program's file is a study here too, and the other way round.
    study = Study(storage=str(tmp_path / "same.db"))
    assert study.name == "same" and len(study.trials) == 20
    trial = study.ask()
    assert trial is not None and trial.params == optimizer.ask()
    study.tell(trial, 0.25)
    assert "0.25" in call("show", "same.db")


def test_telling_twice(store: str) -> None:
    study = Study(SPACE, storage=store)
    trial = study.ask()
    assert trial is not None
    study.tell(trial, 1.0)
    study.tell(trial, 1.0)
    study.tell(trial.number, 1.0)
    with pytest.raises(boscage.BoscageError, match="trial 0 has the value 1.0; it cannot be told anything else"):
        study.tell(trial, 2.0)
    with pytest.raises(boscage.BoscageError, match="has no trial 99"):
        study.tell(99, 1.0)
    with pytest.raises(ValueError, match="the state 'DONE' is not COMPLETE, FAIL or PRUNED"):
        study.tell(trial, 1.0, state="DONE")
    assert [trial.value for trial in study.trials] == [1.0]


def test_states(store: str) -> None:
    study = Study(SPACE, storage=store)
    given: list[tuple[Any, dict[str, Any]]] = [
        (2.0, {}),
        (math.nan, {}),
        (None, {}),
        (None, {"state": "FAIL", "reason": "out of memory"}),
        (None, {"state": "PRUNED", "reason": "too slow"}),
    ]
    for value, how in given:
        trial = study.ask()
        assert trial is not None
        study.tell(trial, value, **how)
    assert [(trial.state, trial.value, trial.failure) for trial in study.trials] == [
        ("COMPLETE", 2.0, None),
        ("FAIL", None, "the value is nan"),
        ("FAIL", None, "failed"),
        ("FAIL", None, "out of memory"),
        ("PRUNED", None, "too slow"),
    ]


def test_a_limit_counts_all_trials_of_the_study(store: str) -> None:
    study = Study(SPACE, storage=store)
    assert study.optimize(cost, n_trials=4) == "n_trials"
    again = Study(SPACE, storage=store)
    assert again.optimize(cost, n_trials=6) == "n_trials"
    assert len(again.trials) == 6
    assert again.ask(n_trials=6) is None


def test_it_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    straight = Study(SPACE, storage=str(tmp_path / "straight.db"), seed=2)
    straight.optimize(cost, n_trials=24)
    for limit in (7, 13, 24):
        Study(SPACE, storage=str(tmp_path / "parts.db"), seed=2).optimize(cost, n_trials=limit)
    parts = Study(storage=str(tmp_path / "parts.db"))
    assert [(t.params, t.value) for t in parts.trials] == [(t.params, t.value) for t in straight.trials]


def test_a_changed_space_is_refused_with_the_difference(store: str) -> None:
    Study(SPACE, storage=store, name="one").optimize(cost, n_trials=2)
    with pytest.raises(boscage.StudyChanged) as raised:
        Study({**SPACE, "x": (-5.0, 6.0)}, storage=store, name="one")
    assert 'study "one" has changed' in str(raised.value)
    assert "parameters.x.high: 5.0 → 6.0" in str(raised.value)
    with pytest.raises(boscage.StudyChanged, match="seed: 0 → 1"):
        Study(SPACE, storage=store, name="one", seed=1)
    with pytest.raises(boscage.StudyChanged, match='goal: "minimize" → "maximize"'):
        Study(SPACE, storage=store, name="one", goal="maximize", allow_changes=True)
    wider = Study({**SPACE, "x": (-5.0, 6.0)}, storage=store, name="one", allow_changes=True)
    assert len(wider.trials) == 2
    assert Study(storage=store).space.json == wider.space.json


def test_stores_that_are_none(tmp_path: Path, store: str) -> None:
    with pytest.raises(ValueError, match="there is no file .*; give a space to begin a study"):
        Study(storage=store)
    with pytest.raises(boscage.StorageError, match="there is no such file"):
        boscage.studies(store)
    (tmp_path / "text").write_text("hello" * 1000)
    with pytest.raises(boscage.StorageError, match="it is not a SQLite database"):
        Study(SPACE, storage=str(tmp_path / "text"))
    with pytest.raises(boscage.StorageError, match="it is a folder; give a file"):
        Study(SPACE, storage=str(tmp_path))
    with pytest.raises(boscage.StorageError, match="mysql is not supported"):
        Study(SPACE, storage="mysql://host/base")
    Study(SPACE, storage=store, name="one")
    Study(SPACE, storage=store, name="two")
    with pytest.raises(boscage.BoscageError, match="several studies.*one, two"):
        Study(storage=store)
    with pytest.raises(boscage.BoscageError, match='has no study "three"; it has one, two'):
        Study(storage=store, name="three")


def test_start_points_and_the_queue(store: str) -> None:
    study = Study(SPACE, storage=store, start=[{"x": 2.0}])
    assert study.enqueue({"n": 7}) == 1
    with pytest.raises(ValueError, match='parameter "n": 70 is not between 1 and 8'):
        study.enqueue({"n": 70})
    first, second = study.ask(), study.ask()
    assert first is not None and second is not None
    assert first.params["x"] == 2.0 and second.params["n"] == 7
    with pytest.raises(boscage.BoscageError, match='start point 1: parameter "x": 99.0 is not between -5 and 5'):
        Study(SPACE, storage=store, name="other", start=[{"x": 99.0}])


def test_a_lost_trial_is_given_again(store: str) -> None:
    study = Study(SPACE, storage=store)
    lost = study.ask(lease_seconds=0.001)
    time.sleep(0.01)
    again = study.ask()
    assert lost is not None and again is not None
    assert (again.number, again.params, again.attempt) == (lost.number, lost.params, 2)


@pytest.mark.parametrize("jobs", [1, 3])
def test_optimize(store: str, jobs: int) -> None:
    seen: list[int] = []

    def breaks(params: dict[str, Any]) -> float:
        if params["n"] == 3:
            raise ZeroDivisionError("three")
        return cost(params)

    study = Study(SPACE, storage=store, method="random", seed=1)
    reason = study.optimize(
        breaks, n_trials=30, n_jobs=jobs, catch=(ZeroDivisionError,), callbacks=[lambda _, t: seen.append(t.number)]
    )
    assert reason == "n_trials" and sorted(seen) == list(range(30))
    for trial in study.trials:
        failed = trial.params["n"] == 3
        assert trial.state == ("FAIL" if failed else "COMPLETE")
        assert trial.failure == ("ZeroDivisionError: three" if failed else None)
    assert study.optimize(cost, timeout=0.05, n_jobs=jobs) == "timeout"
    assert study.optimize(cost, callbacks=[lambda _, t: True], n_jobs=jobs) == "callback"
    small = Study({"n": (1, 5)}, storage=store, name="small")
    assert small.optimize(lambda p: p["n"], n_trials=20, n_jobs=jobs) == "exhausted"
    with pytest.raises(ValueError, match="it would never end; give n_trials or timeout"):
        study.optimize(cost)
    with pytest.raises(ValueError, match="n_jobs is 0; it must be at least 1"):
        study.optimize(cost, n_trials=99, n_jobs=0)


WORKER = """
import sys
import boscage
study = boscage.Study(storage=sys.argv[1])
study.optimize(lambda p: (p["x"] - 1) ** 2 + p["n"], n_trials=40)
print(len(study.trials))
"""


def test_processes_share_a_study(store: str) -> None:
    study = Study({"x": (-5.0, 5.0), "n": (1, 8)}, storage=store, method="random", seed=1)
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    study.optimize(lambda p: (p["x"] - 1) ** 2 + p["n"], n_trials=40)  # type: ignore[operator]
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors
    assert [trial.number for trial in study.trials] == list(range(40))
    assert {trial.state for trial in study.trials} == {"COMPLETE"}
    # The points do not depend on who ran them.
    alone = Optimizer({"x": (-5.0, 5.0), "n": (1, 8)}, method="random", seed=1)
    assert [trial.params for trial in study.trials] == alone.ask(40)


def test_threads_share_a_study_object(store: str) -> None:
    study = Study(SPACE, storage=store, method="random")
    threads = [threading.Thread(target=study.optimize, args=(cost, 20)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {trial.state for trial in study.trials} == {"COMPLETE"} and len(study.trials) == 20


def test_optuna_reads_it(store: str) -> None:
    import optuna
    study = Study(SPACE, storage=store, name="one", goal="maximize", seed=1)
    for number in range(12):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outcome(number, trial.params))
    theirs = optuna.load_study(study_name="one", storage=f"sqlite:///{store}")
    assert theirs.direction == optuna.study.StudyDirection.MAXIMIZE
    assert theirs.best_value == study.best_value and theirs.best_params == study.best_params
    assert [(t.number, t.params, t.value, t.state.name) for t in theirs.trials] == [
        (t.number, t.params, t.value, t.state) for t in study.trials
    ]


def test_callbacks_get_times(store: str) -> None:
    seen: list[boscage.Trial] = []
    study = Study(SPACE, storage=store)
    study.optimize(cost, n_trials=2, callbacks=lambda _, trial: seen.append(trial))
    for trial, stored in zip(seen, study.trials):
        assert trial.params == stored.params and trial.value == stored.value
        assert trial.seconds is not None and stored.datetime_complete is not None
        assert trial.datetime_start is not None and trial.datetime_complete is not None
        assert trial.datetime_start <= trial.datetime_complete <= stored.datetime_complete


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("what", ["f", "type", "callback"])
def test_nothing_stays_running_after_an_exception(store: str, jobs: int, what: str) -> None:
    def breaks(params: dict[str, Any]) -> Any:
        if params["n"] == 8:
            if what == "f":
                raise OSError("the disk is full")
            return "a lot" if what == "type" else cost(params)
        time.sleep(0.05)
        return cost(params)

    def called(_: Study, trial: boscage.Trial) -> None:
        if what == "callback" and trial.params["n"] == 8:
            raise OSError("the disk is full")

    study = Study(SPACE, storage=store, method="random", start=[{"n": 2}, {"n": 3}, {"n": 8}, {"n": 4}])
    with pytest.raises(TypeError if what == "type" else OSError):
        study.optimize(breaks, n_trials=9, n_jobs=jobs, callbacks=[called])
    assert {trial.state for trial in study.trials} <= {"COMPLETE", "FAIL", "WAITING"}
    failure = next(trial.failure for trial in study.trials if trial.params.get("n") == 8)
    assert failure == {"f": "OSError: the disk is full", "callback": None}.get(
        what, "TypeError: the value of trial 2 is 'a lot', which is not a number"
    )
    assert study.optimize(cost, n_trials=9) == "n_trials"
    assert sum(trial.state == "COMPLETE" for trial in study.trials) == (9 if what == "callback" else 8)


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_gives_trials_back(store: str, jobs: int) -> None:
    over = threading.Event()

    def interrupted(params: dict[str, Any]) -> float:
        if params["n"] == 8:
            raise KeyboardInterrupt
        if params["n"] == 7:
            over.wait(20)
        return cost(params)

    study = Study(SPACE, storage=store, method="random", start=[{"n": 2}, {"n": 7} if jobs > 1 else {"n": 3}, {"n": 8}])
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            study.optimize(interrupted, n_trials=9, n_jobs=jobs)
    finally:
        over.set()
    assert time.monotonic() - begin < 10
    assert study.optimize(cost, n_trials=5) == "n_trials"
    assert [trial.state for trial in study.trials] == ["COMPLETE"] * 5
    assert [trial.params["n"] for trial in study.trials][::2][:2] == [2, 8]


def test_optunas_words(store: str) -> None:
    import optuna

    study = Study(SPACE, storage=store, direction="maximize", method="random")
    assert study.goal == "maximize"
    assert Study(SPACE, storage=store, direction=optuna.study.StudyDirection.MAXIMIZE, method="random").goal == "maximize"
    with pytest.raises(ValueError, match="the goal is 'minimize' and the direction 'maximize'; give one of them"):
        Study(SPACE, storage=store, goal="minimize", direction="maximize")
    with pytest.raises(ValueError, match="the goal is 'max'; it must be 'minimize' or 'maximize'"):
        Study(SPACE, storage=store, direction="max")
    states = optuna.trial.TrialState
    for state, value in ((states.COMPLETE, 1.0), (states.FAIL, None), (states.PRUNED, None)):
        study.tell(study.ask(), value, state=state)
    assert [trial.state for trial in study.trials] == ["COMPLETE", "FAIL", "PRUNED"]
    with pytest.raises(ValueError, match="the state 'RUNNING' is not COMPLETE, FAIL or PRUNED"):
        study.tell(study.ask(), state=states.RUNNING)


def test_paths_seeds_and_a_start(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    study = Study(SPACE, storage=path, seed=None, start={"n": 7})
    assert study.ask().params["n"] == 7
    # It is drawn once.
    assert Study(SPACE, storage=path, seed=None, start={"n": 7}).seed == study.seed
    assert Study(SPACE, storage=path, name="other", seed=None).seed != study.seed
    assert [one["name"] for one in boscage.studies(path)] == ["study", "other"]
    with pytest.raises(TypeError, match="the storage is 3; it must be the path of a file"):
        Study(SPACE, storage=3)  # type: ignore[arg-type]


def test_pickled_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = Study(SPACE, storage="study.db", name="one", method="random", lease_seconds=7)
    study.optimize(cost, n_trials=3)
    data = pickle.dumps(study)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for other in (pickle.loads(data), copy.deepcopy(pickle.loads(data))):
        assert other.name == "one" and other.trials == study.trials and other._lease == 7
    (tmp_path / "study.db").rename(tmp_path / "moved.db")
    with pytest.raises(ValueError, match="there is no file"):
        pickle.loads(data)
    assert not (tmp_path / "study.db").exists() and not list((tmp_path / "elsewhere").iterdir())


def test_dataframe(store: str) -> None:
    study = Study(SPACE, storage=store)
    study.optimize(cost, n_trials=5)
    frame = study.trials_dataframe()
    assert list(frame["number"]) == [0, 1, 2, 3, 4]
    assert list(frame["params_x"]) == [trial.params["x"] for trial in study.trials]
