"""Boscage as a solver for kurobako, a benchmark program for black-box optimizers that knows nothing of any of them.

``kurobako solver command python -- -m boscage.kurobako`` makes a recipe of it; ``--method`` chooses another method.
The two programs talk in lines of JSON on standard input and output. One process holds any number of solvers.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from . import _native
from ._optimize import Method, Optimizer, method_json, methods
from ._space import Categorical, Integer, Real, Space

__all__ = ["main", "serve"]

CAPABILITIES = [
    "UNIFORM_CONTINUOUS",
    "UNIFORM_DISCRETE",
    "LOG_UNIFORM_CONTINUOUS",
    "LOG_UNIFORM_DISCRETE",
    "CATEGORICAL",
    "CONDITIONAL",
    "CONCURRENT",
]


class Solver:
    """One solver of one problem.

    >>> x = {"name": "x", "range": {"type": "DISCRETE", "low": 1, "high": 3}, "distribution": "UNIFORM"}
    >>> loss = {"name": "loss", "range": {"type": "CONTINUOUS"}, "distribution": "UNIFORM"}
    >>> solver = Solver({"params_domain": [x], "values_domain": [loss], "steps": 1}, seed=0)
    >>> trial = solver.ask(7)
    >>> trial["id"], trial["params"] in ([1], [2]), trial["next_step"]
    (7, True, 1)
    >>> solver.tell({"id": 7, "values": [0.5], "current_step": 1})
    """

    def __init__(self, problem: Mapping[str, Any], seed: int, method: Method = None) -> None:
        if len(problem["values_domain"]) != 1:
            raise Incapable(f"boscage minimizes one value, not {len(problem['values_domain'])}")
        self._domain = list(problem["params_domain"])
        # `steps` is the last step, or the list of all.
        steps = problem["steps"]
        self._last_step = int(steps[-1] if isinstance(steps, Sequence) else steps)
        space = Space({one["name"]: _parameter(one) for one in self._domain})
        self._optimizer = Optimizer(space, method=method, seed=seed)
        # From kurobako's trials to ours; none for points that were tried before.
        self._open: dict[int, int | None] = {}
        self._params: dict[int, list[float | int | None]] = {}
        self._unfinished: list[int] = []

    def ask(self, trial_id: int) -> dict[str, Any]:
        """The next trial; it has this number, unless it is one that was not evaluated to its end."""
        if self._unfinished:
            trial_id = self._unfinished.pop(0)
        else:
            number, params = self._next()
            self._open[trial_id] = number
            self._params[trial_id] = [_number(one, params.get(one["name"])) for one in self._domain]
        return {"id": trial_id, "params": self._params[trial_id], "next_step": self._last_step}

    def _next(self) -> tuple[int | None, Mapping[str, Any]]:
        try:
            trial = self._optimizer.ask_trial()
            return trial.number, trial.params
        except _native.SpaceExhausted:
            # A solver cannot end: the best point once more, whose value is known.
            best = self._optimizer.best or self._optimizer.trials[0]
            return None, best.params

    def tell(self, trial: Mapping[str, Any]) -> None:
        """Takes in a trial's value; no value means that it could not be evaluated."""
        trial_id = trial["id"]
        if trial_id not in self._open:
            raise ValueError(f"there is no trial {trial_id} that waits for a value")
        values = trial["values"]
        if values and trial["current_step"] < self._last_step:
            self._unfinished.append(trial_id)
            return
        number = self._open.pop(trial_id)
        del self._params[trial_id]
        if number is not None:
            self._optimizer.tell(number, values[0] if values else None)


class Incapable(ValueError):
    """A problem of a kind that we do not solve."""


def _parameter(variable: Mapping[str, Any]) -> Real | Integer | Categorical:
    name, limits = variable["name"], variable["range"]
    log = variable["distribution"] == "LOG_UNIFORM"
    constraint = variable.get("constraint")
    condition = None if constraint is None else _condition(name, constraint["lua_script"])
    if limits["type"] == "CATEGORICAL":
        return Categorical([str(choice) for choice in limits["choices"]], condition=condition)
    if limits["type"] == "DISCRETE":
        # The upper bound does not belong to the range.
        return Integer(limits["low"], limits["high"] - 1, log=log, condition=condition)
    if limits["type"] != "CONTINUOUS":
        raise Incapable(f"parameter {name!r}: the range {limits['type']} is not known")
    low, high = limits.get("low"), limits.get("high")
    if low is None or high is None:
        raise Incapable(f"parameter {name!r} has no bounds")
    return Real(float(low), float(high), log=log, condition=condition)


