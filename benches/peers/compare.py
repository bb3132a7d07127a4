"""Compares boscage with other optimizers: problems × solvers × seeds, one process and one thread for each.

    benches/peers/run compare.py run --suite open --seeds 3 --jobs 2
    benches/peers/run compare.py run --problems star25-continuous --solvers boscage,optuna-tpe --budget 100
    benches/peers/run compare.py keep results/peers --kept experiments/peers/runs.csv
    benches/peers/run compare.py table --kept experiments/peers/runs.csv --out experiments/peers

A problem is a function of `boscage bench problems`; its seed draws or moves it. For each problem and seed all solvers are told the
same 10 uniform random points first, and get the same noise at the same evaluation. Every run is a file of JSON lines in the results
folder: what it is, then one line an evaluation with the value (without noise), what the solver saw, and the CPU seconds of ask and
tell, then how it ended. A run that is there is not run again, unless it broke off, failed, or was made with another version.

`keep` adds what the runs of a folder came to, the best value after every 10 evaluations, to a table that is small enough to be
committed: some solvers take minutes a run, and `run --kept` and `table --kept` take such runs for done.

`table` prints medians over the seeds and writes them, with figures, as Markdown. t counts all evaluations, the first 10 too.

It measures and does not judge.
"""

import argparse
import collections
import concurrent.futures
import csv
import datetime
import json
import os
import pathlib
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time

from problem import ROOT, SUITES, Problem
from solvers import SOLVERS, Unsupported, make, solver_class, version

FIRST_POINTS = 10
#: What tables show, as far as runs go.
TIMES = [50, 100, 200, 300]
#: What is kept of a run besides its best values: texts, and numbers of which one may be missing.
KEPT_TEXTS = ["problem", "solver", "version", "date", "ended"]
KEPT_NUMBERS = ["seed", "dimension", "noise_std", "optimum", "budget", "max_cpu_seconds", "cpu", "memory_mb"]
#: Evaluations from one kept best value to the next.
KEPT_EVERY = 10
#: Of figures.
COLOURS = {
    "boscage": "blue",
    "boscage-tree-paper": "cyan",
    "nevergrad": "orange",
    "optuna-tpe": "red",
    "optuna-gp": "brown",
    "cma": "green",
    "turbo": "purple",
    "botorch": "olive",
    "botorch-fast": "pink",
    "random": "gray",
}
LEFT_OUT = "left out: "
OUT_OF_TIME = "out of time"


class OutOfTime(BaseException):
    """A run has used up its CPU seconds. Not an Exception: libraries catch those."""


def run_file(folder, problem, solver, seed):
    return pathlib.Path(folder) / problem / f"{solver}-{seed}.jsonl"


def read(path):
    """What a run is, its evaluations and how it ended; nothing if it is not there or broke off."""
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        return None
    if len(lines) < 2 or "solver" not in lines[0] or "ended" not in lines[-1]:
        return None
    return lines[0], lines[1:-1], lines[-1]


def is_done(path, options, solver):
    found = read(path)
    if found is None:
        return False
    head, _, last = found
    return serves(head, last["ended"], options, solver)


def serves(head, ended, options, solver):
    """Whether a run that is there is the one that is wanted. A longer one is not: some solvers go by the budget."""
    if head["budget"] != options.budget or head["version"] != version(solver):
        return False
    if ended == OUT_OF_TIME:
        return options.max_cpu_seconds is not None and head["max_cpu_seconds"] >= options.max_cpu_seconds
    return ended == "budget" or ended.startswith(LEFT_OUT)


