"""An Optuna program that reads a study, or works on one.

    client.py read URL STUDY                         prints the study and its trials as JSON
    client.py create URL STUDY DIRECTIONS TRIALS     makes a study (directions separated by commas) with TPE trials,
                                                     some of them failed, pruned, infinite or infeasible
    client.py enqueue URL STUDY VALUES               puts a trial into the queue: values as JSON
    client.py work URL STUDY TRIALS SPACE FOLDER ID  runs trials; see `work`

The spaces are those of the study files in optuna.rs.
"""

import json
import math
import pathlib
import sys
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def everything(trial):
    """A parameter of each kind."""
    x = trial.suggest_float("x", -5.0, 5.0)
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    share = trial.suggest_float("share", 0.0, 1.0, step=0.1)
    n = trial.suggest_int("n", 1, 8)
    even = trial.suggest_int("even", 0, 10, step=2)
    trial.suggest_int("size", 1, 1024, log=True)
    level = trial.suggest_categorical("level", [0.5, 1, 2])
    trial.suggest_categorical("mood", ["low", "mid", "high"])
    cache = trial.suggest_categorical("cache", [False, True])
    mode = trial.suggest_categorical("mode", ["fast", "slow", "$(touch x); rm -rf"])
    trial.suggest_categorical("block", [16, 32, 64])
    trial.suggest_categorical("mixed", ["auto", 1, 2.5, False])
    depth = trial.suggest_int("depth", 1, 4) if mode == "fast" else 0
    return (x - 1) ** 2 + math.log(rate) ** 2 / 30 + share / 3 + abs(n - 3) + even / 7 + level + (not cache) + depth / 9


def grid(trial):
    """Few enough points that two workers would meet by chance."""
    x = trial.suggest_int("x", 0, 19)
    y = trial.suggest_int("y", 0, 19)
    return (x - 7) ** 2 / 3 + (y - 12) ** 2 / 7


def storage(url):
    """Optuna gives up on a busy SQLite file after 5 s by default, which is short for a test on a busy machine."""
    if url.startswith("sqlite"):
        return optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 60}})
    return optuna.storages.RDBStorage(url)


def plain(value):
    """JSON has finite numbers only: others as text, as boscage writes them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else str(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def time_text(moment):
    return moment and moment.isoformat(" ")


def read(url, name):
    # By its address, as users do.
    study = optuna.load_study(study_name=name, storage=url)
    trials = [
        {
            "number": trial.number,
            "state": trial.state.name,
            "value": trial.value,
            "params": trial.params,
            "distributions": {
                key: json.loads(optuna.distributions.distribution_to_json(value))
                for key, value in trial.distributions.items()
            },
            "datetime_start": time_text(trial.datetime_start),
            "datetime_complete": time_text(trial.datetime_complete),
            "user_attrs": trial.user_attrs,
            "system_attrs": trial.system_attrs,
            "constraints": trial.constraints,
        }
        for trial in study.get_trials()
    ]
    has_value = any(trial["state"] == "COMPLETE" for trial in trials)
    found = {
        "directions": [direction.name for direction in study.directions],
        "best": study.best_trial.number if has_value else None,
        "trials": trials,
    }
    json.dump(plain(found), sys.stdout)


def create(url, name, directions, trials):
    directions = directions.split(",")
    sampler = optuna.samplers.TPESampler(seed=1, n_startup_trials=5)
    study = optuna.create_study(study_name=name, storage=storage(url), directions=directions, sampler=sampler)

    def objective(trial):
        value = everything(trial)
        if trial.number % 7 == 3:
            raise ArithmeticError("as planned")
        if trial.number % 7 == 5:
            trial.report(value, step=1)
            raise optuna.TrialPruned()
        if trial.number == 1:
            trial.set_constraint("weight", 0.5)
            trial.set_user_attr("note", [float("nan"), "NaN"])
        if trial.number == 2:
            return math.inf
        return value if len(directions) == 1 else [value] * len(directions)

    study.optimize(objective, n_trials=int(trials), catch=ArithmeticError)


def enqueue(url, name, values):
    optuna.load_study(study_name=name, storage=storage(url)).enqueue_trial(json.loads(values))


def work(url, name, trials, space, folder, identity):
    """Runs trials, and writes what it has told to FOLDER/told-ID, a line of JSON for each trial.

    It begins when there is a file FOLDER/go, and makes FOLDER/begun-ID after its first trial.
    """
    folder = pathlib.Path(folder)
    sampler = optuna.samplers.TPESampler(seed=int(identity), n_startup_trials=5)
    study = optuna.load_study(study_name=name, storage=storage(url), sampler=sampler)
    objective = {"everything": everything, "grid": grid}[space]
    (folder / f"ready-{identity}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    with open(folder / f"told-{identity}", "w") as told:

        def note(_, trial):
            print(json.dumps({"number": trial.number, "value": trial.value}), file=told, flush=True)
            (folder / f"begun-{identity}").touch()

        study.optimize(objective, n_trials=int(trials), callbacks=[note])


{"read": read, "create": create, "enqueue": enqueue, "work": work}[sys.argv[1]](*sys.argv[2:])