def _condition(name: str, script: str) -> str:
    """A constraint, which is a Lua script, in our words. What our conditions cannot say is refused."""
    text = script.strip().rstrip(";").strip()
    text = re.sub(r"^return\b\s*", "", text)
    # In Lua, nil is unlike everything; in our conditions no comparison holds with what has no value.
    text = re.sub(r"""([\w.]+)\s*~=\s*("[^"]*"|'[^']*'|[\w.+-]+)""", r"(not (\1 == \2))", text)
    if not text or re.search(r"[\n;]|--|~|\bfunction\b|\bif\b", text):
        raise Incapable(f"parameter {name!r}: the constraint {script!r} is more than comparisons with and, or, not")
    return text


def _number(variable: Mapping[str, Any], value: Any) -> float | int | None:
    """A value as kurobako writes it: a choice as its index, what has no value as null."""
    if value is None:
        return None
    limits = variable["range"]
    if limits["type"] == "CATEGORICAL":
        return [str(choice) for choice in limits["choices"]].index(value)
    if limits["type"] == "CONTINUOUS":
        # The upper bound does not belong to the range.
        return min(float(value), math.nextafter(limits["high"], -math.inf))
    return int(value)


def serve(lines: IO[str], output: IO[str], method: Method = None) -> None:
    """Answers every line until there are no more."""

    def send(message: Mapping[str, Any]) -> None:
        output.write(json.dumps(message, allow_nan=False) + "\n")
        output.flush()

    name = json.loads(method_json(method))["name"]
    attributes = {"version": f"boscage={_native.__version__}", "method": str(name)}
    title = "boscage" if method is None else f"boscage {name}"
    send({"type": "SOLVER_SPEC_CAST", "spec": {"name": title, "attrs": attributes, "capabilities": CAPABILITIES}})
    # What could not be created is told when it is asked: a cast has no reply.
    solvers: dict[int, Solver | Exception] = {}
    for line in lines:
        if line.strip():
            reply = _answer(solvers, line, lambda problem, seed: Solver(problem, seed, method))
            if reply is not None:
                send(reply)


def _answer(
    solvers: dict[int, Solver | Exception], line: str, create: Callable[[Mapping[str, Any], int], Solver]
) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
        kind, solver_id = message["type"], message["solver_id"]
        if kind == "CREATE_SOLVER_CAST":
            try:
                solvers[solver_id] = create(message["problem"], message["random_seed"])
            except Exception as error:
                solvers[solver_id] = error
            return None
        if kind == "DROP_SOLVER_CAST":
            solvers.pop(solver_id, None)
            return None
        if kind not in ("ASK_CALL", "TELL_CALL"):
            raise ValueError(f"a message of type {kind!r} is not for a solver")
        solver = solvers.get(solver_id)
        if solver is None:
            raise ValueError(f"there is no solver {solver_id}")
        if isinstance(solver, Exception):
            raise solver
        if kind == "TELL_CALL":
            solver.tell(message["trial"])
            return {"type": "TELL_REPLY"}
        trial = solver.ask(message["next_trial_id"])
        next_id = max(message["next_trial_id"], trial["id"] + 1)
        return {"type": "ASK_REPLY", "trial": trial, "next_trial_id": next_id}
    except Incapable as error:
        return {"type": "ERROR_REPLY", "kind": "INCAPABLE", "message": str(error)}
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else str(error)
        return {"type": "ERROR_REPLY", "kind": "INVALID_INPUT", "message": what}
    except Exception as error:
        return {"type": "ERROR_REPLY", "kind": "OTHER", "message": str(error)}


def main(arguments: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="boscage-kurobako", description="boscage as a solver for kurobako")
    parser.add_argument("--method", metavar="NAME", choices=sorted(methods()), help=", ".join(sorted(methods())))
    parser.add_argument("--settings", metavar="JSON", help="changed settings of the method, as a JSON object")
    given = parser.parse_args(arguments)
    method: Method = given.method
    if given.settings is not None:
        try:
            method = {"name": given.method or "boscage", "settings": json.loads(given.settings)}
        except ValueError as error:
            parser.error(f"--settings is not JSON: {error}")
    try:
        serve(sys.stdin, sys.stdout, method)
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
