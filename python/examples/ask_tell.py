"""Asks for points and tells what came out, two at a time and not in order; then goes on from the saved state."""

import boscage

optimizer = boscage.Optimizer({"x": boscage.Real(0.001, 10.0, log=True), "n": (1, 8)}, goal="maximize", seed=1)
for _ in range(10):
    first, second = optimizer.ask(2)
    for params in (second, first):
        optimizer.tell(params, -abs(params["x"] - 0.1) - abs(params["n"] - 5))

again = boscage.Optimizer.load(optimizer.save())
assert again.ask() == optimizer.ask()
best = optimizer.best
assert best is not None
print(f"trial {best.number} is best: {best.value} with {best.params}")
