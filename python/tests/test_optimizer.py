"""Ask and tell, minimize and maximize."""

from __future__ import annotations

import copy
import datetime
import json
import math
import pickle
import random
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import boscage
from boscage import Optimizer, Real

SPACE: dict[str, Any] = {
    "x": (-5.0, 5.0),
    "y": (-5.0, 5.0),
    "n": (1, 8),
    "mode": ["a", "b"],
    "z": Real(0, 1, condition='mode == "a"'),
}


def cost(params: dict[str, Any]) -> float:
    value: float = (params["x"] - 1) ** 2 + params["x"] * params["y"] / 5 + params["n"] + params.get("z", 0.5)
    return value


def test_ask_and_tell() -> None:
    optimizer = Optimizer(SPACE, seed=1)
    for _ in range(15):
        params = optimizer.ask()
        optimizer.tell(params, cost(params))
    assert len(optimizer) == 15
    assert [trial.number for trial in optimizer.trials] == list(range(15))
    assert {trial.state for trial in optimizer.trials} == {"COMPLETE"}
    best = optimizer.best
    assert best is not None and best.value == min(cost(trial.params) for trial in optimizer.trials)


def test_any_number_of_points_in_any_order() -> None:
    optimizer = Optimizer(SPACE, seed=2)
    points = optimizer.ask(12)
    points += [optimizer.ask() for _ in range(3)]
    assert len({json.dumps(point, sort_keys=True) for point in points}) == 15
    assert {trial.state for trial in optimizer.trials} == {"RUNNING"}
    random.Random(1).shuffle(points)
    for point in points:
        optimizer.tell(point, cost(point))
    assert {trial.state for trial in optimizer.trials} == {"COMPLETE"}
    assert all(trial.value == cost(trial.params) for trial in optimizer.trials)


def test_the_order_of_tells_does_not_matter() -> None:
    first, second = Optimizer(SPACE, seed=4), Optimizer(SPACE, seed=4)
    trials = [(first.ask_trial(), second.ask_trial()) for _ in range(14)]
    assert all(a == b for a, b in trials)
    for a, _ in trials:
        first.tell(a, cost(a.params))
    for _, b in reversed(trials):
        second.tell(b.number, cost(b.params))
    assert first.trials == second.trials


def test_pending_points_are_not_asked_for_again() -> None:
    optimizer = Optimizer({"a": (1, 3), "b": (1, 3)}, seed=1)
    points = {(point["a"], point["b"]) for point in optimizer.ask(9)}
    assert len(points) == 9
    with pytest.raises(boscage.SpaceExhausted):
        optimizer.ask()


def test_a_told_point_that_nobody_asked_for() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)}, seed=1)
    optimizer.tell({"x": 0.25}, 3)
    optimizer.tell({"x": 0.25}, 4)
    assert [(trial.params, trial.value) for trial in optimizer.trials] == [({"x": 0.25}, 3.0), ({"x": 0.25}, 4.0)]


def test_telling_twice() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)}, seed=1)
    trial = optimizer.ask_trial()
    optimizer.tell(trial, 1.0)
    optimizer.tell(trial, 1.0)
    with pytest.raises(boscage.BoscageError, match="trial 0 has the value 1.0; it cannot be told anything else"):
        optimizer.tell(trial, 2.0)
    assert len(optimizer) == 1


def test_failures() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)}, seed=1)
    for value in (None, math.nan, math.inf, -math.inf):
        optimizer.tell(optimizer.ask(), value)
    optimizer.fail(optimizer.ask(), "it fell over")
    assert [trial.state for trial in optimizer.trials] == ["FAIL"] * 5
    assert [trial.value for trial in optimizer.trials] == [None] * 5
    assert [trial.failure for trial in optimizer.trials] == [
        "the value is None",
        "the value is nan",
        "the value is inf",
        "the value is -inf",
        "it fell over",
    ]
    assert optimizer.best is None and optimizer.model is None
    # Many failures are no reason to stop.
    for _ in range(20):
        optimizer.fail(optimizer.ask())
    assert 0 <= optimizer.ask()["x"] <= 1


