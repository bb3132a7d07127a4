"""Draws star25.png from the traces of the example `star25`.

    cargo run --release --example star25 -- --traces traces.json
    python3 docs/pictures/star25.py traces.json docs/pictures/star25.png
"""

import json
import math
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

INITIAL = 10
# Okabe-Ito colours: distinct with every kind of colour vision.
STYLES = {
    "tree": ("boscage (default)", "#0072B2", "-"),
    "tree-paper": ("Tree-GP-UCB as in the paper", "#D55E00", "--"),
    "random": ("random search", "#666666", ":"),
}


def main(traces_file, picture):
    traces = json.load(open(traces_file))
    plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), width_ratios=[1.55, 1])

    curves = {name: np.array([t["regret"] for t in runs])[:, INITIAL - 1 :] for name, runs in traces.items()}
    for name, curve in sorted(curves.items(), key=lambda item: -item[1][:, -1].mean()):
        label, colour, line = STYLES[name]
        t = np.arange(curve.shape[1])
        mean, band = curve.mean(axis=0), curve.std(axis=0) / 4
        left.plot(t, mean, line, color=colour, label=label, linewidth=2)
        left.fill_between(t, mean - band, mean + band, color=colour, alpha=0.2, linewidth=0)
    left.set_xlabel("evaluations after the 10 initial ones")
    left.set_ylabel("regret: distance to the optimum")
    left.set_title("Star of 25 variables, noise 0.15")
    left.set_ylim(bottom=0)
    left.set_xlim(0, curve.shape[1] - 1)
    left.legend(frameon=False)

    draw_forest(right, traces["tree-paper"])
    figure.tight_layout()
    figure.savefig(picture, dpi=130)


def draw_forest(axes, runs):
    """The forest of the run with the median final F1."""
    run = sorted(runs, key=lambda r: r["f1"][-1])[len(runs) // 2]
    place = {0: (0.0, 0.0)}
    for k in range(1, 25):
        angle = 2 * math.pi * k / 24
        place[k] = (math.cos(angle), math.sin(angle))
    found = {tuple(edge) for edge in run["edges"]}
    true = {(0, k) for k in range(1, 25)}
    kinds = [
        (true - found, "#BBBBBB", ":", "missed"),
        (found - true, "#D55E00", "--", "wrong"),
        (found & true, "#0072B2", "-", "right"),
    ]
    for edges, colour, line, label in kinds:
        for number, (i, j) in enumerate(sorted(edges)):
            (a, b), (c, d) = place[i], place[j]
            axes.plot([a, c], [b, d], line, color=colour, linewidth=2, zorder=1,
                      label=f"{label} ({len(edges)})" if number == 0 else None)
    xs, ys = zip(*place.values())
    axes.scatter(xs, ys, s=45, color="#222222", zorder=2)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"Edges learned with the paper's\nsettings, F1 = {run['f1'][-1]:.2f}")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=3,
                columnspacing=1.0, handlelength=1.6)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
