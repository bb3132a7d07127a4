"""The search algorithm of Ray Tune: each method alone, and a real tuner on this machine."""

import json
import math
import pickle
import sys

import numpy
import pytest


import ray
from ray import tune
from ray.tune.search import ConcurrencyLimiter, Searcher

import boscage
from boscage.ray import BoscageSearch

SPACE = {
    "rate": tune.loguniform(1e-4, 1e-1),
    "net": {"layers": tune.randint(1, 5), "kind": tune.choice(["a", "b"])},
    "epochs": 5,
}


def search(space=SPACE, **settings):
    one = BoscageSearch(seed=1, **settings)
    assert one.set_search_properties("loss", "min", space) is True
    return one


def loss(config):
    return (math.log10(config["rate"]) + 2) ** 2 + config["net"]["layers"] + (config["net"]["kind"] == "a")


def run(one, first, last):
    for i in range(first, last):
        config = one.suggest(f"t{i}")
        one.on_trial_complete(f"t{i}", {"loss": loss(config)})


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (tune.uniform(-1, 2), {"type": "real", "low": -1.0, "high": 2.0}),
        (tune.loguniform(1e-3, 1), {"type": "real", "low": 1e-3, "high": 1.0, "log": True}),
        (tune.quniform(0, 1, 0.25), {"type": "real", "low": 0.0, "high": 1.0, "step": 0.25}),
        (tune.randint(1, 5), {"type": "integer", "low": 1, "high": 4}),
        (tune.lograndint(1, 100), {"type": "integer", "low": 1, "high": 99, "log": True}),
        (tune.qrandint(3, 20, 4), {"type": "integer", "low": 4, "high": 20, "step": 4}),
        (tune.qrandint(3, 20, 1), {"type": "integer", "low": 3, "high": 19}),
        (tune.choice(["a", "b"]), {"type": "categorical", "choices": ["a", "b"]}),
        (tune.choice([1, "b", 2.5, numpy.float64(0.5)]), {"type": "categorical", "choices": [1, "b", 2.5, 0.5]}),
        (tune.randint(numpy.int64(1), numpy.int64(5)), {"type": "integer", "low": 1, "high": 4}),
    ],
)
def test_ranges(domain, expected):
    one = search({"x": domain, "constant": 3})
    (parameter,) = json.loads(one.optimizer.space.json)["parameters"]
    (wanted,) = json.loads(boscage.Space({"x": expected}).json)["parameters"]
    assert parameter == wanted


