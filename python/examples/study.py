"""A study in a file: run it twice, and it goes on where it was."""

import sys
from typing import Any

import boscage


def cost(params: dict[str, Any]) -> float:
    return float((params["x"] - 2) ** 2)


store = sys.argv[1] if len(sys.argv) > 1 else "example.db"
study = boscage.Study({"x": (-5.0, 5.0)}, storage=store, name="bowl", seed=1)
before = len(study.trials)
study.optimize(cost, n_trials=before + 10)
trial = study.ask()  # Or one by one.
study.tell(trial, cost(trial.params))
print(f"{before} trials before, {len(study.trials)} now; best {study.best_value:.4f}")
