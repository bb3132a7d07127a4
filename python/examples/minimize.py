"""Finds good parameters in one call, and says what was learned."""

import boscage


def cost(params: dict[str, bool | int | float | str]) -> float:
    x, y, n = float(params["x"]), float(params["y"]), int(params["n"])
    return (x * y - 1) ** 2 + abs(n - 3) + (0.5 if params["mode"] == "slow" else 0.0)


space = {"x": (-2.0, 2.0), "y": (-2.0, 2.0), "n": (1, 8), "mode": ["fast", "slow"]}
result = boscage.minimize(cost, space, n_trials=40, seed=1, progress=False)
print(f"best value {result.best_value:.3f} with {result.best_params}")
if result.model is not None:
    print(result.model)
