"""The sampler for Optuna: what it suggests, what it takes in, and that it helps."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

import optuna

from optuna.distributions import (  # noqa: E402
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler  # noqa: E402
from optuna.trial import TrialState, create_trial  # noqa: E402

from boscage import Optimizer  # noqa: E402
from boscage.optuna import TreeSampler, _Axis  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)

Space = dict[str, BaseDistribution]
GRID: Space = {"a": IntDistribution(0, 4), "b": CategoricalDistribution([None, "x", 2.5, True])}
MIXED: Space = {
    "x": FloatDistribution(-3.0, 3.0),
    "rate": FloatDistribution(1e-6, 1.0, log=True),
    "share": FloatDistribution(-10.2, 10.2, step=0.1),
    "size": IntDistribution(1, 1000, log=True),
    "even": IntDistribution(-9, 11, step=2),
    "mode": CategoricalDistribution([None, 1, "1", 0.5, False]),
}


def suggest(trial: Any, space: Space) -> dict[str, Any]:
    return {name: trial._suggest(name, distribution) for name, distribution in space.items()}


def mixed(trial: Any) -> float:
    values = suggest(trial, MIXED)
    score = (values["x"] - 1) ** 2 + math.log10(values["rate"] / 1e-3) ** 2 + (values["share"] / 5) ** 2
    return float(score + math.log(values["size"]) * values["even"] / 10 + (values["mode"] is None))


def study_with(sampler: BaseSampler, direction: str = "minimize", **rest: Any) -> Any:
    return optuna.create_study(sampler=sampler, direction=direction, **rest)


def params(study: Any) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def trials_of(sampler: TreeSampler) -> list[dict[str, Any]]:
    """What the native part knows."""
    assert sampler._memory is not None
    (optimization,) = sampler._memory.optimizations
    trials: list[dict[str, Any]] = json.loads(optimization._native.trials())
    return trials


# Values


def unusual_choices() -> CategoricalDistribution:
    """Optuna warns of them, since databases cannot keep them."""
    with pytest.warns(UserWarning, match="Choices for a categorical"):
        choices: Any = [[1, 2], {"deep": (3, 4)}, [1, 3]]
        return CategoricalDistribution(choices)


DISTRIBUTIONS = [
    FloatDistribution(-1.0, 1.0),
    FloatDistribution(1e-7, 3.3, log=True),
    FloatDistribution(1e-300, 1e300, log=True),
    FloatDistribution(-1e308, 1e308),
    FloatDistribution(0.1, 0.9, step=0.1),
    FloatDistribution(-10.2, 10.2, step=0.1),
    FloatDistribution(0.0, 1.0, step=1e-7),
    FloatDistribution(0.05, 99.8, step=0.35),
    IntDistribution(-3, 8),
    IntDistribution(-7, 8, step=3),
    IntDistribution(1, 7, log=True),
    IntDistribution(3, 2**40, log=True),
    IntDistribution(-(2**60), 2**60, step=2**30),
    IntDistribution(-(2**60), 2**60),
    CategoricalDistribution([None, "a", 1, 1.5, False]),
    unusual_choices(),
    CategoricalDistribution([float("nan"), float("inf"), 0.0]),
    CategoricalDistribution(["a" * k for k in range(300)]),
    FloatDistribution(2.0, 2.0),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_suggested_values_are_values_of_the_distribution(distribution: BaseDistribution) -> None:
    """With a model too, and beside another parameter whose name no other tool would take."""
    space: Space = {"": FloatDistribution(0.0, 1.0), 'odd "name" = p0': distribution}
    study = study_with(TreeSampler(space, seed=3, n_startup_trials=4))
    for number in range(9):
        trial = study.ask()
        values = suggest(trial, space)
        for name, value in values.items():
            assert space[name]._contains(space[name].to_internal_repr(value)), value
        value = values['odd "name" = p0']
        if isinstance(distribution, CategoricalDistribution):
            assert any(value is choice for choice in distribution.choices)
        else:
            assert type(value) is (int if isinstance(distribution, IntDistribution) else float)
        study.tell(trial, values[""] + number % 3)


@pytest.mark.parametrize("distribution", [*MIXED.values(), IntDistribution(-7, 8, step=3)], ids=repr)
def test_values_go_there_and_back(distribution: Any) -> None:
    axis = _Axis("x", distribution)
    data = axis.data
    assert data is not None
    if data["type"] == "real":
        codes: list[Any] = [distribution.low, axis.middle, distribution.high]
    elif data["type"] == "integer":
        codes = [*range(data["low"], min(data["high"], 400) + 1), axis.middle, data["high"]]
    else:
        codes = data["choices"]
    for code in codes:
        assert axis.encode(axis.decode(code)) == code
    assert axis.encode("no such value") is None


def test_ends_of_ranges_are_exact() -> None:
    share = _Axis("share", FloatDistribution(-10.2, 10.2, step=0.1))
    assert share.data == {"type": "integer", "low": 0, "high": 204}
    assert (share.decode(0), share.decode(204)) == (-10.2, 10.2)
    assert share.encode(-10.15) is None
    assert _Axis("n", IntDistribution(-7, 8, step=3)).encode(-5) is None
    assert _Axis("n", IntDistribution(1, 8)).encode(2.5) is None


# What comes first


def test_a_given_space_is_used_from_the_first_trial_on_and_single_values_are_left_out() -> None:
    space = {**MIXED, "one": IntDistribution(5, 5)}
    sampler = TreeSampler(space, seed=1)
    study = study_with(sampler)
    trial = study.ask()
    assert set(sampler.infer_relative_search_space(study, study.trials[0])) == set(MIXED)
    assert set(trial.relative_params) == set(MIXED)
    assert trial.suggest_int("one", 5, 5) == 5
    assert sampler.search_space == space


def test_without_a_space_the_common_parameters_of_complete_trials_are_used() -> None:
    study = study_with(TreeSampler(seed=1))

    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 2:
            x += trial.suggest_float("odd", 0, 1)
        return float(x)

    study.optimize(objective, n_trials=4)
    assert set(study.ask().relative_params) == {"x"}


def test_methods_and_start_up_are_passed_on() -> None:
    with pytest.raises(ValueError, match="n_startup_trials is -1"):
        TreeSampler(n_startup_trials=-1)
    with pytest.raises(ValueError, match="the seed is -1"):
        TreeSampler(seed=-1)
    with pytest.raises(TypeError, match="search_space is 42; it must be a dictionary of distributions by name"):
        TreeSampler(42)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'x': 3 is not a distribution"):
        TreeSampler({"x": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="no-such-method"):
        study_with(TreeSampler(GRID, method="no-such-method")).ask(GRID)

    def runs(**arguments: Any) -> list[dict[str, Any]]:
        study = study_with(TreeSampler(MIXED, seed=1, **arguments))
        study.optimize(mixed, n_trials=12)
        return params(study)

    early, late, by_name = runs(n_startup_trials=4), runs(n_startup_trials=8), runs(method="boscage", n_startup_trials=8)
    assert late == by_name
    assert early[:4] == late[:4]
    assert early[4] != late[4]
    assert runs(method="random") != runs()


# The same seed


@pytest.mark.parametrize("space", [None, MIXED], ids=["common", "given"])
def test_the_same_seed_gives_the_same_trials(space: Space | None) -> None:
    runs = []
    for seed in (7, 7, 8):
        study = study_with(TreeSampler(space, seed=seed, n_startup_trials=5))
        study.optimize(mixed, n_trials=15)
        runs.append(params(study))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    # The centre of the space is one of the points, whatever the seed.
    assert sum(one == two for one, two in zip(runs[0], runs[2])) <= 1


def test_the_points_are_those_of_the_optimizer() -> None:
    """The same seed and outcomes: the same points as without Optuna."""
    space: Space = {
        "x": FloatDistribution(-3.0, 3.0),
        "rate": FloatDistribution(1e-6, 1.0, log=True),
        "n": IntDistribution(-4, 9),
        "size": IntDistribution(2, 5000, log=True),
        "mode": CategoricalDistribution(["a", "b", "c"]),
    }

    def value(values: dict[str, Any]) -> float:
        score = values["x"] ** 2 + math.log10(values["rate"] / 1e-3) ** 2 + abs(values["n"] - 2)
        score += abs(math.log10(values["size"] / 100))
        return float(score + (values["mode"] != "b"))

    for goal in ("minimize", "maximize"):
        optimizer = Optimizer(space, seed=11, goal=goal)
        for _ in range(20):
            values = optimizer.ask()
            optimizer.tell(values, value(values))
        study = study_with(TreeSampler(space, seed=11), goal)
        study.optimize(lambda trial: value(suggest(trial, space)), n_trials=20)
        assert params(study) == [trial.params for trial in optimizer.trials]


def test_trials_have_streams_of_their_own() -> None:
    """Random points depend on the seed and the trial's number only, not on what came before or who asks."""
    arguments: dict[str, Any] = {"seed": 5, "method": "random"}
    whole = study_with(TreeSampler(MIXED, **arguments))
    whole.optimize(mixed, n_trials=8)
    resumed = study_with(TreeSampler(MIXED, **arguments))
    for start in range(0, 8, 2):
        resumed.sampler = TreeSampler(MIXED, **arguments)
        resumed.optimize(mixed, n_trials=1)
        # A trial of another kind takes a number too.
        trial = resumed.ask()
        trial.suggest_float("other", 0, 1)
        resumed.tell(trial, start)
    assert params(resumed)[::2] == params(whole)[::2]


