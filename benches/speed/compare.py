#!/usr/bin/env python3
"""Compares boscage's speed with SciPy's dense linear algebra, against the project's targets.

    python3 benches/speed/compare.py                   measure everything; a few minutes
    python3 benches/speed/compare.py --rounds 15       more rounds, for a noisy machine
    python3 benches/speed/compare.py --clock cpu       CPU time, for a machine that others use too
    python3 benches/speed/compare.py --only ask        only the rows whose quantity contains "ask"

Builds and starts the server of boscage (crates/boscage/examples/speed_server.rs) and the one of
SciPy (scipy_speed.py, in the Python that runs this script, one BLAS thread), and asks them in
turn, so that both see the same machine. The Markdown table that is printed and the numbers behind
it are also written to experiments/speed/results.md and results.json.

It measures and does not judge: a missed target is marked, and the exit code is 0.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCIPY_SERVER = ROOT / "benches" / "speed" / "scipy_speed.py"

# (what, quantity of ours, multiple of SciPy's, quantity of SciPy's, largest ratio or None)
ROWS = [
    ("ρ, one edge moved, n = 1000", "rho_one_edge/1000/250", 1, "cholesky/1000", 1.05),
    ("ρ, one edge moved, n = 500", "rho_one_edge/500/250", 1, "cholesky/500", None),
    ("a zoom level, n = 1000", "tabulate/1000/250/4", 1, "solve_triangular/1000", 1.0),
    ("a zoom level, n = 500", "tabulate/500/250/4", 1, "solve_triangular/500", None),
    ("maximising UCB, 1 thread", "ask/1000/250", 4, "solve_triangular/1000", 1.1),
    ("maximising UCB, 2 threads", "ask/1000/250/2threads", 4, "solve_triangular/1000", 0.55),
    ("tree learning from a tree", "learn/500/250/250", 250, "cholesky/500", 1.1),
    ("tree learning from no edges", "learn_growth/500/250/250", 250, "cholesky/500", 1.1),
    ("ρ and its gradient", "gradient/1000/250", 1, "inverse_cho_solve/1000", 3.0),
    ("ρ and its gradient", "gradient/1000/250", 1, "inverse_inv/1000", 3.0),
    ("ρ and its gradient", "gradient/1000/250", 1, "inverse_dpotri/1000", 3.0),
    ("the gradient alone", "gradient_only/1000/250", 1, "inverse_dpotri/1000", None),
    ("conditioning", "condition/1000/250", 1, "cholesky/1000", None),
]

# Makes SciPy's server count the CPU time of its thread.
SCIPY_CPU_TIME = (
    "import runpy, sys, time; time.perf_counter = time.thread_time; "
    "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Server:
    """A program that answers each line with a line of JSON."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            sys.exit(f"a server ended without an answer to {request!r}")
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(f"{request}: {answer['error']}")
        return answer

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def build():
    """Builds our server and returns the path of the program."""
    command = ["cargo", "build", "--release", "-p", "boscage", "--example", "speed_server",
               "--message-format", "json-render-diagnostics"]
    try:
        built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit("cargo is missing; install Rust from https://rustup.rs")
    if built.returncode != 0:
        sys.exit("the server could not be built")
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["target"]["name"] == "speed_server":
            return message["executable"]
    sys.exit("cargo did not say where the server is")