def one(problem_name, solver_name, seed, options):
    """One run, in this process."""
    path = run_file(options.results, problem_name, solver_name, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    problem = Problem(problem_name, seed)
    head = {
        "problem": problem_name,
        "solver": solver_name,
        "seed": seed,
        "budget": options.budget,
        "max_cpu_seconds": options.max_cpu_seconds,
        "version": version(solver_name),
        "dimension": len(problem.parameters),
        "noise_std": problem.noise_std,
        "optimum": problem.optimum,
        "first_points": FIRST_POINTS,
        "date": str(datetime.date.today()),
    }

    def out_of_time(*_):
        raise OutOfTime

    signal.signal(signal.SIGPROF, out_of_time)
    with part.open("w") as out:

        def write(line):
            out.write(json.dumps(line) + "\n")
            out.flush()

        write(head)
        if options.max_cpu_seconds is not None:
            signal.setitimer(signal.ITIMER_PROF, options.max_cpu_seconds)
        start, started = time.process_time(), 0.0
        try:
            solver = make(solver_name, problem.parameters, seed, options.budget)
            started = time.process_time() - start
            points, noise = problem.first_points(FIRST_POINTS), problem.noise(options.budget)
            for number in range(options.budget):
                begin = time.process_time()
                values = points[number] if number < len(points) else solver.ask()
                asked = time.process_time()
                value = problem.value(values)
                seen = value + noise[number]
                begin_tell = time.process_time()
                solver.tell(values, seen)
                told = time.process_time()
                cpu = {"ask": round(asked - begin, 6), "tell": round(told - begin_tell, 6)}
                write({"t": number + 1, "value": value, "seen": seen, **cpu})
            ended = "budget"
        except Unsupported as reason:
            ended = f"{LEFT_OUT}{reason}"
        except OutOfTime:
            ended = OUT_OF_TIME
        except Exception as error:  # Whatever a library throws ends this run only.
            ended = f"failed: {type(error).__name__}: {error}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        cpu = round(time.process_time() - start, 3)
        write({"ended": ended, "cpu": cpu, "start": round(started, 3), "memory_mb": memory})
    part.replace(path)
    problem.close()
    print(ended)


def run(options):
    problems = options.problems or SUITES[options.suite]
    for solver in options.solvers:
        solver_class(solver)
    # Seeds first: half of a comparison is a comparison with half of the seeds.
    wanted = [(p, s, seed) for seed in options.seeds for p in problems for s in options.solvers]
    kept = {
        (run.problem, run.solver, run.seed)
        for run in kept_runs(options.kept)
        if run.solver in options.solvers and serves(run.head, run.ended, options, run.solver)
    }
    todo = [
        which for which in wanted if which not in kept and not is_done(run_file(options.results, *which), options, which[1])
    ]
    print(f"{len(wanted)} runs, of which {len(wanted) - len(todo)} are there", file=sys.stderr)
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON")}
    common = ["--results", str(options.results), "--budget", str(options.budget)]
    if options.max_cpu_seconds is not None:
        common += ["--max-cpu-seconds", str(options.max_cpu_seconds)]

    def start(which):
        problem, solver, seed = which
        arguments = ["one", "--problems", problem, "--solvers", solver, "--seeds", f"{seed}-{seed}", *common]
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, *arguments], env=environment, capture_output=True, text=True
        )
        words = (done.stdout if done.returncode == 0 else f"broke off: {done.stderr[-500:]}").strip().splitlines() or [""]
        return f"{problem}, {solver}, seed {seed}: {words[-1]} ({time.monotonic() - begin:.0f} s)", done.returncode

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, (line, code) in enumerate(pool.map(start, todo), 1):
            failures += code != 0 or "failed: " in line
            print(f"{number}/{len(todo)} {line}", file=sys.stderr, flush=True)
    return 1 if failures else 0


# ------------------------------------------------------------------------------------------------------------------ the table