DOMAINS = {
    "uniform": tune.uniform(-1, 2),
    "quniform": tune.quniform(0.4, 1.2, 0.2),
    "loguniform": tune.loguniform(1e-3, 1),
    "qloguniform": tune.qloguniform(0.5, 40, 0.5),
    "randint": tune.randint(-3, 3),
    "qrandint": tune.qrandint(3, 20, 4),
    "qrandint1": tune.qrandint(3, 9, 1),
    "lograndint": tune.lograndint(1, 100),
    "qlograndint": tune.qlograndint(8, 256, 8),
    "choice": tune.choice([None, (1, 2), {"deep": [1]}, 4]),
    "one": tune.choice(["only"]),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_suggestions_are_what_tune_itself_may_sample(name):
    """Every value is in the domain; of few values, all come up, and none that Tune never samples."""
    domain = DOMAINS[name]
    one = search({"x": domain, "other": tune.uniform(0, 1)}, method="random")
    values = [one.suggest(f"t{i}")["x"] for i in range(300)]
    sampled = numpy.atleast_1d(domain.sample(size=3000, random_state=1)) if name != "choice" else domain.categories
    kind = domain.cast(1) if name not in ("choice", "one") else None
    assert kind is None or {type(value) for value in values} == {type(kind)}
    if name in ("uniform", "loguniform"):
        assert all(domain.is_valid(value) for value in values)
        return

    def key(value):
        return round(float(value), 9) if isinstance(value, float) else str(value)

    found, possible = set(map(key, values)), set(map(key, sampled))
    assert found <= possible
    if len(possible) < 20:
        assert found == possible


def test_nested_configurations_and_constants():
    config = search().suggest("a")
    assert set(config) == {"rate", "net"} and set(config["net"]) == {"layers", "kind"}


def test_the_same_points_as_an_optimizer_gives():
    one = search()
    optimizer = boscage.Optimizer(one.optimizer.space, seed=1)
    for i in range(15):
        config, params = one.suggest(f"t{i}"), optimizer.ask()
        assert {"rate": params["rate"], "net": {k: params[f"net/{k}"] for k in ("layers", "kind")}} == config
        one.on_trial_complete(f"t{i}", {"loss": loss(config)})
        optimizer.tell(params, loss(config))


def test_the_goal_is_reached_in_both_directions():
    one = search()
    run(one, 0, 30)
    assert one.optimizer.best.value < 1.1
    assert one.model is not None
    other = BoscageSearch(seed=1)
    other.set_search_properties("gain", "max", SPACE)
    for i in range(30):
        config = other.suggest(f"t{i}")
        other.on_trial_complete(f"t{i}", {"gain": -loss(config)})
    assert other.optimizer.best.value == -one.optimizer.best.value


@pytest.mark.parametrize(
    ("result", "error", "failure"),
    [
        (None, False, "the trial ended without a result"),
        ({}, False, "the trial ended without a result"),
        (None, True, "the trial ended with an error"),
        ({"loss": 1.0}, True, "the trial ended with an error"),
        ({"accuracy": 1.0}, False, "the result has no 'loss'"),
        ({"loss": None}, False, "the result has no 'loss'"),
        ({"loss": math.nan}, False, "'loss' is nan"),
        ({"loss": -math.inf}, False, "'loss' is -inf"),
        ({"loss": "low"}, False, "the value is 'low', which is not a number"),
    ],
)
def test_results_that_are_none(result, error, failure):
    one = search()
    one.suggest("a")
    one.on_trial_complete("a", result, error)
    (trial,) = one.optimizer.trials
    assert (trial.state, trial.failure, trial.value) == ("FAIL", failure, None)
    assert one.suggest("b")


def test_results_in_other_forms():
    one = BoscageSearch(metric="eval/loss", mode="min")
    one.set_search_properties(None, None, {"x": tune.uniform(0, 1)})
    for i, result in enumerate([{"eval/loss": 1}, {"eval": {"loss": numpy.float32(2)}}]):
        one.suggest(str(i))
        one.on_trial_result(str(i), {"other": 1})
        one.on_trial_complete(str(i), result)
    assert [trial.value for trial in one.optimizer.trials] == [1.0, 2.0]


def test_results_of_unknown_trials_and_second_ones_change_nothing():
    one = search()
    one.on_trial_complete("never", {"loss": 1.0})
    one.suggest("a")
    one.on_trial_complete("a", {"loss": 1.0})
    one.on_trial_complete("a", {"loss": 2.0})
    assert [trial.value for trial in one.optimizer.trials] == [1.0]


def test_asking_again_for_a_trial_gives_the_same():
    one = search()
    assert one.suggest("a") == one.suggest("a")
    assert len(one.optimizer.trials) == 1


def test_running_trials_are_pending_and_few_enough():
    one = search(max_concurrent=2)
    assert one.suggest("a") != one.suggest("b")
    assert one.suggest("c") is None
    one.on_trial_complete("a", error=True)
    assert one.suggest("c") is not None
    limiter = ConcurrencyLimiter(search(), 3)
    assert [limiter.suggest(str(i)) is None for i in range(5)] == [False, False, False, True, True]
    limiter.on_trial_complete("1", {"loss": 1.0})
    assert limiter.suggest("5") is not None
    with pytest.raises(ValueError, match="it must be a whole number from 1"):
        one.set_max_concurrency(0)


def test_a_space_that_has_been_tried_is_finished():
    one = search({"x": tune.choice(["a", "b"]), "n": tune.randint(0, 2)})
    for i in range(4):
        assert one.suggest(str(i)) != Searcher.FINISHED
        one.on_trial_complete(str(i), {"loss": i})
    assert one.suggest("4") == Searcher.FINISHED


def test_points_from_elsewhere():
    one = search()
    config = {"rate": 0.01, "net": {"layers": 1, "kind": "b"}, "epochs": 5, "whatever": object()}
    live = one.suggest("live")
    one.add_evaluated_point(config, 0.5)
    one.add_evaluated_point(live, 7.0)
    one.add_evaluated_point(config, 0.5, error=True)
    one.add_evaluated_point(config, 0.5, pruned=True)
    one.add_evaluated_point(config, math.nan)
    states = [(trial.state, trial.value) for trial in one.optimizer.trials]
    assert states[0] == ("RUNNING", None)
    assert states[1:] == [("COMPLETE", 0.5), ("COMPLETE", 7.0)] + [("FAIL", None)] * 3
    one.on_trial_complete("live", {"loss": 3.0})
    assert one.optimizer.trials[0].value == 3.0
    with pytest.raises(ValueError, match="kind"):
        one.add_evaluated_point({"rate": 0.01, "net": {"layers": 1, "kind": "z"}}, 0.5)
    with pytest.raises(RuntimeError, match="the search has no space"):
        BoscageSearch().add_evaluated_point(config, 1.0)


def test_points_to_begin_with():
    first = {"rate": 0.05, "net": {"layers": 2}}
    config = search(points_to_evaluate=[first]).suggest("a")
    assert config["rate"] == pytest.approx(0.05) and config["net"]["layers"] == 2


def test_a_space_of_our_own():
    one = BoscageSearch({"x": (0.0, 1.0), "deep/n": (1, 4)}, metric="loss", mode="min")
    config = one.suggest("a")
    assert set(config) == {"x", "deep"} and config["deep"]["n"] in (1, 2, 3, 4)
    # There is a space already: Tune is told so, unless it has nothing of its own.
    assert one.set_search_properties("loss", "min", {"y": tune.uniform(0, 1)}) is False
    assert one.set_search_properties("loss", "min", {"epochs": 3}) is True
    assert BoscageSearch(SPACE, metric="loss", mode="min").suggest("a") == BoscageSearch(SPACE, mode="min").suggest("a")


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"a": {"x": tune.grid_search([1, 2])}}, "'a/x': boscage does not search grids"),
        ({"x": tune.sample_from(lambda config: 1)}, "'x': sample_from cannot be searched"),
        ({"x": tune.randn(0, 1)}, "'x': a normal distribution has no bounds"),
        ({"x": tune.randint(3, 3)}, "'?\"?x"),
        ({"x": tune.choice([])}, "'x' has no choices"),
        ({"x": [tune.uniform(0, 1)]}, "'x' is a list with ranges in it"),
        ({"a/x": tune.uniform(0, 1), "a": {"x": tune.uniform(0, 1)}}, "two ranges for 'a/x'"),
        ({"x": tune.qrandint(5, 7, 4)}, "'x': no multiple of 4 lies between 5 and 7"),
    ],
)
def test_spaces_that_cannot_be_searched(space, message):
    with pytest.raises(ValueError, match=message):
        BoscageSearch().set_search_properties("loss", "min", space)


