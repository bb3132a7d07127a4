"""The solver for kurobako, driven over pipes by a script that plays the other side of the protocol."""

import json
import math
import os
import subprocess
import sys

import pytest

import boscage
from boscage.kurobako import Incapable, Solver

LOSS = {"name": "loss", "range": {"type": "CONTINUOUS"}, "distribution": "UNIFORM"}


def variable(name, kind, log=False, when=None, **limits):
    one = {"name": name, "range": {"type": kind, **limits}, "distribution": "LOG_UNIFORM" if log else "UNIFORM"}
    return one if when is None else {**one, "constraint": {"lua_script": when}}


def problem(*variables, steps=1, values=1):
    return {
        "name": "test",
        "attrs": {},
        "params_domain": list(variables),
        "values_domain": [{**LOSS, "name": f"loss {i}"} for i in range(values)],
        "steps": steps,
    }


MIXED = problem(
    variable("x", "CONTINUOUS", low=-5.0, high=5.0),
    variable("rate", "CONTINUOUS", log=True, low=1e-4, high=1.0),
    variable("n", "DISCRETE", low=1, high=4),
    variable("width", "DISCRETE", log=True, low=1, high=100),
    variable("mode", "CATEGORICAL", choices=["slow", "fast", "other"]),
    variable("deep", "DISCRETE", low=0, high=9, when='mode == "fast"'),
    variable("deeper", "CONTINUOUS", low=0.0, high=1.0, when="return deep > 4 and mode ~= 'slow'"),
)