def test_enqueued_points_come_first() -> None:
    optimizer = Optimizer(SPACE, seed=1)
    optimizer.enqueue({"x": 1.5, "mode": "a"})
    optimizer.enqueue({"n": 7})
    first, second = optimizer.ask(2)
    assert first["x"] == 1.5 and first["mode"] == "a" and "z" in first
    assert second["n"] == 7


FULL = {"x": 0.0, "y": 0.0, "n": 1, "mode": "b"}


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({}, ValueError, 'there is no value for "x"'),
        ({**FULL, "x": None}, ValueError, 'there is no value for "x"'),
        ({**FULL, "x": "a"}, ValueError, 'parameter "x": a is not a number'),
        ({**FULL, "x": 9.0}, ValueError, 'parameter "x": 9.0 is not between -5 and 5'),
        ({**FULL, "n": 1.5}, ValueError, 'parameter "n": 1.5 is not an integer'),
        ({**FULL, "mode": "q"}, ValueError, 'parameter "mode": q is not one of a, b'),
        ({**FULL, "mode": "a"}, ValueError, 'there is no value for "z"'),
        ({**FULL, "moed": "a"}, ValueError, 'there is no parameter "moed"; did you mean "mode"?'),
        (3, boscage.BoscageError, "there is no trial 3; there are 0"),
        (-1, ValueError, "there is no trial -1"),
        (None, TypeError, "a point is a dictionary, a Trial or a trial's number, not NoneType"),
        (True, TypeError, "a point is a dictionary, a Trial or a trial's number, not bool"),
        ([0.5], TypeError, "a point is a dictionary, a Trial or a trial's number, not list"),
    ],
)
def test_points_that_make_no_sense(params: Any, kind: type[Exception], words: str) -> None:
    optimizer = Optimizer(SPACE)
    with pytest.raises(kind) as raised:
        optimizer.tell(params, 1.0)
    assert words in str(raised.value)
    assert len(optimizer) == 0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(ValueError, match="'x'|\"x\""):
        Optimizer(SPACE).tell({**FULL, "x": value}, 1.0)


@pytest.mark.parametrize("value", ["1", True, [1.0], {}, object(), 1 + 2j])
def test_values_that_are_no_numbers(value: Any) -> None:
    optimizer = Optimizer(SPACE)
    params = optimizer.ask()
    with pytest.raises(TypeError, match="the value is .* which is not a number"):
        optimizer.tell(params, value)
    assert optimizer.trials[0].state == "RUNNING"


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="the goal is 'minimise'; it must be 'minimize' or 'maximize'"):
        Optimizer(SPACE, goal="minimise")
    with pytest.raises(ValueError, match='there is no method "treee"; the methods are boscage, tree, '):
        Optimizer(SPACE, method="treee")
    with pytest.raises(ValueError, match='method "tree": setting q: unknown field `q`'):
        Optimizer(SPACE, method={"name": "tree", "settings": {"q": 1}})
    with pytest.raises(TypeError, match="a method is a name, or a dictionary"):
        Optimizer(SPACE, method={})
    with pytest.raises(ValueError, match="the method has 'seting', which is not known"):
        Optimizer(SPACE, method={"name": "tree", "seting": {}})
    with pytest.raises(TypeError, match="its settings are a dictionary"):
        Optimizer(SPACE, method={"name": "tree", "settings": []})
    for seed in (-1, 1.5, True, 2**64, "1"):
        with pytest.raises(ValueError, match="it must be an integer from 0 to"):
            Optimizer(SPACE, seed=seed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="-1 points cannot be asked for"):
        Optimizer(SPACE).ask(-1)


