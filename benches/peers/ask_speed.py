"""CPU seconds of an ask, with one thread, of boscage and other optimizers in one run.

    benches/peers/run ask_speed.py                                  D = 50 after 300 points, D = 250 after 1,000
    benches/peers/run ask_speed.py --cells 50x300 --limit 60        CPU seconds for each row of the table

Every solver is told the same n uniform random points of a noisy quadratic in D variables first. Then it asks and is told, n/10
times over or until the time is up. So many, because boscage learns from all points at once when there are a tenth more of them, and
not in between: the mean has one such ask for every n/10. Before that, each solver is used once on a small problem, so that
everything is loaded. The table is also written to experiments/ask-speed/results.md.

It measures and does not judge.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import time

from problem import ROOT
from solvers import make, version

DEFAULT = ["boscage", "optuna-tpe", "optuna-gp", "botorch"]


class OutOfTime(BaseException):
    """The time of a cell is over. Not an Exception: libraries catch those."""


def quadratic(values):
    return sum((x - 0.3) ** 2 for x in values)


def cell(solver_name, dimension, count, options):
    """Prints the CPU seconds of telling, and of each ask with its tell."""
    import numpy

    def out_of_time(*_):
        raise OutOfTime

    def parameters(dimension):
        return [{"name": f"x{d}", "type": "real", "low": 0.0, "high": 1.0, "log": False} for d in range(dimension)]

    random = numpy.random.default_rng(0)
    rounds = max(1, count // 10)
    points = random.random((count, dimension)).tolist()
    noise = (0.15 * random.standard_normal(count + rounds)).tolist()
    # Whatever is loaded or compiled when it is first used.
    small = make(solver_name, parameters(2), 0, 20)
    for point in random.random((12, 2)).tolist():
        small.tell(point, quadratic(point))
    small.ask()
    signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, options.limit)
    found = {"told": None, "asks": []}
    try:
        solver = make(solver_name, parameters(dimension), 0, count + rounds)
        begin = time.process_time()
        for point, off in zip(points, noise):
            solver.tell(point, quadratic(point) + off)
        found["told"] = time.process_time() - begin
        for number in range(rounds):
            begin = time.process_time()
            point = solver.ask()
            solver.tell(point, quadratic(point) + noise[count + number])
            found["asks"].append(time.process_time() - begin)
    except OutOfTime:
        pass
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps(found))


def shown(seconds):
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solvers", type=lambda text: text.split(","), default=DEFAULT, help=f"default: {','.join(DEFAULT)}")
    parser.add_argument("--cells", nargs="+", default=["50x300", "250x1000"], metavar="DxN", help="default: 50x300 250x1000")
    parser.add_argument("--limit", type=float, default=300, help="CPU seconds of a row; default 300")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "experiments" / "ask-speed" / "results.md")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        solver, dimension, count = options.one
        cell(solver, int(dimension), int(count), options)
        return

    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON")}
    rows, loads = [], []
    for size in options.cells:
        dimension, count = size.split("x")
        for solver in options.solvers:
            command = [sys.executable, "-W", "ignore", __file__, "--one", solver, dimension, count]
            command += ["--limit", str(options.limit)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            loads.append(os.getloadavg()[0])
            print(f"{size}, {solver}: {len(found['asks'])} asks", file=sys.stderr, flush=True)
            asks = found["asks"]
            cells = [
                dimension,
                count,
                solver,
                shown(statistics.mean(asks)) if asks else f"above {options.limit:g}",
                shown(statistics.median(asks)) if asks else "–",
                shown(max(asks)) if asks else "–",
                shown(found["told"]) if found["told"] is not None else "–",
                str(len(asks)),
            ]
            rows.append(f"| {' | '.join(cells)} |")
    versions = sorted({version(solver) for solver in options.solvers})
    lines = [
        "# CPU seconds of an ask",
        "",
        f"Made by `{shlex.join(['benches/peers/run', 'ask_speed.py', *sys.argv[1:]])}` on {datetime.date.today()}, "
        f"{os.cpu_count()} cores ({platform.machine()}), one thread; {', '.join(versions)}. While it ran, {min(loads):.0f} to "
        f"{max(loads):.0f} processes wanted a core.",
        "",
        "Every solver was told the same n uniform random points of a quadratic in D variables, with noise 0.15. Then it asked for "
        "a point and was told its value: CPU seconds of both together. There were n/10 asks, because boscage learns from all "
        f"points at once when there are a tenth more of them; or fewer where {options.limit:g} CPU seconds were over before.",
        "",
        "| D | n | solver | mean | median | longest | telling n points | asks |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