def output_of(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def commit():
    """The commit that was measured, if this is a checkout."""
    revision = output_of("git", "rev-parse", "--short", "HEAD")
    if revision is None:
        return "no commit"
    changed = output_of("git", "status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock")
    return revision + " with changes" * bool(changed)


def command(arguments):
    """The command, without where its results went."""
    words = ["python3", "benches/speed/compare.py", "--rounds", str(arguments.rounds),
             "--repeats", str(arguments.repeats), "--clock", arguments.clock]
    if arguments.only is not None:
        words += ["--only", arguments.only]
    return shlex.join(words)


def measure(rows, ours, scipy, rounds, repeats):
    """{quantity: [seconds of each round]}, the fastest repeat of each, and the load at each round."""
    seconds, load = {}, []
    start = time.monotonic()
    for number in range(rounds):
        load.append(os.getloadavg()[0])
        asked = set()
        for _, quantity, _, reference, _ in rows:
            requests = [(scipy, reference), (ours, quantity)]
            if number % 2:
                requests.reverse()
            for server, name in requests:
                # A reference is measured beside every row that it belongs to, a quantity of ours once a round.
                key = (quantity, name) if server is scipy else name
                if key in asked:
                    continue
                asked.add(key)
                seconds.setdefault(key, []).append(server.ask(f"{name} {repeats}")["min_seconds"])
        elapsed = time.monotonic() - start
        print(f"round {number + 1} of {rounds}: {elapsed:.0f} s, load {load[-1]:.1f}", file=sys.stderr)
    return seconds, load


def compare(rows, seconds):
    results = []
    for what, quantity, multiple, reference, limit in rows:
        ours = seconds[quantity]
        theirs = [multiple * value for value in seconds[quantity, reference]]
        ratios = sorted(a / b for a, b in zip(ours, theirs))
        ratio = min(ours) / min(theirs)
        results.append({
            "what": what,
            "quantity": quantity,
            "reference": f"{multiple} × {reference}" if multiple > 1 else reference,
            "seconds": min(ours),
            "reference_seconds": min(theirs),
            "ratio": ratio,
            "ratio_median": statistics.median(ratios),
            "ratio_lowest": ratios[0],
            "ratio_highest": ratios[-1],
            "target": limit,
            # Two threads have to be below the target, the others not above.
            "met": None if limit is None else bool(ratio < limit if "threads" in quantity else ratio <= limit),
            "seconds_of_rounds": ours,
            "reference_seconds_of_rounds": theirs,
        })
    return results


def milliseconds(value):
    return f"{1000 * value:.3g}" if value < 1 else f"{1000 * value:.0f}"


def table(results):
    lines = [
        "| what | quantity | ms | SciPy's | ms | ratio | rounds: median (lowest to highest) | target | |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in results:
        target = "" if r["target"] is None else ("< " if "threads" in r["quantity"] else "≤ ") + f"{r['target']:g}"
        verdict = {None: "", True: "met", False: "**missed**"}[r["met"]]
        lines.append(
            f"| {r['what']} | `{r['quantity']}` | {milliseconds(r['seconds'])} | {r['reference']} "
            f"| {milliseconds(r['reference_seconds'])} | {r['ratio']:.2f} | {r['ratio_median']:.2f} "
            f"({r['ratio_lowest']:.2f} to {r['ratio_highest']:.2f}) | {target} | {verdict} |")
    return "\n".join(lines)


def report(document):
    m = document["machine"]
    v = document["versions"]
    clock = {
        "wall": "wall clock",
        "cpu": "CPU time of the thread (quantities of several threads: wall clock, which the other users of "
               "the machine lengthen)",
    }[document["clock"]]
    return f"""# Speed against SciPy

{document['date']}, `{document['command']}`

- machine: {m['cpu']}, {m['cores']} cores, {m['vector_instructions']}; {m['system']}; load {m['load_lowest']:.1f} to \
{m['load_highest']:.1f} while measuring
- ours: boscage {v['boscage']} ({v['commit']}), {v['rustc']}
- theirs: NumPy {v['numpy']}, SciPy {v['scipy']}, {', '.join(v['blas'])}, Python {v['python']}, one thread
- {document['rounds']} rounds of {document['repeats']} repeats each, in turn; {clock}

A ratio is our fastest repeat over SciPy's fastest; beside it the ratios within the rounds.
Below 1 we are faster. What is measured: `benches/speed/README.md`.

{table(document['results'])}
"""


def main():
    parser = argparse.ArgumentParser(description="Compares boscage's speed with SciPy's; the head of the file says more.")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (default 7)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats in each round (default 3)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="what to count (default wall)")
    parser.add_argument("--only", metavar="TEXT", help="only quantities that contain TEXT")
    parser.add_argument("--output", metavar="DIRECTORY", type=pathlib.Path, default=ROOT / "experiments" / "speed",
                        help="where results.md and results.json go (default experiments/speed)")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.repeats < 1:
        parser.error("rounds and repeats must be at least 1")
    rows = [row for row in ROWS if arguments.only is None or arguments.only in row[1]]
    if not rows:
        parser.error(f"no quantity contains {arguments.only!r}")

    program = build()
    cpu = arguments.clock == "cpu"
    ours = Server([program] + ["--cpu-time"] * cpu)
    scipy = Server([sys.executable] + ["-c", SCIPY_CPU_TIME] * cpu + [str(SCIPY_SERVER), "--serve"])
    our_info, scipy_info = ours.ask("info"), scipy.ask("info")
    seconds, load = measure(rows, ours, scipy, arguments.rounds, arguments.repeats)
    ours.end()
    scipy.end()

    document = {
        "date": datetime.date.today().isoformat(),
        "command": command(arguments),
        "machine": {
            "cpu": scipy_info["cpu"],
            "cores": our_info["cores"],
            "vector_instructions": our_info["vector_instructions"],
            "system": f"{platform.system()} {platform.machine()}",
            "load_lowest": min(load),
            "load_highest": max(load),
        },
        "versions": {
            "boscage": our_info["boscage"],
            "commit": commit(),
            "rustc": output_of("rustc", "--version") or "unknown rustc",
            **{key: scipy_info[key] for key in ("python", "numpy", "scipy", "blas")},
        },
        "clock": arguments.clock,
        "rounds": arguments.rounds,
        "repeats": arguments.repeats,
        "results": compare(rows, seconds),
    }
    text = report(document)
    print(text)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "results.md").write_text(text, encoding="utf-8")
    numbers = json.dumps(document, indent=2, ensure_ascii=False)
    (arguments.output / "results.json").write_text(numbers + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