class Run:
    """What a table needs of a run: what it is, its best values, and the mean CPU seconds of the last 10 asks and tells up to t."""

    def __init__(self, head, best, seconds, last):
        self.problem, self.solver, self.seed, self.head, self.ended = (
            head["problem"],
            head["solver"],
            head["seed"],
            head,
            last["ended"],
        )
        self.cpu, self.memory = last["cpu"], last["memory_mb"]
        self.best, self.seconds = best, seconds

    @classmethod
    def of_lines(cls, head, evaluations, last):
        best, lowest = [], float("inf")
        for line in evaluations:
            lowest = min(lowest, line["value"])
            best.append(lowest)
        every = [line["ask"] + line["tell"] for line in evaluations]
        chosen = {t: every[max(head["first_points"], t - 10) : t] for t in [*TIMES, len(best)] if t <= len(best)}
        return cls(head, best, {t: statistics.mean(of) for t, of in chosen.items() if of}, last)

    @classmethod
    def of_row(cls, row):
        numbers = {name: float(row[name]) if row[name] else None for name in KEPT_NUMBERS}
        for name in ("seed", "dimension", "budget", "memory_mb"):
            numbers[name] = int(numbers[name])
        head = {"first_points": FIRST_POINTS} | {name: row[name] for name in KEPT_TEXTS} | numbers
        # Between two kept values the best is that of the first: a figure has steps there, and begins with the first.
        best, lowest = [], float("nan")
        for value in row["best"].split():
            best += [lowest] * (KEPT_EVERY - 1) + [float(value)]
            lowest = best[-1]
        pairs = (pair.split(":") for pair in row["seconds"].split())
        return cls(head, best, {int(t): float(seconds) for t, seconds in pairs}, head)

    def row(self):
        facts = self.head | {"ended": self.ended, "cpu": self.cpu, "memory_mb": self.memory}
        row = {name: facts[name] for name in [*KEPT_TEXTS, *KEPT_NUMBERS]}
        row["best"] = " ".join(f"{value:.7g}" for value in self.best[KEPT_EVERY - 1 :: KEPT_EVERY])
        known = ((t, self.seconds_at(t)) for t in TIMES)
        row["seconds"] = " ".join(f"{t}:{seconds:.4g}" for t, seconds in known if seconds is not None)
        return row

    def seconds_at(self, t):
        return self.seconds.get(t)

    def at(self, t):
        """The best value after t evaluations, if there were so many."""
        return self.best[t - 1] if len(self.best) >= t else None

    def regret(self, t):
        value, optimum = self.at(t), self.head["optimum"]
        return None if value is None or optimum is None else value - optimum


def all_runs(folder):
    runs = []
    for path in sorted(pathlib.Path(folder).glob("*/*.jsonl")):
        found = read(path)
        if found is not None and not found[2]["ended"].startswith((LEFT_OUT, "failed: ")):
            runs.append(Run.of_lines(*found))
        elif found is None or found[2]["ended"].startswith("failed: "):
            print(f"not counted: {path} ({found[2]['ended'] if found else 'it broke off'})", file=sys.stderr)
    return runs


def kept_runs(path):
    """The runs of a table that `keep` has written; none without one."""
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return [Run.of_row(row) for row in csv.DictReader(file)]


def keep(options):
    """Adds runs to a table, each in the place of an older one of the same problem, solver and seed."""
    if options.kept is None:
        raise SystemExit("say with --kept which table they are to be added to")
    runs = [run for run in all_runs(options.results) if not options.solvers or run.solver in options.solvers]
    runs = [run for run in runs if not options.problems or run.problem in options.problems]
    of = {(run.problem, run.solver, run.seed): run.row() for run in [*kept_runs(options.kept), *runs]}
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    part = options.kept.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*KEPT_TEXTS, *KEPT_NUMBERS, "best", "seconds"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(of[which] for which in sorted(of))
    part.replace(options.kept)
    print(f"{len(of)} runs are in {options.kept}, {len(runs)} of them from {options.results}")


def number(value):
    if value is None:
        return "–"
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"
    return text.replace("-", "−")


def medians(runs, of):
    """The medians at all times; none where a run has not come so far."""
    found = []
    for t in TIMES:
        values = [of(run, t) for run in runs]
        found.append(None if not values or None in values else statistics.median(values))
    return found