class Driver:
    """The other side: starts the program, sends messages, reads replies."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "boscage.kurobako", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        self.spec = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def cast(self, kind, **message):
        self.send(json.dumps({"type": kind, **message}))

    def call(self, kind, **message):
        self.cast(kind, **message)
        return self.receive()

    def create(self, solver, what=MIXED, seed=1):
        self.cast("CREATE_SOLVER_CAST", solver_id=solver, random_seed=seed, problem=what)

    def ask(self, solver, trial):
        reply = self.call("ASK_CALL", solver_id=solver, next_trial_id=trial)
        assert set(reply) == {"type", "trial", "next_trial_id"} and reply["type"] == "ASK_REPLY"
        assert set(reply["trial"]) == {"id", "params", "next_step"}
        assert reply["trial"]["id"] == trial and reply["next_trial_id"] == trial + 1
        return reply["trial"]["params"]

    def tell(self, solver, trial, *values, step=1):
        done = {"id": trial, "values": list(values), "current_step": step}
        assert self.call("TELL_CALL", solver_id=solver, trial=done) == {"type": "TELL_REPLY"}


def value(params):
    x, rate, n, width, mode, deep, deeper = params
    return x * x + (math.log10(rate) + 2) ** 2 + n + math.log(width) + (mode != 1) + (deep or 0) + (deeper or 0)


def check(params):
    x, rate, n, width, mode, deep, deeper = params
    assert -5 <= x < 5 and 1e-4 <= rate < 1
    assert n in (1, 2, 3) and width in range(1, 100) and mode in (0, 1, 2)
    assert all(isinstance(index, int) for index in (n, width, mode))
    assert (deep is None) == (mode != 1)
    assert deep is None or deep in range(9)
    assert (deeper is None) == (deep is None or deep <= 4)


def test_the_first_line():
    with Driver() as driver:
        spec = driver.spec["spec"]
        assert driver.spec["type"] == "SOLVER_SPEC_CAST"
        assert spec["name"] == "boscage"
        assert spec["attrs"] == {"version": f"boscage={boscage.__version__}", "method": "boscage"}
        assert "CONDITIONAL" in spec["capabilities"] and "MULTI_OBJECTIVE" not in spec["capabilities"]
    with Driver("--method", "random") as driver:
        assert driver.spec["spec"]["name"] == "boscage random"


def test_many_solvers_in_one_process():
    """Their trials mixed, each is what it would be alone; a dropped one leaves the others as they are."""
    found = {}
    with Driver() as driver:
        for solver in (0, 7, 8):
            driver.create(solver, seed=2**64 - 1 if solver == 7 else 3)
        for trial in range(20):
            for solver in (0, 7, 8):
                if solver == 8 and trial >= 5:
                    continue
                params = driver.ask(solver, trial)
                check(params)
                found.setdefault(solver, []).append(params)
                driver.tell(solver, trial, value(params))
            if trial == 4:
                driver.cast("DROP_SOLVER_CAST", solver_id=8)
        reply = driver.call("ASK_CALL", solver_id=8, next_trial_id=5)
        assert reply == {"type": "ERROR_REPLY", "kind": "INVALID_INPUT", "message": "there is no solver 8"}
    assert found[0] != found[7]
    assert found[0][:5] == found[8]
    alone = Solver(MIXED, 3)
    for trial, params in enumerate(found[0]):
        assert alone.ask(trial)["params"] == params
        alone.tell({"id": trial, "values": [value(params)], "current_step": 1})


def test_trials_at_once_in_any_order_and_failures():
    with Driver() as driver:
        driver.create(0)
        open_trials = {trial: driver.ask(0, trial) for trial in range(100, 106)}
        assert len({json.dumps(params) for params in open_trials.values()}) == 6
        for trial in (103, 100, 105):
            driver.tell(0, trial, value(open_trials[trial]))
        # No value: it could not be evaluated.
        driver.tell(0, 101)
        driver.tell(0, 104)
        for trial in range(106, 120):
            check(driver.ask(0, trial))
            driver.tell(0, trial)


def test_failures_and_values_reach_the_optimizer():
    solver = Solver(MIXED, 1)
    for trial, values in enumerate([[2.5], [], [None]]):
        solver.ask(trial)
        solver.tell({"id": trial, "values": values, "current_step": 1})
    assert [(t.state, t.value) for t in solver._optimizer.trials] == [("COMPLETE", 2.5), ("FAIL", None), ("FAIL", None)]


def test_it_finds_the_minimum():
    what = problem(*[variable(f"x{i}", "CONTINUOUS", low=-5.0, high=5.0) for i in range(6)])
    with Driver() as driver:
        driver.create(0, what)
        best = math.inf
        for trial in range(50):
            params = driver.ask(0, trial)
            loss = sum((x - 1) ** 2 for x in params)
            best = min(best, loss)
            driver.tell(0, trial, loss)
    assert best < 0.5


@pytest.mark.parametrize(("steps", "last"), [(1, 1), (30, 30), ([1, 3, 9], 9)])
def test_steps(steps, last):
    solver = Solver(problem(variable("x", "CONTINUOUS", low=0.0, high=1.0), steps=steps), 1)
    first = solver.ask(0)
    assert first["next_step"] == last
    if last > 1:
        # Not evaluated to the end: the same trial once more.
        solver.tell({"id": 0, "values": [1.0], "current_step": last - 1})
        assert solver.ask(1) == first
    solver.tell({"id": 0, "values": [1.0], "current_step": last})
    assert solver.ask(1)["id"] == 1


def test_upper_bounds_are_never_reached():
    what = problem(
        variable("x", "CONTINUOUS", low=0.0, high=1.0),
        variable("y", "CONTINUOUS", log=True, low=1.0, high=10.0),
        variable("n", "DISCRETE", low=0, high=3),
    )
    solver = Solver(what, 1)
    for trial in range(40):
        x, y, n = solver.ask(trial)["params"]
        assert x < 1 and y < 10 and n < 3
        # What is largest is best.
        solver.tell({"id": trial, "values": [-x - y - n], "current_step": 1})
    assert solver._optimizer.best.params["n"] == 2
    assert solver._optimizer.best.value < -12.9


def test_a_space_that_has_been_tried_gives_the_best_again():
    solver = Solver(problem(variable("n", "DISCRETE", low=0, high=3)), 1)
    for trial in range(3):
        (n,) = solver.ask(trial)["params"]
        solver.tell({"id": trial, "values": [abs(n - 1)], "current_step": 1})
    for trial in range(3, 6):
        assert solver.ask(trial)["params"] == [1]
        solver.tell({"id": trial, "values": [0.0], "current_step": 1})


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        (problem(variable("x", "CONTINUOUS", low=0.0, high=1.0), values=2), "INCAPABLE", "one value, not 2"),
        (problem(variable("x", "CONTINUOUS", low=0.0)), "INCAPABLE", "parameter 'x' has no bounds"),
        (problem(variable("x", "ROUND")), "INCAPABLE", "the range ROUND is not known"),
        (
            problem(
                variable("x", "DISCRETE", low=0, high=3), variable("y", "DISCRETE", low=0, high=3, when="x + 1 < 2")
            ),
            "INVALID_INPUT",
            "the condition `x + 1 < 2`",
        ),
        (
            problem(variable("x", "DISCRETE", low=0, high=3, when="local a = 1; return a")),
            "INCAPABLE",
            "more than comparisons",
        ),
        ({}, "INVALID_INPUT", "values_domain"),
    ],
)
def test_problems_that_are_not_solved_are_told_with_the_first_call(what, kind, message):
    with Driver() as driver:
        driver.create(0, what)
        trial = {"id": 0, "values": [1.0], "current_step": 1}
        for reply in (
            driver.call("ASK_CALL", solver_id=0, next_trial_id=0),
            driver.call("TELL_CALL", solver_id=0, trial=trial),
        ):
            assert reply["type"] == "ERROR_REPLY" and reply["kind"] == kind
            assert message in reply["message"]
        # And the program goes on.
        driver.create(1)
        check(driver.ask(1, 0))


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "3",
        "{}",
        '{"type": "ASK_CALL"}',
        '{"type": "HELLO", "solver_id": 0}',
        '{"type": "ASK_CALL", "solver_id": 0}',
    ],
)
def test_lines_that_make_no_sense_get_an_error(line):
    with Driver() as driver:
        driver.create(0)
        driver.send(line)
        reply = driver.receive()
        assert reply["type"] == "ERROR_REPLY" and reply["kind"] == "INVALID_INPUT" and reply["message"]
        check(driver.ask(0, 0))
        reply = driver.call("TELL_CALL", solver_id=0, trial={"id": 5, "values": [1.0], "current_step": 1})
        assert reply["message"] == "there is no trial 5 that waits for a value"
        driver.tell(0, 0, 1.0)


def test_it_ends_with_its_input():
    done = subprocess.run(
        [sys.executable, "-m", "boscage.kurobako"], input="", capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_conditions_in_the_words_of_lua():
    with pytest.raises(Incapable, match="the constraint 'if x then return true end'"):
        Solver(problem(variable("x", "DISCRETE", low=0, high=3, when="if x then return true end")), 1)