@pytest.mark.parametrize("method", ["boscage", "tree", "random", "gp-ucb"])
def test_saved_at_any_trial_it_goes_on_with_the_same_points(method: str) -> None:
    straight = Optimizer(SPACE, seed=7, method=method)
    resumed = Optimizer(SPACE, seed=7, method=method)
    waiting = []
    for trial in range(25):
        # One trial is always left open, and some fail.
        ours, theirs = straight.ask_trial(), resumed.ask_trial()
        assert repr(ours) == repr(theirs), f"trial {trial}"
        waiting.append(ours)
        if len(waiting) > 1:
            done = waiting.pop(0)
            value = None if done.number % 7 == 3 else cost(done.params)
            straight.tell(done, value)
            resumed.tell(done, value)
        state = resumed.save()
        resumed = Optimizer.load(state)
        assert resumed.save() == state
        assert resumed.trials == straight.trials
    assert resumed.save() == straight.save()


def test_pickled_and_copied() -> None:
    optimizer = Optimizer(SPACE, seed=3, goal="maximize")
    for _ in range(12):
        params = optimizer.ask()
        optimizer.tell(params, cost(params))
    expected = copy.copy(optimizer).ask()
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer), copy.copy(optimizer)):
        assert other.space.names == optimizer.space.names
        assert other.ask() == expected
        # They are apart.
        assert len(other) == 13 and len(optimizer) == 12
    assert optimizer.ask() == expected


@pytest.mark.parametrize("state", ["", "{}", "x", '{"version": 99}', "[1]", "null"])
def test_states_that_are_none(state: str) -> None:
    with pytest.raises(boscage.BoscageError, match="the saved state"):
        Optimizer.load(state)


def large(told: int = 250, parameters: int = 60) -> Optimizer:
    """An optimizer whose next ask takes long."""
    names = [f"x{d}" for d in range(parameters)]
    optimizer = Optimizer({name: (0.0, 1.0) for name in names}, seed=1)
    source = random.Random(1)
    for _ in range(told):
        params = {name: source.random() for name in names}
        optimizer.tell(params, sum(params.values()) + source.random())
    return optimizer


def test_other_threads_go_on_during_an_ask() -> None:
    optimizer = large()
    count, over = 0, threading.Event()

    def counts() -> None:
        nonlocal count
        while not over.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=counts)
    thread.start()
    try:
        before = count
        optimizer.ask()
        during = count - before
    finally:
        over.set()
        thread.join()
    assert during > 20


def test_many_threads_ask_and_tell() -> None:
    optimizer = Optimizer(SPACE, seed=1, method="random")
    wrong: list[BaseException] = []

    def works() -> None:
        try:
            for _ in range(25):
                trial = optimizer.ask_trial()
                optimizer.tell(trial, cost(trial.params))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=works) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [trial.number for trial in optimizer.trials] == list(range(100))
    assert all(trial.value == cost(trial.params) for trial in optimizer.trials)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