def test_independent_parameters_have_streams_of_their_own() -> None:
    def run(restarts: bool) -> list[dict[str, Any]]:
        study = study_with(TreeSampler(GRID, seed=5))
        for _ in range(6):
            if restarts:
                study.sampler = TreeSampler(GRID, seed=5)
                study.sampler.reseed_rng()
            trial = study.ask()
            study.tell(trial, trial.suggest_float("u", 0, 1) + trial.suggest_float("v", 0, 1))
        return params(study)

    assert run(True) == run(False)
    assert len({value for values in run(False) for value in values.values()}) == 12


def test_minimise_and_maximise_mirror_each_other() -> None:
    low = study_with(TreeSampler(MIXED, seed=2, n_startup_trials=5), "minimize")
    low.optimize(mixed, n_trials=25)
    high = study_with(TreeSampler(MIXED, seed=2, n_startup_trials=5), "maximize")
    high.optimize(lambda trial: -mixed(trial), n_trials=25)
    assert params(low) == params(high)
    other = study_with(TreeSampler(MIXED, seed=2, n_startup_trials=5), "maximize")
    other.optimize(mixed, n_trials=25)
    assert params(low) != params(other)


def test_an_independent_sampler_is_used_if_given() -> None:
    class Fixed(RandomSampler):
        def sample_independent(self, *_: Any) -> float:
            return 0.125

    study = study_with(TreeSampler(GRID, seed=1, independent_sampler=Fixed()))
    trial = study.ask()
    assert trial.suggest_float("u", 0, 1) == 0.125
    assert trial.suggest_int("a", 0, 4) in range(5)


