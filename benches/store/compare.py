#!/usr/bin/env python3
"""Compares how fast boscage and Optuna give out and take back trials, with the same stores in the same run.

    target/optuna/bin/python benches/store/compare.py               a few minutes
    target/optuna/bin/python benches/store/compare.py --rounds 5    more rounds, for a noisy machine

Run it with a Python that has Optuna and psycopg2: `scripts/test --prerequisites` makes one in target/optuna. It builds boscage
and starts a PostgreSQL server of its own (scripts/postgres). Each round is a new, empty study for everybody, in turn; the
objective is a sum of squares, which takes no time. "boscage tune" starts a program (echo) for each trial, the others call a
function. The table that is printed is also written to experiments/store/results.md.

It measures and does not judge.
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
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOSCAGE = ROOT / "target" / "release" / "boscage"
WORKER = ROOT / "target" / "release" / "examples" / "store_speed"


def optuna_worker(url, sampler, dimension, trials):
    """What store_speed does, with Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = {"TPE": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    # Its default for a busy SQLite file, 5 s, is too short for four workers on a busy machine.
    options = {"connect_args": {"timeout": 600}} if url.startswith("sqlite") else {}
    storage = optuna.storages.RDBStorage(url, engine_kwargs=options)
    study = optuna.create_study(study_name="speed", storage=storage, sampler=samplers[sampler](), load_if_exists=True)
    print("ready", flush=True)
    sys.stdin.readline()
    asking = telling = 0.0
    for _ in range(trials):
        begin = time.perf_counter()
        trial = study.ask()
        values = [trial.suggest_float(f"x{d}", 0.0, 1.0) for d in range(dimension)]
        asking += time.perf_counter() - begin
        value = sum((x - 0.3) ** 2 for x in values)
        begin = time.perf_counter()
        study.tell(trial, value)
        telling += time.perf_counter() - begin
    print(json.dumps({"ask": asking, "tell": telling}))


def together(commands):
    """Starts workers, lets them begin at once, and gives the seconds until the last has ended and what they print."""
    workers = []
    for command in commands:
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        workers.append(worker)
        # One after the other: the first makes the study.
        if worker.stdout.readline().strip() != "ready":
            sys.exit(f"{shlex.join(map(str, command))} did not start")
    begin = time.perf_counter()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    answers = [worker.communicate()[0] for worker in workers]
    seconds = time.perf_counter() - begin
    for worker in workers:
        if worker.returncode != 0:
            sys.exit(f"a worker has failed: {shlex.join(map(str, worker.args))}")
    return seconds, [json.loads(answer) for answer in answers]


class Stores:
    """Empty stores, one after the other."""

    def __init__(self, folder, server):
        self.folder, self.server, self.count = folder, server, 0

    def new(self, kind):
        """An address for boscage and one for SQLAlchemy."""
        self.count += 1
        if kind == "SQLite":
            path = self.folder / f"{self.count}.db"
            return str(path), f"sqlite:///{path}"
        import psycopg2

        connection = psycopg2.connect(self.server)
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE speed_{self.count}")
        connection.close()
        address = f"{self.server.rsplit('/', 1)[0]}/speed_{self.count}"
        return address, address.replace("postgresql://", "postgresql+psycopg2://")


def tune(address, method, workers, dimension, trials, folder):
    names = [f"x{d}" for d in range(dimension)]
    parameters = "\n".join(f'{name} = {{ type = "real", low = 0, high = 1 }}' for name in names)
    command = ", ".join(f'"{{{name}}}"' for name in names)
    study = folder / "speed.toml"
    study.write_text(f'method = "{method}"\n[parameters]\n{parameters}\n[program]\ncommand = ["echo", {command}]\n')
    arguments = [BOSCAGE, "tune", study, "--storage", address, "--jobs", workers, "--trials", trials, "--no-report", "--quiet"]
    begin = time.perf_counter()
    subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin, []


def measure(who, kind, stores, workers, options):
    address, url = stores.new(kind)
    each = options.trials // workers
    tool, method = who
    if tool == "boscage tune":
        return tune(address, method, workers, options.dimension, options.trials, stores.folder)
    if tool == "boscage":
        return together([[WORKER, address, method, str(options.dimension), str(each)]] * workers)
    return together([[sys.executable, __file__, "--worker", url, method, str(options.dimension), str(each)]] * workers)


CONTENDERS = [
    ("boscage", "random"),
    ("Optuna", "random"),
    ("boscage tune", "random"),
    ("boscage", "tree"),
    ("Optuna", "TPE"),
    ("boscage tune", "tree"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=200, help="trials of a study, by all workers together")
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        url, sampler, dimension, trials = options.worker
        optuna_worker(url, sampler, int(dimension), int(trials))
        return

    import optuna

    build = ["cargo", "build", "--release", "--locked", "-p", "boscage-cli", "-p", "boscage-study", "--bins", "--examples"]
    subprocess.run(build, cwd=ROOT, check=True)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # Whoever runs the server has to reach its folder.
        folder.chmod(0o755)
        server = folder / "postgres"
        postgres = str(ROOT / "scripts" / "postgres")
        address = subprocess.run([postgres, "start", server], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        try:
            stores = Stores(folder, address)
            for round_number in range(options.rounds):
                for kind in ("SQLite", "PostgreSQL"):
                    for workers in (1, 4):
                        for who in CONTENDERS:
                            seconds, answers = measure(who, kind, stores, workers, options)
                            asks = [1000 * answer["ask"] / (options.trials // workers) for answer in answers]
                            tells = [1000 * answer["tell"] / (options.trials // workers) for answer in answers]
                            found.setdefault((kind, workers, who), []).append((seconds, asks, tells))
                            print(f"round {round_number + 1}: {kind}, {workers}, {who}: {seconds:.2f} s", file=sys.stderr)
        finally:
            subprocess.run([postgres, "stop", server], check=True)

    lines = [
        "# Trials per second, boscage and Optuna on the same stores",
        "",
        f"Made by `python {shlex.join(['benches/store/compare.py', *sys.argv[1:]])}` on {datetime.date.today()}, "
        f"{os.cpu_count()} cores ({platform.machine()}), Optuna {optuna.__version__}: median of {options.rounds} rounds of "
        f"{options.trials} trials with {options.dimension} real parameters each, from an empty study. An ask of Optuna includes "
        "`suggest_float` for each parameter. `boscage tune` starts a program for each trial, and its time includes its own "
        "start and its summary.",
        "",
        "| store | workers | who | method | trials per second | ms per ask | ms per tell |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (kind, workers, (tool, method)), rounds in found.items():
        rate = options.trials / statistics.median(seconds for seconds, _, _ in rounds)
        ask = [one for _, asks, _ in rounds for one in asks]
        tell = [one for _, _, tells in rounds for one in tells]
        cells = [f"{statistics.median(times):.1f}" if times else "" for times in (ask, tell)]
        lines.append(f"| {kind} | {workers} | {tool} | {method} | {rate:.0f} | {cells[0]} | {cells[1]} |")
    text = "\n".join(lines) + "\n"
    print(text)
    out = ROOT / "experiments" / "store"
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.md").write_text(text)


main()