def test_ctrl_c_ends_a_long_ask() -> None:
    program = """
import json, os, random, signal, sys, threading, time
import boscage
names = [f"x{d}" for d in range(60)]
optimizer = boscage.Optimizer({name: (0.0, 1.0) for name in names}, seed=1)
source = random.Random(1)
for _ in range(300):
    params = {name: source.random() for name in names}
    optimizer.tell(params, sum(params.values()) + source.random())
begin = time.monotonic()
boscage.Optimizer.load(optimizer.save()).ask()
whole = time.monotonic() - begin
sent = 0.0
def interrupt():
    global sent
    time.sleep(0.1)
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    optimizer.ask()
    print("the ask came to its end")
except KeyboardInterrupt:
    waited = time.monotonic() - sent
    # This one has to wait for the engine's thread. The trial that nobody waited for is forgotten.
    after = optimizer.ask_trial().number
    trials = json.loads(optimizer.save())["trials"]
    forgotten = [trial["number"] for trial in trials if trial.get("forgotten")]
    print("interrupted", waited, whole, after, *forgotten)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    word, waited, whole, *numbers = done.stdout.split()
    assert word == "interrupted"
    assert numbers == ["301", "300"]
    # It did not wait for the ask's end, which takes many times as long as we look away.
    assert float(waited) < float(whole) / 2


def test_minimize_and_maximize_are_mirrors() -> None:
    low = boscage.minimize(cost, SPACE, n_trials=20, seed=5, progress=False)
    high = boscage.maximize(lambda params: -cost(params), SPACE, n_trials=20, seed=5, progress=False)
    assert [trial.params for trial in low.trials] == [trial.params for trial in high.trials]
    assert low.best_value == -high.best_value == min(cost(trial.params) for trial in low.trials)
    assert low.best_params == high.best_params == low.best_trial.params
    assert low.reason == "n_trials"


def test_it_finds_a_minimum() -> None:
    space = {f"x{d}": (-3.0, 3.0) for d in range(4)}
    result = boscage.minimize(
        lambda p: sum((value - 1) ** 2 for value in p.values()), space, n_trials=60, seed=1, progress=False
    )
    assert result.best_value < 0.05


def test_jobs_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=60)

    def waits(params: dict[str, Any]) -> float:
        together.wait()
        return cost(params)

    result = boscage.minimize(waits, SPACE, n_trials=12, seed=1, n_jobs=3, progress=False)
    assert len(result.trials) == 12
    assert all(trial.value == cost(trial.params) for trial in result.trials)


@pytest.mark.parametrize("jobs", [1, 2])
def test_reasons_to_end(jobs: int) -> None:
    def run(**arguments: Any) -> boscage.Result:
        return boscage.minimize(cost, SPACE, seed=1, n_jobs=jobs, progress=False, method="random", **arguments)

    def stops(_: Optimizer, trial: boscage.Trial) -> bool:
        return trial.number >= 4

    assert run(n_trials=6).reason == "n_trials"
    assert run(timeout=0.05).reason == "timeout"
    target = run(n_trials=500, target=3.0)
    assert target.reason == "target" and target.best_value <= 3.0 and len(target.trials) < 500
    called = run(callbacks=[stops])
    assert called.reason == "callback" and 5 <= len(called.trials) <= 5 + jobs
    small = boscage.minimize(lambda p: p["n"], {"n": (1, 5)}, n_trials=20, n_jobs=jobs, progress=False)
    assert small.reason == "exhausted" and len(small.trials) == 5 and small.best_value == 1


def test_callbacks_see_every_trial() -> None:
    seen: list[boscage.Trial] = []
    result = boscage.minimize(
        cost, SPACE, n_trials=8, seed=1, callbacks=[lambda _, trial: seen.append(trial)], progress=False
    )
    assert [(trial.number, trial.params, trial.value) for trial in seen] == [
        (trial.number, trial.params, trial.value) for trial in result.trials
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_exceptions(jobs: int) -> None:
    def breaks(params: dict[str, Any]) -> float:
        if params["n"] > 4:
            raise ZeroDivisionError("too many")
        return cost(params)

    with pytest.raises(ZeroDivisionError, match="too many"):
        boscage.minimize(breaks, SPACE, n_trials=20, seed=1, n_jobs=jobs, progress=False, method="random")
    caught = boscage.minimize(
        breaks, SPACE, n_trials=20, seed=1, n_jobs=jobs, progress=False, method="random", catch=(ArithmeticError,)
    )
    failures = {trial.failure for trial in caught.trials if trial.params["n"] > 4}
    assert failures == {"ZeroDivisionError: too many"}
    assert all(trial.state == "COMPLETE" for trial in caught.trials if trial.params["n"] <= 4)
    with pytest.raises(boscage.BoscageError, match="none of 3 trials gave a value; the last one: the value is None"):
        boscage.minimize(lambda _: None, SPACE, n_trials=3, n_jobs=jobs, progress=False)


def test_arguments_that_make_no_sense() -> None:
    for arguments, words in [
        ({}, "it would never end; give n_trials, timeout or target"),
        ({"n_trials": 0}, "n_trials is 0; it must be an integer from 1"),
        ({"timeout": -1.0}, "timeout is -1.0; it must be a positive number of seconds"),
        ({"timeout": math.nan}, "timeout is nan; it must be a positive number of seconds"),
        ({"n_trials": 1.5}, "n_trials is 1.5; it must be an integer from 1"),
        ({"n_trials": 1, "n_jobs": 0}, "n_jobs is 0; it must be at least 1, or -1"),
        ({"n_trials": 1, "n_jobs": -2}, "n_jobs is -2; it must be at least 1, or -1"),
        ({"target": math.nan}, "target is nan; it must be a number"),
        ({"target": "low"}, "target is 'low'; it must be a number"),
        ({"n_trials": 1, "callbacks": 3}, "callbacks is 3; it must be a function or a list of functions"),
        ({"n_trials": 1, "callbacks": [3]}, "callbacks has 3, which is not a function"),
        ({"n_trials": 1, "catch": 3}, "catch is 3; it must be a class of exceptions or several"),
        ({"n_trials": 1, "catch": [ValueError, "x"]}, "catch has 'x', which is not a class of exceptions"),
        ({"n_trials": 1, "catch": KeyboardInterrupt}, "catch has .*, which is not a class of exceptions"),
        ({"n_trials": 1, "start": "x"}, "start is 'x'; it must be a list of dictionaries"),
        ({"n_trials": 1, "start": [1]}, "start has 1; it must be a list of dictionaries"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            boscage.minimize(cost, SPACE, progress=False, **arguments)  # type: ignore[arg-type]


def test_start_points_and_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    start = [{"x": 2.0}, {**FULL, "n": 5}]
    result = boscage.minimize(cost, SPACE, n_trials=4, seed=1, start=start, progress=True)
    assert result.trials[0].params["x"] == 2.0
    assert result.trials[1].params == {**FULL, "n": 5}
    assert "4/4 trials, best " in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    boscage.minimize(cost, SPACE, n_trials=4, seed=1)
    shown = capsys.readouterr().err
    assert "\r4/4 trials, best " in shown and "\033" not in shown
    monkeypatch.delitem(sys.modules, "ipykernel")
    boscage.minimize(cost, SPACE, n_trials=4, seed=1)
    assert capsys.readouterr().err == ""


def test_one_of_several_is_enough() -> None:
    def breaks(params: dict[str, Any]) -> float:
        raise ZeroDivisionError("always") if params["n"] > 2 else ValueError("never")

    seen: list[int] = []
    with pytest.raises(boscage.BoscageError, match="none of 6 trials"):
        boscage.minimize(
            breaks, {"n": (1, 8)}, n_trials=6, catch=Exception, start={"n": 3}, callbacks=lambda _, t: seen.append(t.number),
            progress=False,
        )  # fmt: skip
    assert seen == list(range(6))

    def three(params: dict[str, Any]) -> Any:
        if params["n"] == 3:
            raise ZeroDivisionError("three")
        return params["n"]

    result = boscage.minimize(
        three, {"n": (1, 8)}, n_trials=8, catch=[ZeroDivisionError], start={"n": 3}, progress=False
    )
    assert result.trials[0].failure == "ZeroDivisionError: three"


def test_a_true_of_numpy_stops() -> None:
    import numpy

    result = boscage.minimize(
        cost, SPACE, n_trials=9, callbacks=lambda _, t: numpy.bool_(t.number == 2), method="random", progress=False
    )
    assert result.reason == "callback" and len(result.trials) == 3


def test_a_seed_that_is_drawn() -> None:
    first, second = (boscage.minimize(cost, SPACE, n_trials=3, seed=None, progress=False) for _ in range(2))
    assert first.optimizer.seed != second.optimizer.seed
    again = boscage.minimize(cost, SPACE, n_trials=3, seed=first.optimizer.seed, progress=False)
    assert [trial.params for trial in again.trials] == [trial.params for trial in first.trials]


@pytest.mark.parametrize("jobs", [1, 2])
def test_times(jobs: int) -> None:
    seen: list[boscage.Trial] = []

    def slow(params: dict[str, Any]) -> float | None:
        time.sleep(0.02)
        return None if params["n"] == 1 else cost(params)

    before = str(datetime.datetime.now())
    result = boscage.minimize(
        slow, SPACE, n_trials=6, n_jobs=jobs, method="random", start={"n": 1}, callbacks=lambda _, t: seen.append(t),
        progress=False,
    )  # fmt: skip
    after = str(datetime.datetime.now())
    assert sorted(seen, key=lambda trial: trial.number) == result.trials
    for trial in [*result.trials, result.best_trial]:
        assert trial.seconds is not None and 0.02 <= trial.seconds < 5
        assert trial.datetime_start is not None and trial.datetime_complete is not None
        assert before <= trial.datetime_start < trial.datetime_complete <= after
    assert list(result.to_dataframe()["duration_seconds"]) == [trial.seconds for trial in result.trials]
    assert pickle.loads(pickle.dumps(result.optimizer)).trials == result.trials


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("what", ["f", "type", "callback"])
def test_an_exception_has_the_result_so_far(jobs: int, what: str) -> None:
    def breaks(params: dict[str, Any]) -> Any:
        if params["n"] == 8:
            if what == "f":
                raise OSError("the disk is full")
            return "a lot" if what == "type" else cost(params)
        return cost(params)

    def called(_: Optimizer, trial: boscage.Trial) -> None:
        if what == "callback" and trial.params["n"] == 8:
            raise OSError("the disk is full")

    start = [{"n": 2}, {"n": 3}, {"n": 8}, {"n": 4}]
    kind, words = (TypeError, "which is not a number") if what == "type" else (OSError, "the disk is full")
    with pytest.raises(kind, match=words) as raised:
        boscage.minimize(breaks, SPACE, n_trials=9, n_jobs=jobs, start=start, callbacks=called, progress=False)
    result = raised.value.result  # type: ignore[attr-defined]
    assert {2, 3} <= {trial.params["n"] for trial in result.trials if trial.value is not None}
    assert {trial.state for trial in result.trials} <= {"COMPLETE", "FAIL"}
    failure = next(trial.failure for trial in result.trials if trial.params["n"] == 8)
    assert failure == {"f": "OSError: the disk is full", "callback": None}.get(
        what, "TypeError: the value of trial 2 is 'a lot', which is not a number"
    )
    if sys.version_info >= (3, 11):
        assert "error.result" in raised.value.__notes__[0]
    told = len(result.trials)
    assert len(result.optimizer.optimize(cost, n_trials=3, progress=False).trials) == told + 3


def test_an_exception_before_there_is_a_value() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        boscage.minimize(lambda _: 1 / 0, SPACE, n_trials=9, progress=False)
    assert raised.value.result is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("jobs", [1, 3])
def test_ctrl_c_keeps_what_was_evaluated(jobs: int) -> None:
    over = threading.Event()

    def interrupted(params: dict[str, Any]) -> float:
        if params["n"] == 8:
            raise KeyboardInterrupt
        if params["n"] == 7:
            over.wait(20)
        return cost(params)

    start = [{"n": 2}, {"n": 3}, {"n": 7} if jobs > 1 else {"n": 4}, {"n": 8}]
    begin = time.monotonic()
    try:
        result = boscage.minimize(interrupted, SPACE, n_trials=9, n_jobs=jobs, start=start, progress=False)
        with pytest.raises(KeyboardInterrupt):
            boscage.minimize(interrupted, {"n": (7, 8)}, n_trials=2, n_jobs=jobs, start={"n": 8}, progress=False)
    finally:
        over.set()
    assert time.monotonic() - begin < 10
    assert result.reason == "interrupted"
    assert {2, 3} <= {trial.params["n"] for trial in result.trials if trial.value is not None}
    # Nobody waits for the others.
    assert result.optimizer.pending == []
    assert result.optimizer.optimize(cost, n_trials=2, progress=False).reason == "n_trials"


SIGNALLED = """
import json, os, signal, sys, threading, time
import boscage

