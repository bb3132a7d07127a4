"""The same as crates/boscage-study/examples/ask_speed.rs, in Python: python ask.py DIMENSION OBSERVATIONS ASKS."""

import json
import sys
import time

import boscage

dimension, observations, asks = map(int, sys.argv[1:])
names = [f"x{d}" for d in range(dimension)]
optimizer = boscage.Optimizer({name: (0.0, 1.0) for name in names})
state = 1


def draw() -> float:
    global state
    state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
    return (state >> 11) / 2**53


def cost(params: dict[str, float]) -> float:
    total = 0.0
    for x in params.values():
        total += (x - 0.3) * (x - 0.3)
    return total


begin = time.perf_counter()
for _ in range(observations):
    params = {name: draw() for name in names}
    optimizer.tell(params, cost(params))
tells = time.perf_counter() - begin
seconds, total = [], 0.0
for _ in range(asks):
    begin = time.perf_counter()
    params = optimizer.ask()
    seconds.append(time.perf_counter() - begin)
    one = 0.0
    for x in params.values():
        one += x
    total += one
    optimizer.tell(params, cost(params))
print(json.dumps({"tells": tells, "asks": seconds, "sum": total}))