def test_what_is_missing_is_said():
    with pytest.raises(ValueError, match="one metric"):
        BoscageSearch(metric=["a", "b"], mode=["min", "max"])
    with pytest.raises(ValueError, match="'min' or 'max'"):
        BoscageSearch(metric="a", mode="least")
    with pytest.raises(RuntimeError, match="the search has no space"):
        BoscageSearch().suggest("a")
    with pytest.raises(RuntimeError, match="the search has no mode"):
        BoscageSearch({"x": (0.0, 1.0)}).suggest("a")


@pytest.mark.parametrize("way", ["file", "pickle"])
def test_a_restored_search_goes_on_as_if_nothing_had_happened(tmp_path, way):
    one = search(max_concurrent=3)
    run(one, 0, 14)
    one.suggest("live")
    if way == "file":
        one.save(str(tmp_path / "state"))
        assert json.loads((tmp_path / "state").read_text())["metric"] == "loss"
        other = BoscageSearch()
        other.restore(str(tmp_path / "state"))
        # A tuner gives the same space again.
        assert other.set_search_properties("loss", "min", SPACE) is True
    else:
        other = pickle.loads(pickle.dumps(one))
    assert other.suggest("live") == one.suggest("live")
    for searcher in (one, other):
        searcher.on_trial_complete("live", {"loss": 1.5})
        run(searcher, 14, 20)
    assert one.optimizer.trials == other.optimizer.trials
    with pytest.raises(ValueError, match="it cannot go on with 'max'"):
        other.set_search_properties("loss", "max", SPACE)


def test_choices_that_are_no_data_are_not_saved_but_found_again(tmp_path):
    space = {"f": tune.choice([math.sin, math.cos]), "q": tune.qloguniform(0.5, 8, 0.5), "x": tune.uniform(0, 1)}
    one = search(space)
    config = one.suggest("a")
    assert config["f"] in (math.sin, math.cos)
    one.add_evaluated_point(config, 1.0)
    one.save(str(tmp_path / "state"))
    other = BoscageSearch()
    other.restore(str(tmp_path / "state"))
    with pytest.raises(RuntimeError, match="the values of 'f' are not in the saved state"):
        other.suggest("a")
    assert other.set_search_properties("loss", "min", space) is True
    assert other.suggest("a") == config
    assert other.suggest("b") == one.suggest("b")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "nonsense", '{"boscage_search": 1}', '{"boscage_search": 2}', '{"boscage_search": 99}', "\x80\x04"]
)
def test_files_that_are_no_state(tmp_path, text):
    (tmp_path / "state").write_text(text)
    with pytest.raises(ValueError, match="does not hold the state of a BoscageSearch"):
        BoscageSearch().restore(str(tmp_path / "state"))