where, jobs = sys.argv[1], int(sys.argv[2])
names = [f"x{d}" for d in range(60)]
optimizer = boscage.Optimizer({name: (0.0, 1.0) for name in names}, seed=1)
for i in range(250):
    optimizer.tell({name: (i * d * 0.37) % 1 for d, name in enumerate(names)}, float(i % 17))
calls = []

def f(params):
    calls.append(params)
    if where == "f" and len(calls) > 1:
        time.sleep(3)
    return sum(params.values())

threading.Timer(1.5 if where == "f" else 0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
if where == "f":
    result = boscage.minimize(f, {"x": (0.0, 1.0)}, n_trials=9, n_jobs=jobs, progress=False)
    assert [trial.state for trial in result.trials].count("COMPLETE") == 1, result.trials
else:
    result = optimizer.optimize(f, n_trials=9, n_jobs=jobs, progress=False)
assert result.reason == "interrupted", result.reason
assert result.optimizer.pending == []
saved = json.loads(result.optimizer.save())["trials"]
assert all("outcome" in trial or trial.get("forgotten") for trial in saved)
print(len(calls))
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("where", ["f", "ask"])
def test_a_real_ctrl_c(where: str, jobs: str) -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALLED, where, jobs], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 9


def test_a_loop_goes_on() -> None:
    optimizer = Optimizer(SPACE, seed=1)
    first = optimizer.optimize(cost, n_trials=12, progress=False)
    second = optimizer.optimize(cost, n_trials=6, progress=False)
    assert len(first.trials) == 12 and len(second.trials) == 18
    straight = boscage.minimize(cost, SPACE, n_trials=18, seed=1, progress=False)
    assert [(t.params, t.value) for t in second.trials] == [(t.params, t.value) for t in straight.trials]
    assert second.best_value == optimizer.best_value == min(t.value for t in second.trials if t.value is not None)
    # What is good enough is so in the trials of this call.
    assert optimizer.optimize(cost, n_trials=1, target=math.inf, progress=False).reason == "target"


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_the_best_is_the_native_one(goal: str) -> None:
    optimizer = Optimizer(SPACE, seed=1, goal=goal, method="random")
    with pytest.raises(ValueError, match="no trial has a value yet"):
        _ = optimizer.best_trial
    trials = [optimizer.ask_trial() for _ in range(12)]
    values = [3.0, 1.0, None, 7.0, 1.0, 7.0, math.nan, 2.0, 1.0, 7.0, 0.5, 8.0]
    for trial, value in reversed(list(zip(trials, values))):
        optimizer.tell(trial, value)
        for one in (optimizer, copy.copy(optimizer)):
            best = one._native.best()
            assert one.best == (None if best is None else one.trials[best])
    optimizer.tell({**FULL, "n": 5}, -100.0 if goal == "minimize" else 100.0)
    assert optimizer.best_params == {**FULL, "n": 5} and optimizer.best_trial.number == 12
    assert optimizer.best_value == optimizer.trials[12].value
    assert list(optimizer.to_dataframe()["number"]) == list(range(13))