# Running trials


def test_running_trials_are_pending() -> None:
    """All twenty points, each once, though nothing was told or is in the storage."""
    study = study_with(TreeSampler(GRID, seed=1, n_startup_trials=2))
    trials = [study.ask() for _ in range(20)]
    assert len({tuple(trial.relative_params.values()) for trial in trials}) == 20
    # The next one finds nothing new, and gets a point all the same.
    again = study.ask()
    assert all(GRID[name]._contains(GRID[name].to_internal_repr(value)) for name, value in suggest(again, GRID).items())


@pytest.mark.parametrize("told", [0, 3, 7])
def test_five_asks_before_tells_are_five_points(told: int) -> None:
    study = study_with(TreeSampler(GRID, seed=4, n_startup_trials=3))
    study.optimize(lambda trial: sum(map(hash, map(repr, suggest(trial, GRID).values()))) % 7, n_trials=told)
    trials = [study.ask(GRID) for _ in range(5)]
    points = {tuple(values[name] for name in GRID) for values in params(study)}
    assert len(points) == told + 5
    for number, trial in enumerate(trials):
        study.tell(trial, number)
    study.ask(GRID)
    assert len({tuple(values[name] for name in GRID) for values in params(study)}) == told + 6


def test_running_trials_of_other_processes_are_pending(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    one = study_with(TreeSampler(GRID, seed=1), storage=storage, study_name="s")
    two = optuna.load_study(study_name="s", storage=storage, sampler=TreeSampler(GRID, seed=1))
    for _ in range(10):
        one.ask(GRID)
        two.ask(GRID)
    assert len({tuple(sorted(map(repr, values.items()))) for values in params(one)}) == 20


def test_a_running_trial_is_told_when_it_ends_and_its_own_values_count() -> None:
    sampler = TreeSampler(GRID, seed=1)
    study = study_with(sampler)
    suggested = study_with(TreeSampler(GRID, seed=1)).ask(GRID).params["a"]
    study.enqueue_trial({"a": 4 - suggested if suggested != 2 else 3})
    first, second = study.ask(GRID), study.ask(GRID)
    study.tell(second, 2.0)
    study.ask(GRID)
    study.tell(first, 1.0)
    study.ask(GRID)
    assert first.params["a"] != suggested
    known = [(trial["state"], trial["value"], trial["params"]) for trial in trials_of(sampler)]
    for value, trial in ((1.0, first), (2.0, second)):
        codes = {"p0": trial.params["a"], "p1": GRID["b"].to_internal_repr(trial.params["b"])}
        assert ("COMPLETE", value, codes) in known
    assert sum(state == "COMPLETE" for state, _, _ in known) == 2
    # What had been suggested, and was not used, is no longer pending: the other points are all there.
    for _ in range(16):
        study.ask(GRID)
    assert len({tuple(values[name] for name in GRID) for values in params(study)}) == 20


def test_trials_that_are_gone_are_not_pending() -> None:
    sampler = TreeSampler(GRID, seed=1)
    study = study_with(sampler)
    for _ in range(12):
        assert study.ask().relative_params
    assert sampler._memory is not None
    (optimization,) = sampler._memory.optimizations
    optimization.take_in([], {})
    points = [optimization.ask(number) for number in range(12, 33)]
    assert points[-1] is None
    assert len({tuple(point.values()) for point in points if point is not None}) == 20


def test_two_threads() -> None:
    study = study_with(TreeSampler(GRID, seed=1, n_startup_trials=4))
    study.optimize(lambda trial: float(suggest(trial, GRID)["a"]), n_trials=18, n_jobs=2)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert len({tuple(sorted(map(repr, values.items()))) for values in params(study)}) == 18


# What trials end with


def test_what_is_taken_in_of_each_end() -> None:
    sampler = TreeSampler(GRID, seed=1)
    study = study_with(sampler, "maximize")

    def add(place: int, state: Any, value: float | None = None, **rest: Any) -> None:
        values = {"a": place % 5, "b": GRID["b"].to_external_repr(place // 5)}
        study.add_trial(create_trial(state=state, value=value, params=values, distributions=GRID, **rest))

    add(0, TrialState.COMPLETE, 5.0)
    add(1, TrialState.FAIL)
    add(2, TrialState.PRUNED, 3.0, intermediate_values={0: 3.0})
    add(3, TrialState.COMPLETE, math.inf)
    add(4, TrialState.COMPLETE, 7.0, system_attrs={"constraints": [-1.0, 0.5]})
    add(5, TrialState.COMPLETE, 7.0, system_attrs={"constraints:c": 0.1})
    add(6, TrialState.COMPLETE, 6.0, system_attrs={"constraints:c": 0.0, "constraints": [-1]})
    add(7, TrialState.COMPLETE, 9.0, system_attrs={"constraints:c": math.nan})
    add(8, TrialState.RUNNING)
    trial = study.ask(GRID)
    study.tell(trial, state=TrialState.FAIL)
    study.ask(GRID)
    known = trials_of(sampler)
    assert [(t["state"], t["value"]) for t in known[:10]] == [
        ("COMPLETE", 5.0),
        *[("FAIL", None)] * 5,
        ("COMPLETE", 6.0),
        ("FAIL", None),
        ("RUNNING", None),
        ("FAIL", None),
    ]
    assert [t["failure"] for t in known[1:6]] == [
        "fail",
        "pruned",
        "the value is inf",
        "infeasible",
        "infeasible",
    ]
    assert len({tuple(values[name] for name in GRID) for values in params(study)}) == 11


def test_failed_trials_are_not_repeated_and_do_not_stop_anything() -> None:
    study = study_with(TreeSampler(GRID, seed=1, n_startup_trials=3))

    def objective(trial: Any) -> float:
        values = suggest(trial, GRID)
        if values["b"] is None:
            raise RuntimeError("no")
        return float("nan") if values["b"] == "x" else float(values["a"])

    study.optimize(objective, n_trials=20, catch=(RuntimeError,))
    states = [trial.state for trial in study.trials]
    assert (states.count(TrialState.FAIL), states.count(TrialState.COMPLETE)) == (10, 10)


def test_all_trials_may_fail() -> None:
    study = study_with(TreeSampler(MIXED, seed=1, n_startup_trials=2))
    study.optimize(lambda trial: suggest(trial, MIXED) and math.nan, n_trials=6)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 6
    study.optimize(mixed, n_trials=2)


def test_several_goals_are_refused() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=TreeSampler())
    with pytest.raises(ValueError, match="one goal; this one has 2"):
        study.ask().suggest_float("x", 0, 1)


# Spaces that change


def test_trials_of_other_ranges_are_used_where_they_fit() -> None:
    space: Space = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
    wide: Space = {name: FloatDistribution(-1.0, 1.0) for name in space}
    sampler = TreeSampler(space, seed=1)
    study = study_with(sampler)
    points: list[dict[str, Any]] = [{"x": 0.5, "y": 0.25}, {"x": -0.5, "y": 0.25}, {"x": 0.75}, {"z": 1.0}]
    for place, values in enumerate(points):
        distributions = {**wide, "z": FloatDistribution(0, 2)}
        study.add_trial(
            create_trial(value=place, params=values, distributions={name: distributions[name] for name in values})
        )
    study.ask(space)
    complete = [trial["params"] for trial in trials_of(sampler) if trial["state"] == "COMPLETE"]
    assert complete == [{"p0": 0.5, "p1": 0.25}, {"p0": 0.75, "p1": 0.5}]


def test_conditions_within_a_given_space() -> None:
    """A parameter that is not used has no effect: the trial counts, with what was suggested for it."""
    space: Space = {
        "kind": CategoricalDistribution(["a", "b"]),
        "x": FloatDistribution(0, 1),
        "y": FloatDistribution(0, 1),
    }
    sampler = TreeSampler(space, seed=1, n_startup_trials=5)
    study = study_with(sampler)

    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return float(trial.suggest_float("x", 0, 1) if kind == "a" else trial.suggest_float("y", 0, 1) - 1)

    study.optimize(objective, n_trials=25)
    assert study.best_value < -0.95
    assert set(study.ask().relative_params) == set(space)
    known = trials_of(sampler)
    assert [trial["state"] for trial in known] == ["COMPLETE"] * 25 + ["RUNNING"]
    assert len({trial["params"]["p1"] for trial in known if trial["params"]["p0"] == 1}) > 1
    # No more is kept of what was suggested than the storage does not have.
    assert sampler._memory is not None
    unused = {number: set(values) for number, values in sampler._memory.asked.items() if number < 25}
    assert unused == {trial.number: set(space) - set(trial.params) for trial in study.trials[:25]}


def test_a_space_that_shrinks_and_grows() -> None:
    study = study_with(TreeSampler(seed=1, n_startup_trials=3))

    def objective(trial: Any) -> float:
        width = [1, 1, 5, 5, 2][trial.number % 5]
        total = trial.suggest_float("x", 0, 1) + trial.suggest_float("w", 0, width)
        return float(total + sum(trial.suggest_int(f"k{k}", 0, 3) for k in range(trial.number % 3)))

    study.optimize(objective, n_trials=20)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert set(study.ask().relative_params) == {"x"}


def test_one_sampler_serves_several_studies() -> None:
    sampler = TreeSampler(seed=1, n_startup_trials=2)
    one, two = study_with(sampler), study_with(sampler)
    for _ in range(4):
        one.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        two.optimize(lambda trial: trial.suggest_int("n", 5, 9), n_trials=1)
    assert all(set(values) == {"x"} for values in params(one))
    assert all(set(values) == {"n"} for values in params(two))
    assert len({values["n"] for values in params(two)}) == 4


def test_studies_with_the_same_parameters_are_not_mixed_up() -> None:
    sampler = TreeSampler(GRID, seed=1)
    one, two = study_with(sampler), study_with(sampler)
    for value in range(3):
        one.tell(one.ask(GRID), value)
        two.tell(two.ask(GRID), 10.0 + value)
    two.ask(GRID)
    assert [trial["value"] for trial in trials_of(sampler)] == [10.0, 11.0, 12.0, None]


# Copies and storages


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_go_on_alike(again: Any) -> None:
    sampler = TreeSampler(MIXED, seed=3, n_startup_trials=6)
    study = study_with(sampler)
    study.optimize(mixed, n_trials=4)
    copied = again(sampler)
    assert copied._memory is None and copied._lock is not sampler._lock
    mirror = study_with(copied)
    mirror.add_trials(study.trials)
    for each in (study, mirror):
        each.optimize(mixed, n_trials=3)
    assert params(study) == params(mirror)


def test_a_study_goes_on_from_its_storage(tmp_path: Path) -> None:
    """The new sampler knows what the old one knew: no point is repeated, and the best one is found."""
    arguments: dict[str, Any] = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "s"}
    for part in range(4):
        study = study_with(TreeSampler(GRID, seed=1, n_startup_trials=3), load_if_exists=True, **arguments)
        assert len(study.trials) == 5 * part
        study.optimize(lambda trial: suggest(trial, GRID)["a"] + (trial.params["b"] is not None), n_trials=5)
    assert len({tuple(sorted(map(repr, values.items()))) for values in params(study)}) == 20
    assert study.best_params == {"a": 0, "b": None}


def test_with_hyperband() -> None:
    """Its studies show only some of the trials to samplers; all are used."""
    sampler = TreeSampler(GRID, seed=1)
    study = study_with(sampler, pruner=optuna.pruners.HyperbandPruner(1, 4))
    study.optimize(lambda trial: float(suggest(trial, GRID)["a"]), n_trials=10)
    assert len({tuple(sorted(map(repr, values.items()))) for values in params(study)}) == 10


# OptunaHub


def test_the_package_for_optunahub_is_whole() -> None:
    folder = Path(__file__).parent.parent / "optunahub/package/samplers/boscage"
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "LICENSE",
        "README.md",
        "__init__.py",
        "requirements.txt",
    }
    names: dict[str, Any] = {}
    exec((folder / "__init__.py").read_text(), names)
    assert names["TreeSampler"] is TreeSampler
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    keys = [line.split(":")[0] for line in front.splitlines()]
    assert keys == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "license: MIT License" in front
    # The registry shows no HTML.
    assert "<" not in text


