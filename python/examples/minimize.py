"""Finds good parameters in one call, and says what was learned."""

from typing import Any

import boscage


def cost(params: dict[str, Any]) -> float:
    slow = 0.5 if params["mode"] == "slow" else 0.0
    return float((params["x"] * params["y"] - 1) ** 2 + abs(params["n"] - 3) + slow)


space = {"x": (-2.0, 2.0), "y": (-2.0, 2.0), "n": (1, 8), "mode": ["fast", "slow"]}
result = boscage.minimize(cost, space, n_trials=40, seed=1, progress=False)
print(f"best value {result.best_value:.3f} with {result.best_params}")
if result.model is not None:
    print(result.model)