@pytest.fixture(scope="module")
def cluster():
    # Workers cannot import the tests.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def train(config):
    if config["net"]["layers"] == 4:
        raise RuntimeError("four layers do not fit")
    tune.report({"loss": loss(config)})


def tuner(path, searcher, trials):
    return tune.Tuner(
        train,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            search_alg=searcher,
            num_samples=trials,
            max_concurrent_trials=1,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(storage_path=str(path), name="experiment", verbose=0),
    )


def test_constants_of_its_own_space_are_in_configurations(tmp_path):
    marker = object()
    space = {"x": tune.uniform(0, 1), "net": {"layers": tune.randint(1, 9), "kind": "mlp"}, "epochs": 5, "data": marker}
    one = BoscageSearch(space, metric="loss", mode="min", seed=1)
    config = one.suggest("a")
    assert config["epochs"] == 5 and config["data"] is marker and config["net"]["kind"] == "mlp"
    assert set(config) == {"x", "net", "epochs", "data"}
    assert one.optimizer.space.names == ["x", "net/layers"]
    one.save(str(tmp_path / "state"))
    again = BoscageSearch(space, metric="loss", mode="min")
    again.restore(str(tmp_path / "state"))
    assert again.suggest("a") == config
    # What JSON knows is in the state; of the rest it is said that it is missing, until a tuner has it.
    bare = BoscageSearch()
    bare.restore(str(tmp_path / "state"))
    with pytest.raises(RuntimeError, match="the values of 'data' are not in the saved state"):
        bare.suggest("b")
    assert bare.set_search_properties("loss", "min", space)
    assert bare.suggest("a") == config


def test_restored_with_a_choice_of_nothing(tmp_path):
    space = {"x": tune.uniform(0, 1), "limit": tune.choice([None, 3, "3", [1, 2]])}
    one = BoscageSearch(space, metric="loss", mode="min", seed=1)
    configs = [one.suggest(str(i)) for i in range(8)]
    assert any(config["limit"] is None for config in configs)
    one.save(str(tmp_path / "state"))
    again = BoscageSearch()
    again.restore(str(tmp_path / "state"))
    assert [again.suggest(str(i)) for i in range(8)] == configs
    assert again.suggest("new") == one.suggest("new")


def test_a_real_tuner(cluster, tmp_path):
    """Tune gives the searcher the same trials that the bare methods give; and a saved search goes on."""
    one = BoscageSearch(seed=1)
    results = tuner(tmp_path, one, 6).fit()
    assert len(results) == 6
    expected = search()
    for i in range(6):
        config = expected.suggest(str(i))
        failed = config["net"]["layers"] == 4
        expected.on_trial_complete(str(i), None if failed else {"loss": loss(config)}, error=failed)
    best = expected.optimizer.best
    assert results.num_errors == sum(trial.state == "FAIL" for trial in expected.optimizer.trials)
    assert results.get_best_result().metrics["loss"] == best.value
    assert results.get_best_result().config["epochs"] == 5

    (state,) = (tmp_path / "experiment").glob("searcher-state-*")
    assert json.loads(state.read_text())["boscage_search"] == 2
    # From the folder of the experiment, in the middle: two more trials, the same as without a break.
    again = BoscageSearch()
    again.restore_from_dir(str(tmp_path / "experiment"))
    assert again.optimizer.trials == expected.optimizer.trials
    results = tuner(tmp_path / "more", again, 2).fit()
    for i in range(6, 8):
        config = expected.suggest(str(i))
        failed = config["net"]["layers"] == 4
        expected.on_trial_complete(str(i), None if failed else {"loss": loss(config)}, error=failed)
    (state,) = (tmp_path / "more" / "experiment").glob("searcher-state-*")
    last = BoscageSearch()
    last.restore(str(state))
    assert last.optimizer.trials == expected.optimizer.trials


def test_a_tuner_restored_by_ray(cluster, tmp_path):
    """`Tuner.restore` runs the failed trials again, with the searcher's state from the folder."""
    results = tuner(tmp_path, BoscageSearch(seed=1), 3).fit()
    assert len(results) == 3
    restored = tune.Tuner.restore(
        str(tmp_path / "experiment"), trainable=train, param_space=SPACE, restart_errored=True
    )
    results = restored.fit()
    assert len(results) == 3
    states = sorted((tmp_path / "experiment").glob("searcher-state-*"))
    last = BoscageSearch()
    last.restore(str(states[-1]))
    assert len(last.optimizer.trials) == 3