def test_the_example_for_optunahub_runs() -> None:
    readme = (Path(__file__).parent.parent / "optunahub/package/samplers/boscage/README.md").read_text()
    example = readme.split("```python\n")[1].split("```")[0]
    # Without the registry, which would be asked over the network.
    example = example.replace("import optunahub\n", "import boscage.optuna as module\n")
    example = example.replace('module = optunahub.load_module("samplers/boscage")\n', "")
    names: dict[str, Any] = {}
    exec(example.replace("n_trials=100", "n_trials=40"), names)
    assert names["study"].best_value < 1


# It helps


def quadratic(trial: Any) -> float:
    """Ten parameters; each of five pairs depends on each other."""
    x = [trial.suggest_float(f"x{k}", -1, 1) for k in range(10)]
    single = sum((value - 0.3) ** 2 for value in x)
    return float(single + sum((x[2 * k] + x[2 * k + 1] - 0.6) ** 2 for k in range(5)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_much_better_than_chance(seed: int) -> None:
    best = {}
    for sampler in (TreeSampler(seed=seed), RandomSampler(seed=seed)):
        study = study_with(sampler)
        study.optimize(quadratic, n_trials=60)
        best[type(sampler).__name__] = study.best_value
    assert best["TreeSampler"] < 0.2 * best["RandomSampler"], best