def test_a_rounded_point_is_the_one_that_was_asked_for() -> None:
    import numpy

    space = {**SPACE, "rate": Real(1e-5, 1, log=True), "year": Real(2000, 2001), "share": boscage.Ordinal([0.1, 0.2, 0.7])}
    optimizer = Optimizer(space, seed=1, method="random")

    def single(value: Any) -> Any:
        return numpy.float32(value) if isinstance(value, float) else value

    for point in reversed(optimizer.ask(20)):
        optimizer.tell({name: single(value) for name, value in point.items()}, 1.0)
    for point in reversed(optimizer.ask(20)):
        del point["year"], point["rate"]
        asked = next(trial for trial in optimizer.pending if point.items() <= trial.params.items())
        rounded = {name: round(v, 6) if isinstance(v, float) else v for name, v in asked.params.items()}
        optimizer.tell({**rounded, "rate": float(f"{asked.params['rate']:.6g}"), "z": point.get("z", math.nan)}, 2.0)
    assert len(optimizer) == 40 and optimizer.pending == []
    assert {trial.state for trial in optimizer.trials} == {"COMPLETE"}
    # Another point is another trial.
    params = optimizer.ask()
    optimizer.tell({**params, "x": params["x"] * 0.999}, 3.0)
    assert len(optimizer) == 42 and [trial.number for trial in optimizer.pending] == [40]


