"""What was learned: in words, in numbers and in pictures (needs matplotlib)."""

from typing import Any

import matplotlib

matplotlib.use("Agg")  # Only without a screen.
import matplotlib.pyplot as plt

import boscage


def cost(params: dict[str, Any]) -> float:
    return float(3 * params["a"] * params["b"] + (params["c"] + params["d"]) ** 2 + params["e"])


result = boscage.minimize(cost, {name: (-2.0, 2.0) for name in "abcdef"}, n_trials=60, seed=1, progress=False)
model = result.model
assert model is not None
print(model)
for edge in model.edges:
    print(f"{edge.first} and {edge.second} depend on each other, in {edge.frequency:.0%} of the samples")
mean, std = model.predict(result.best_params)
print(f"best value {result.best_value:.3f}, where the model expects {mean:.3f} with a standard deviation of {std:.3f}")
means, stds = model.predict([result.best_params, model.recommended.params])
assert len(means) == len(stds) == 2

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
boscage.plots.history(result, ax=left)
boscage.plots.forest(result, ax=right)
figure.savefig("run.png")
boscage.plots.main_effects(model).savefig("main-effects.png")
boscage.plots.pair(model, model.edges[0].first, model.edges[0].second)
plt.savefig("pair.png")
