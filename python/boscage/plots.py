"""Pictures of a run and of what was learned (needs matplotlib: ``pip install boscage[plots]``).

Each function draws into `ax` if it is given, otherwise into a new figure, and returns what it drew into, so that titles and
labels can be changed afterwards.

>>> import boscage
>>> from boscage import plots
>>> f = lambda p: (p["a"] * p["b"] - 1) ** 2 + p["c"]
>>> space = {"a": (-2.0, 2.0), "b": (-2.0, 2.0), "c": (0.0, 1.0)}
>>> result = boscage.minimize(f, space, n_trials=30, seed=1, progress=False)
>>> plots.history(result).get_xlabel()
'trial'
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._model import Edge, Effect, Model
from ._optimize import Optimizer, Result
from ._study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["forest", "history", "importances", "main_effects", "pair"]

# The colours of Okabe and Ito, which people with any kind of colour vision can tell apart.
_BLUE, _SKY, _ORANGE, _VERMILLION, _GREEN, _GREY = "#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#009E73", "#999999"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib; install it with: pip install 'boscage[plots]'") from error
    return matplotlib.pyplot


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    drawn: Axes = _pyplot().subplots(figsize=size, layout="constrained")[1]
    return drawn


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def _short(text: Any, length: int = 24) -> str:
    """Text that fits beside an axis; dollar signs are no formulas."""
    words = f"{text:.6g}" if isinstance(text, float) else str(text)
    words = words if len(words) <= length else words[: length - 1] + "…"
    return words.replace("$", r"\$")


def _model(model: Any) -> Model:
    """A model, or the model of something that has one."""
    if isinstance(model, (Result, Optimizer, Study)):
        model = model.model
    if model is None:
        raise ValueError("nothing was learned yet, so there is nothing to draw; a model needs more trials")
    if not isinstance(model, Model):
        raise TypeError(f"a Model, Result, Optimizer or Study can be drawn, not {type(model).__name__}")
    return model


def _count(count: Any) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"{count!r} parameters cannot be drawn; give an integer above 0")
    return count


def history(run: Result | Study | Optimizer, *, log: bool = False, ax: Axes | None = None) -> Axes:
    """The value of each trial, the best so far, and the trials that failed."""
    if not isinstance(run, (Result, Study, Optimizer)):
        raise TypeError(f"a Result, Study or Optimizer has a history, not {type(run).__name__}")
    source = run.optimizer if isinstance(run, Result) else run
    goal = json.loads(source._native.definition())["goal"]
    trials = run.trials
    better = min if goal == "minimize" else max
    numbers: list[int] = []
    values: list[float] = []
    best: list[float] = []
    for trial in trials:
        if trial.state == "COMPLETE" and trial.value is not None:
            numbers.append(trial.number)
            values.append(trial.value)
            best.append(trial.value if not best else better(best[-1], trial.value))
    failed = [trial.number for trial in trials if trial.state in ("FAIL", "PRUNED")]
    ax = _axes(ax, (7.0, 4.0))
    if numbers:
        ax.plot(numbers, values, "o", color=_SKY, markersize=4, alpha=0.8, label="value")
        last = max(trial.number for trial in trials)
        ax.step([*numbers, last], [*best, best[-1]], where="post", color=_VERMILLION, linewidth=2, label="best so far")
    if failed:
        # At the lower edge, whatever the values are.
        at = ax.get_xaxis_transform()
        ax.plot(failed, [0.02] * len(failed), "x", color="black", markersize=5, transform=at, label="no value")
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("trial")
    ax.set_ylabel("value (smaller is better)" if goal == "minimize" else "value (larger is better)")
    if numbers or failed:
        ax.legend(frameon=False)
    _plain(ax)
    return ax


def importances(model: Model | Result | Optimizer | Study, *, top: int = 20, ax: Axes | None = None) -> Axes:
    """How much each of the `top` parameters matters: alone, with nine tenths of what is plausible, and in pairs."""
    top = _count(top)
    model = _model(model)
    every = sorted(model.importances, key=lambda one: -one.total)
    shown = every[:top][::-1]
    ax = _axes(ax, (7.0, 1.2 + 0.3 * len(shown)))
    places = range(len(shown))
    main = [one.main for one in shown]
    ax.barh(places, main, color=_BLUE, label="alone")
    pairs = [max(one.total - one.main, 0.0) for one in shown]
    if any(share > 0 for share in pairs):
        ax.barh(places, pairs, left=main, color=_ORANGE, label="together with others")
    reach = [
        [max(one.main - one.low, 0.0) for one in shown],
        [max(one.high - one.main, 0.0) for one in shown],
    ]
    ax.errorbar(main, list(places), xerr=reach, fmt="none", ecolor="black", elinewidth=1, capsize=3)
    ax.set_yticks(list(places), [_short(one.parameter) for one in shown])
    ax.set_xlim(left=0.0)
    ax.set_xlabel("share of the variance over the space")
    lines = [f"the {len(shown)} most important of {len(every)} parameters"] if len(every) > len(shown) else []
    if model.trust["predicted"] < 0.2:
        lines.append("the model predicts little of the outcomes yet")
    if lines:
        ax.set_title("\n".join(lines), fontsize="medium")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="lower right")
    _plain(ax)
    return ax


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _is_log(values: Sequence[Any]) -> bool:
    """Whether a grid goes up by ratios: its differences grow as its values do."""
    if len(values) < 5 or not all(isinstance(value, float) and value > 0 for value in values):
        return False
    ratios = [after / before for before, after in zip(values, values[1:])]
    return bool(min(ratios) > 1.001 and max(ratios) / min(ratios) < 1.01)


def _is_line(values: Sequence[Any]) -> bool:
    """Whether it is a range of real numbers and not a few values one by one."""
    return _numbers(values) and any(isinstance(value, float) for value in values) and len(values) > 12


def _one_effect(ax: Axes, effect: Effect) -> None:
    values = effect.values[0]
    mean, std = [float(x) for x in effect.mean], [float(x) for x in effect.std]
    low, high = [m - 2 * s for m, s in zip(mean, std)], [m + 2 * s for m, s in zip(mean, std)]
    ax.axhline(0.0, color=_GREY, linewidth=0.8)
    if _is_line(values) or (_numbers(values) and len(values) > 12):
        ax.fill_between(values, low, high, color=_SKY, alpha=0.4, linewidth=0)
        ax.plot(values, mean, color=_BLUE, linewidth=2)
        if _is_log(values):
            ax.set_xscale("log")
    else:
        ax.errorbar(range(len(values)), mean, yerr=[2 * s for s in std], fmt="o", color=_BLUE, ecolor=_SKY, capsize=3)
        _name_values(ax.xaxis, values)
        ax.set_xlim(-0.5, len(values) - 0.5)
    ax.set_xlabel(_short(effect.parameters[0]))
    _plain(ax)


def _name_values(axis: Any, values: Sequence[Any]) -> None:
    """Names the values along an axis; only some of them if they are many."""
    most = 6 if any(isinstance(value, float) for value in values) else 12
    every = max(1, math.ceil(len(values) / most))
    axis.set_ticks(list(range(0, len(values), every)), [_name(value) for value in values[::every]])


def _name(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.3g}" if isinstance(value, float) else _short(value, 12)


def main_effects(model: Model | Result | Optimizer | Study, parameters: Sequence[str] | None = None) -> Figure:
    """What parameters do alone: the outcome above or below its average, with two standard deviations.

    Without `parameters`, the nine that matter most.
    """
    model = _model(model)
    if isinstance(parameters, str):
        parameters = [parameters]
    if parameters is None:
        parameters = [one.parameter for one in sorted(model.importances, key=lambda one: -one.total)[:9]]
    effects = [model.component(name) for name in parameters]
    if not effects:
        raise ValueError("no parameters are given, so there is nothing to draw")
    columns = min(3, len(effects))
    rows = math.ceil(len(effects) / columns)
    size = (1.0 + 2.8 * columns, 0.6 + 2.2 * rows)
    figure: Figure = _pyplot().figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    every = [grid[place // columns, place % columns] for place in range(rows * columns)]
    for ax, effect in zip(every, effects):
        _one_effect(ax, effect)
    for ax in every[len(effects) :]:
        ax.set_visible(False)
    figure.supylabel("value above or below its average")
    return figure


def pair(model: Model | Result | Optimizer | Study, a: str, b: str, *, ax: Axes | None = None) -> Axes:
    """What two parameters do together, each one's own effect included: the outcome above or below its average."""
    effect = _model(model).component(a, b)
    across, up = effect.values
    # Rows go up.
    mean = [[float(effect.mean[i][j]) for i in range(len(across))] for j in range(len(up))]
    ax = _axes(ax, (5.6, 4.4))
    reach = max((abs(value) for row in mean for value in row), default=0.0) or 1.0
    if _is_line(across) and _is_line(up):
        levels = [reach * (step / 8 - 1) for step in range(17)]
        drawn: Any = ax.contourf(across, up, mean, levels=levels, cmap=_colours())
        ax.contour(across, up, mean, levels=levels[::2], colors="black", linewidths=0.5, alpha=0.5)
        if _is_log(across):
            ax.set_xscale("log")
        if _is_log(up):
            ax.set_yscale("log")
    else:
        drawn = ax.imshow(mean, origin="lower", aspect="auto", cmap=_colours(), vmin=-reach, vmax=reach)
        _name_values(ax.xaxis, across)
        _name_values(ax.yaxis, up)
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.set_label("value above or below its average")
    ax.set_xlabel(_short(a))
    ax.set_ylabel(_short(b))
    return ax