def test_pending_and_forgotten() -> None:
    optimizer = Optimizer({"a": (1, 2), "b": (1, 2)}, seed=1)
    first, second, third = optimizer.ask(3)
    assert [trial.params for trial in optimizer.pending] == [first, second, third]
    optimizer.forget(second)
    optimizer.forget(optimizer.pending[0])
    for one in (optimizer, Optimizer.load(optimizer.save()), copy.deepcopy(optimizer)):
        assert [(trial.number, trial.params) for trial in one.pending] == [(2, third)]
        assert {tuple(point.items()) for point in one.ask(3)} >= {tuple(first.items()), tuple(second.items())}
    with pytest.raises(ValueError, match="trial 0 is not open; `pending` has those that are"):
        optimizer.forget(0)
    with pytest.raises(ValueError, match="no open trial has this point"):
        Optimizer({"a": (1, 2)}).forget({"a": 1})


def test_what_is_not_there_may_be_nan() -> None:
    optimizer = Optimizer(SPACE)
    optimizer.tell({**FULL, "z": math.nan}, 1.0)
    optimizer.enqueue({**FULL, "n": 3, "z": math.nan})
    assert optimizer.ask() == {**FULL, "n": 3}
    assert optimizer.trials[0].params == FULL
    with pytest.raises(ValueError, match='there is no value for "z"'):
        optimizer.tell({**FULL, "mode": "a", "z": math.nan}, 1.0)