def ranks(runs, t):
    """The rank of each solver in each (problem, seed) where it ran. Who ended early stays where it was."""
    groups = collections.defaultdict(dict)
    for run in runs:
        if run.best:
            groups[run.problem, run.seed][run.solver] = run.best[min(t, len(run.best)) - 1]
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for (problem, _), values in groups.items():
        for solver, value in values.items():
            better = sum(other < value for other in values.values())
            same = sum(other == value for other in values.values())
            found[solver][problem].append(better + (same + 1) / 2)
    return found


def mean_rank(of_problems):
    return statistics.mean(statistics.mean(ranks) for ranks in of_problems.values()) if of_problems else None


def tables(runs, folder):
    problems = [name for names in SUITES.values() for name in names]
    problems = [p for p in problems if any(run.problem == p for run in runs)]
    problems += sorted({run.problem for run in runs} - set(problems))
    times = " / ".join(map(str, TIMES))
    versions = collections.defaultdict(set)
    for run in runs:
        versions[run.solver].add(run.head["version"])
    packages = sorted({version.split("+")[0] for of in versions.values() for version in of})
    mixed = sorted(solver for solver, of in versions.items() if len(of) > 1)
    dates = sorted({run.head["date"] for run in runs})
    limits = sorted({run.head["max_cpu_seconds"] for run in runs if run.ended == OUT_OF_TIME})
    lines = [
        "# boscage and other optimizers",
        "",
        f"Made by `benches/peers/run compare.py` on {dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}, "
        f"{os.cpu_count()} cores ({platform.machine()}), one thread a run; {', '.join(packages)}.",
        "",
        f"All minimise, from the same {FIRST_POINTS} random points and with the same noise for each problem and seed. Medians over "
        f"the seeds after t = {times} evaluations, the first {FIRST_POINTS} counted: the best value so far, without noise, and its "
        "distance from the optimum (regret). CPU seconds are those of an ask and a tell, mean of the 10 up to t, median over the "
        "seeds. A dash: not all runs have come so far.",
    ]
    if limits:
        shown = " or ".join(f"{limit:g}" for limit in limits)
        lines += ["", f"Runs that used more than {shown} CPU seconds were ended."]
    if mixed:
        lines += ["", f"**More than one version** was measured of {', '.join(mixed)}: run these again."]

    lines += ["", "## Ranks", ""]
    lines += [
        "Mean rank among all solvers of a problem and seed (1 is best), over the problems; a solver that ended early is ranked by "
        "what it had then. `runs` are those that came to the end; `problems` those that it can do at all.",
        "",
        f"| solver | mean rank at {times} | runs to the end | problems |",
        "| --- | --- | --- | --- |",
    ]
    of_times = {t: ranks(runs, t) for t in TIMES}
    by_rank = sorted({run.solver for run in runs}, key=lambda s: mean_rank(of_times[TIMES[-1]][s]) or 0)
    for solver in by_rank:
        own = [run for run in runs if run.solver == solver]
        shown = " / ".join(number(mean_rank(of_times[t][solver])) for t in TIMES)
        ended = sum(run.ended == "budget" for run in own)
        lines.append(f"| {solver} | {shown} | {ended} of {len(own)} | {len({run.problem for run in own})} |")
    lines += pairs(runs, times)

    for problem in problems:
        of_problem = [run for run in runs if run.problem == problem]
        head = of_problem[0].head
        optima = sorted({run.head["optimum"] for run in of_problem if run.head["optimum"] is not None})
        optimum = "unknown" if not optima else " to ".join(number(o) for o in dict.fromkeys((optima[0], optima[-1])))
        lines += [
            "",
            f"## {problem}",
            "",
            f"{head['dimension']} parameters, noise {head['noise_std']:g}, optimum {optimum}.",
            "",
            f"| solver | seeds | best value at {times} | regret at {times} | CPU seconds at {times} | CPU s a run | ended early |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        rows = []
        for solver in by_rank:
            own = [run for run in of_problem if run.solver == solver]
            if not own:
                continue
            values = medians(own, Run.at)
            regrets = medians(own, Run.regret) if optima else []
            early = [f"t = {len(run.best)}" for run in own if run.ended == OUT_OF_TIME]
            cells = [
                solver,
                str(len(own)),
                " / ".join(map(number, values)),
                " / ".join(map(number, regrets)),
                " / ".join(map(seconds, medians(own, Run.seconds_at))),
                f"{statistics.median(run.cpu for run in own):.1f}",
                ", ".join(early),
            ]
            # Optima may differ by seed, so that the median of the regret need not be in the order of that of the value.
            reached = [value for value in regrets or values if value is not None]
            rows.append((-len(reached), reached[-1] if reached else 0.0, f"| {' | '.join(cells)} |"))
        lines += [row for *_, row in sorted(rows)]
    if folder is not None:
        lines += ["", "![Regret of all solvers, one panel for each problem](regret.png)"]
    return "\n".join(lines) + "\n", problems, by_rank


def pairs(runs, times):
    """How often boscage's default is ahead of each other solver, where both have come so far."""
    of = {(run.problem, run.seed, run.solver): run for run in runs}
    rivals = sorted({run.solver for run in runs} - {"boscage"})
    if not rivals or not any(run.solver == "boscage" for run in runs):
        return []
    lines = [
        "",
        f"Runs in which `boscage` has the better value at {times}, of those in which both have come so far:",
        "",
        f"| against | ahead at {times} |",
        "| --- | --- |",
    ]
    for rival in rivals:
        cells = []
        for t in TIMES:
            ahead = total = 0
            for (problem, seed, solver), run in of.items():
                own = of.get((problem, seed, "boscage"))
                if solver != rival or own is None or own.at(t) is None or run.at(t) is None:
                    continue
                ahead, total = ahead + (own.at(t) < run.at(t)), total + 1
            cells.append(f"{ahead} of {total}" if total else "–")
        lines.append(f"| {rival} | {' / '.join(cells)} |")
    return lines


def seconds(value):
    if value is None:
        return "–"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def figure(runs, problems, solvers, path):
    """Median regret over the evaluations, one panel for each problem; of boscage's default also the lowest and highest."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(3, len(problems))
    rows = -(-len(problems) // columns)
    height = 3.4 * rows + 0.8
    drawing, panels = pyplot.subplots(rows, columns, figsize=(5 * columns, height), squeeze=False)
    # The same colour for the same solver in every figure; what has none of its own gets a faint one.
    others = [solver for solver in [*SOLVERS, *solvers] if solver not in COLOURS]
    faint = {solver: pyplot.get_cmap("Pastel1")(place % 9) for place, solver in enumerate(dict.fromkeys(others))}
    colours = {**faint, **{solver: f"tab:{colour}" for solver, colour in COLOURS.items()}}
    handles = {}
    for panel, problem in zip(panels.flat, problems):
        for solver in solvers:
            colour = colours[solver]
            own = [run for run in runs if (run.problem, run.solver) == (problem, solver) and run.best]
            if not own:
                continue
            shortest = min(len(run.best) for run in own)
            is_known = all(run.head["optimum"] is not None for run in own)
            curves = [[best - (run.head["optimum"] if is_known else 0.0) for best in run.best[:shortest]] for run in own]
            t = range(1, shortest + 1)
            width = 2.4 if solver == "boscage" else 1.2
            (line,) = panel.plot(t, [statistics.median(at) for at in zip(*curves)], color=colour, linewidth=width, label=solver)
            if solver == "boscage":
                low, high = zip(*((min(at), max(at)) for at in zip(*curves)))
                panel.fill_between(t, low, high, color=colour, alpha=0.15, linewidth=0)
            handles.setdefault(solver, line)
        panel.set_title(problem, fontsize=10)
        panel.set_xlabel("evaluations", fontsize=8)
        panel.set_ylabel("regret" if is_known else "best value", fontsize=8)
        if is_known:
            panel.set_yscale("log")
        panel.grid(alpha=0.3)
    for panel in list(panels.flat)[len(problems) :]:
        panel.axis("off")
    drawing.legend(handles.values(), handles.keys(), loc="lower center", ncols=min(6, len(handles)), fontsize=9, frameon=False)
    drawing.tight_layout(rect=(0, 0.6 / height, 1, 1))
    drawing.savefig(path, dpi=110)


def table(options):
    of = {(run.problem, run.solver, run.seed): run for run in [*kept_runs(options.kept), *all_runs(options.results)]}
    wanted = options.problems or (SUITES[options.suite] if options.suite else [])
    runs = [run for run in of.values() if not options.solvers or run.solver in options.solvers]
    runs = [run for run in runs if not wanted or run.problem in wanted]
    runs = [run for run in runs if not options.seeds or run.seed in options.seeds]
    if not runs:
        raise SystemExit(f"there are no complete runs in {options.results}{f' and {options.kept}' if options.kept else ''}")
    # With a small budget, its end.
    longest = max(run.head["budget"] for run in runs)
    TIMES[:] = [t for t in TIMES if t <= longest] or [longest]
    text, problems, solvers = tables(runs, options.out)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "README.md").write_text(text)
        figure(runs, problems, solvers, options.out / "regret.png")


def names(text):
    return [name for name in text.split(",") if name]


def seeds(text):
    """`5` is 0, 1, 2, 3 and 4; `5-7` is 5, 6 and 7."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else list(range(int(first)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    help_texts = {
        "run": "run what is missing",
        "one": "one run, in this process",
        "keep": "add what runs came to to a small table",
        "table": "medians, ranks and figures",
    }
    for command, help_text in help_texts.items():
        part = commands.add_parser(command, help=help_text)
        part.add_argument("--problems", type=names, help="names with commas between them; all of the suite if left out")
        part.add_argument("--solvers", type=names, help=f"names with commas between them, of {', '.join(SOLVERS)}; all if left out")
        if command != "one":
            part.add_argument("--kept", type=pathlib.Path, help="a table of runs that `keep` has written")
        if command in ("keep", "table"):
            part.add_argument("results", nargs="?", type=pathlib.Path, default=ROOT / "results" / "peers")
        if command == "table":
            part.add_argument("--suite", choices=SUITES, help="only the problems of this suite")
            part.add_argument("--seeds", type=seeds, help="only these: how many, or from-to")
            part.add_argument("--out", type=pathlib.Path, help="folder for README.md and regret.png")
        if command in ("keep", "table"):
            continue
        part.add_argument("--results", type=pathlib.Path, default=ROOT / "results" / "peers", help="default: results/peers")
        part.add_argument("--suite", choices=SUITES, default="open", help="default open; held-out is for a last check only")
        part.add_argument("--seeds", type=seeds, default=seeds("3"), help="how many, or from-to; default 3")
        part.add_argument("--budget", type=int, default=300, help="evaluations of a run, the first 10 counted; default 300")
        part.add_argument("--max-cpu-seconds", type=float, help="of a run; it is ended then, and noted so")
        part.add_argument("--jobs", type=int, default=1, help="runs at a time; default 1")
    options = parser.parse_args()
    if options.command in ("keep", "table"):
        return {"keep": keep, "table": table}[options.command](options)
    if options.budget <= FIRST_POINTS:
        parser.error(f"--budget must be above {FIRST_POINTS}")
    if options.command == "one":
        return one(options.problems[0], options.solvers[0], options.seeds[0], options)
    options.solvers = options.solvers or list(SOLVERS)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