def _colours() -> Any:
    """From blue by way of white to vermillion."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("boscage", [_BLUE, "#FFFFFF", _VERMILLION])


Place = tuple[float, float]


def forest(model: Model | Result | Optimizer | Study, *, labels: int = 40, ax: Axes | None = None) -> Axes:
    """The learned graph: the larger a parameter's circle, the more it does alone; the wider an edge, the more its two do
    together; the darker, the more often it was sampled. Edges are those of :attr:`boscage.Model.edges`. Parameters without one
    stand below, the `labels` that matter most have their names."""
    labels = _count(labels)
    model = _model(model)
    edges = model.edges
    matters = {one.parameter: one for one in model.importances}
    places = _places(list(matters), edges)
    share = {(pair.first, pair.second): min(max(pair.share, 0.0), 1.0) for pair in model.pairs}
    high = max(y for _, y in places.values()) - min(y for _, y in places.values())
    wide = max(x for x, _ in places.values()) - min(x for x, _ in places.values())
    ax = _axes(ax, (min(max(3.0 + 0.9 * wide, 5.0), 14.0), min(2.6 + 0.9 * high, 14.0)))
    for edge in edges:
        (x0, y0), (x1, y1) = places[edge.first], places[edge.second]
        # The same width means the same in every picture.
        width = 1.0 + 6.0 * math.sqrt(share[edge.first, edge.second])
        opacity = 0.2 + 0.8 * min(max(edge.frequency, 0.0), 1.0)
        ax.plot([x0, x1], [y0, y1], color=_ORANGE, linewidth=width, alpha=opacity, solid_capstyle="round", zorder=1)
    top = max((one.main for one in matters.values()), default=0.0) or 1.0
    sizes = {name: 30.0 + 570.0 * max(one.main, 0.0) / top for name, one in matters.items()}
    names = list(places)
    ax.scatter(
        [places[name][0] for name in names],
        [places[name][1] for name in names],
        s=[sizes[name] for name in names],
        color=[_BLUE if any(name in (edge.first, edge.second) for edge in edges) else _SKY for name in names],
        edgecolors="white",
        linewidths=1.0,
        zorder=2,
    )
    for name in sorted(names, key=lambda name: -matters[name].total)[:labels]:
        ax.annotate(
            _short(name, 16),
            places[name],
            xytext=(0, -(math.sqrt(sizes[name]) / 2 + 3)),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize="small",
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.7},
            zorder=3,
        )
    ax.margins(0.12)
    ax.set_aspect("equal", adjustable="datalim")
    # Without an axis, but with the room for what is said below it.
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])
    joined = f"{len(edges)} {'edge' if len(edges) == 1 else 'edges'}"
    ax.set_title(f"{len(names)} parameters, {joined}", fontsize="medium")
    meaning = ["the larger a circle, the more the parameter does alone"]
    if edges:
        meaning.append("lines: two that depend on each other; wider: they do more together; darker: it is surer")
    if labels < len(names):
        meaning.append(f"the {labels} most important names are shown" if labels > 1 else "the most important name is shown")
    ax.set_xlabel("\n".join(meaning), fontsize="small", color="#555555")
    return ax


def _places(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, Place]:
    """A place for each node: every tree in circles around its middle, trees side by side, single nodes in rows below."""
    beside: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        beside[edge.first].append(edge.second)
        beside[edge.second].append(edge.first)
    seen: set[str] = set()
    drawn: list[dict[str, Place]] = []
    single = []
    for name in names:
        if name in seen:
            continue
        tree = _reached(beside, name)
        seen.update(tree)
        if len(tree) == 1:
            single.append(name)
            continue
        middle = min(tree, key=lambda node: (max(_reached(beside, node).values()), -len(beside[node])))
        drawn.append(_circles(beside, middle))
    places: dict[str, Place] = {}
    sides = [(max(a for a, _ in tree.values()), max(b for _, b in tree.values()), tree) for tree in drawn]
    limit = max(8.0, 1.5 * math.sqrt(sum((wide + 1.2) * (high + 1.2) for wide, high, _ in sides)))
    x = y = row = 0.0
    for wide, high, tree_places in sorted(sides, key=lambda side: (-side[1], -side[0])):
        if x > 0 and x + wide > limit:
            x, y, row = 0.0, y - row - 1.2, 0.0
        for node, (a, b) in tree_places.items():
            places[node] = (x + a, y - high + b)
        x += wide + 1.2
        row = max(row, high)
    right = max((a for a, _ in places.values()), default=0.0)
    columns = max(6, int(right) + 1, math.ceil(math.sqrt(2 * len(single))))
    below = y - row - 1.2 if places else 0.0
    for place, name in enumerate(single):
        places[name] = (float(place % columns), below - 0.8 * (place // columns))
    return places


def _reached(beside: dict[str, list[str]], start: str) -> dict[str, int]:
    """All nodes that can be reached, with how many edges away they are."""
    away = {start: 0}
    queue = [start]
    for node in queue:
        for other in beside[node]:
            if other not in away:
                away[other] = away[node] + 1
                queue.append(other)
    return away


def _circles(beside: dict[str, list[str]], middle: str) -> dict[str, Place]:
    """The places of a tree's nodes, in circles around its middle; the lower left corner of them all is (0, 0)."""
    away = _reached(beside, middle)
    # Each node hangs on the first that reaches it, also if there were a circle of edges.
    below: dict[str, list[str]] = {node: [] for node in away}
    hung = {middle}
    for node in away:
        for other in beside[node]:
            if other not in hung and away[other] == away[node] + 1:
                hung.add(other)
                below[node].append(other)
    leaves = {node: 1 for node in away}
    for node in reversed(list(away)):
        if below[node]:
            leaves[node] = sum(leaves[other] for other in below[node])
    # Neighbours on the outermost circle stay apart.
    depth = max(away.values())
    step = max(1.0, leaves[middle] / (2 * math.pi * depth))
    places = {middle: (0.0, 0.0)}
    # The first branch goes to the right, so that names, which are wide, have room.
    turn = -math.pi * leaves[below[middle][0]] / leaves[middle]
    stack = [(middle, turn, turn + 2 * math.pi)]
    while stack:
        node, begin, end = stack.pop()
        for other in below[node]:
            part = (end - begin) * leaves[other] / max(1, sum(leaves[one] for one in below[node]))
            angle, radius = begin + part / 2, step * away[other]
            places[other] = (radius * math.cos(angle), radius * math.sin(angle))
            stack.append((other, begin, begin + part))
            begin += part
    left, bottom = min(x for x, _ in places.values()), min(y for _, y in places.values())
    return {node: (x - left, y - bottom) for node, (x, y) in places.items()}