def test_objects_that_are_no_values() -> None:
    optimizer = Optimizer(SPACE)
    itself: list[Any] = []
    itself.append(itself)

    class Odd:
        ndim = 0

        def item(self) -> Any:
            return self

    for value in (object(), Odd(), 1j, itself, {1, 2}, b"x", Optimizer):
        for call in (optimizer.enqueue, lambda point: optimizer.tell(point, 1.0)):
            with pytest.raises(TypeError, match="parameter 'x': .* is not a number, text or truth value"):
                call({**FULL, "x": value})  # type: ignore[operator]
    with pytest.raises(TypeError, match=r"the name \(1, 2\) is not text"):
        optimizer.enqueue({(1, 2): 3})  # type: ignore[dict-item]


def test_integers_beyond_all_numbers_are_not_finite() -> None:
    optimizer = Optimizer(SPACE)
    optimizer.tell(optimizer.ask(), 10**400)
    optimizer.tell(optimizer.ask(), -(10**9000))
    assert [trial.failure for trial in optimizer.trials] == [
        "the value is an integer of about 401 digits",
        "the value is an integer of about 9001 digits",
    ]


def test_plots_are_there_when_they_are_wanted() -> None:
    code = "import sys, boscage; assert 'boscage.plots' not in sys.modules; print(boscage.plots.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout == "boscage.plots\n", done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'plot'"):
        _ = boscage.plot  # type: ignore[attr-defined]


def test_dataframe() -> None:
    import pandas
    result = boscage.minimize(cost, SPACE, n_trials=6, seed=1, progress=False)
    frame = result.to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 6
    assert list(frame["value"]) == [trial.value for trial in result.trials]
    assert list(frame["params_n"]) == [trial.params["n"] for trial in result.trials]


def test_ten_thousand_tells() -> None:
    optimizer = Optimizer({f"x{d}": (0.0, 1.0) for d in range(5)}, seed=1)
    source = random.Random(1)
    for _ in range(10_000):
        params = {f"x{d}": source.random() for d in range(5)}
        optimizer.tell(params, source.random())
    assert len(optimizer) == 10_000
