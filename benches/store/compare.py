#!/usr/bin/env python3
"""Compares how fast boscage and Optuna give out and take back trials, with the same stores in the same run.

    target/optuna/bin/python benches/store/compare.py               a few minutes
    target/optuna/bin/python benches/store/compare.py --rounds 5    more rounds, for a noisy machine
    target/optuna/bin/python benches/store/compare.py --debug       the build that the tests use, which is there already

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


def cpu_so_far(process, of_children):
    """CPU seconds of a process, or of those of its children that have ended."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()
    first = 13 if of_children else 11
    return sum(map(int, fields[first : first + 2])) / os.sysconf("SC_CLK_TCK")


def cpu_until_end(worker):
    """Waits for the end of a process, and gives its CPU seconds, with those of its children."""
    _, status, usage = os.wait4(worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    if worker.returncode != 0:
        sys.exit(f"a worker has failed: {shlex.join(map(str, worker.args))}")
    return usage.ru_utime + usage.ru_stime


def together(commands):
    """Starts workers and lets them begin at once. Seconds until the last has ended, CPU seconds, and what they print."""
    workers = []
    for command in commands:
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        workers.append(worker)
        # One after the other: the first makes the study.
        if worker.stdout.readline().strip() != "ready":
            sys.exit(f"{shlex.join(map(str, command))} did not start")
    cpu = -sum(cpu_so_far(worker.pid, False) for worker in workers)
    begin = time.perf_counter()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.close()
    answers = [worker.stdout.read() for worker in workers]
    cpu += sum(map(cpu_until_end, workers))
    return time.perf_counter() - begin, cpu, [json.loads(answer) for answer in answers]


class Stores:
    """Empty stores, one after the other."""

    def __init__(self, folder, server, process):
        self.folder, self.server, self.process, self.count = folder, server, process, 0

    def server_cpu(self):
        """CPU seconds of all sessions with the server that have ended."""
        # They end a moment after whoever had them.
        time.sleep(0.3)
        return cpu_so_far(self.process, True)

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


def tune(boscage, address, method, workers, dimension, trials, folder):
    names = [f"x{d}" for d in range(dimension)]
    parameters = "\n".join(f'{name} = {{ type = "real", low = 0, high = 1 }}' for name in names)
    command = ", ".join(f'"{{{name}}}"' for name in names)
    study = folder / "speed.toml"
    study.write_text(f'method = "{method}"\n[parameters]\n{parameters}\n[program]\ncommand = ["echo", {command}]\n')
    arguments = [boscage, "tune", study, "--storage", address, "--jobs", workers, "--trials", trials, "--no-report", "--quiet"]
    begin = time.perf_counter()
    cpu = cpu_until_end(subprocess.Popen(list(map(str, arguments)), stdout=subprocess.DEVNULL))
    return time.perf_counter() - begin, cpu, []


def measure(who, address, url, stores, workers, options):
    each = options.trials // workers
    tool, method = who
    if tool == "boscage tune":
        boscage = options.built / "boscage"
        return tune(boscage, address, method, workers, options.dimension, options.trials, stores.folder)
    if tool == "boscage":
        return together([[options.built / "examples" / "store_speed", address, method, str(options.dimension), str(each)]] * workers)
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
    parser.add_argument("--debug", action="store_true", help="a debug build of boscage, which is optimised somewhat less")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        url, sampler, dimension, trials = options.worker
        optuna_worker(url, sampler, int(dimension), int(trials))
        return

    import optuna

    profile = "debug" if options.debug else "release"
    options.built = ROOT / "target" / profile
    build = ["cargo", "build", "--locked", "-p", "boscage-cli", "-p", "boscage-study", "--bins", "--examples"]
    build += [] if options.debug else ["--release"]
    subprocess.run(build, cwd=ROOT, check=True)
    found, loads = {}, []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # Whoever runs the server has to reach its folder.
        folder.chmod(0o755)
        server = folder / "postgres"
        postgres = str(ROOT / "scripts" / "postgres")
        started = subprocess.run([postgres, "start", server], check=True, stdout=subprocess.PIPE, text=True)
        try:
            process = int((server / "data" / "postmaster.pid").read_text().split()[0])
            stores = Stores(folder, started.stdout.strip(), process)
            for round_number in range(options.rounds):
                for kind in ("SQLite", "PostgreSQL"):
                    for workers in (1, 4):
                        for who in CONTENDERS:
                            address, url = stores.new(kind)
                            of_server = -stores.server_cpu()
                            seconds, cpu, answers = measure(who, address, url, stores, workers, options)
                            of_server += stores.server_cpu()
                            each = options.trials // workers
                            asks = [1000 * answer["ask"] / each for answer in answers]
                            tells = [1000 * answer["tell"] / each for answer in answers]
                            found.setdefault((kind, workers, who), []).append((seconds, cpu, of_server, asks, tells))
                            loads.append(os.getloadavg()[0])
                            print(f"round {round_number + 1}: {kind}, {workers}, {who}: {seconds:.2f} s", file=sys.stderr)
        finally:
            subprocess.run([postgres, "stop", server], check=True)

    lines = [
        "# Trials per second, boscage and Optuna on the same stores",
        "",
        f"Made by `python {shlex.join(['benches/store/compare.py', *sys.argv[1:]])}` on {datetime.date.today()}, "
        f"{os.cpu_count()} cores ({platform.machine()}), Optuna {optuna.__version__}, a {profile} build of boscage. Medians of "
        f"{options.rounds} rounds of {options.trials} trials with {options.dimension} real parameters each, from an empty study; "
        "in brackets the smallest and the largest.",
        "",
        f"While it ran, {min(loads):.0f} to {max(loads):.0f} processes (median {statistics.median(loads):.0f}) wanted a core, its "
        "own workers among them. Where that is more than there are cores, times by the clock say more about the machine than "
        "about the programs: go by the CPU time, which is that of the workers and of the server's sessions with them.",
        "",
        "What is not alike: an ask of Optuna includes `suggest_float` for each parameter, and Optuna commits after each of them "
        "and uses SQLite's rollback journal, as it does by default; boscage commits once for an ask and once for a tell, and "
        "uses SQLite's write-ahead log. Both have a commit on the disk before they go on (the server runs without fsync, for "
        "both). `boscage tune` starts a program for each trial, and its times include its own start and its summary.",
        "",
        "| store | workers | who | method | CPU ms per trial | of which the server | trials per second | ms per ask | ms per tell |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]

    def cell(numbers, digits=1):
        numbers = list(numbers)
        if not numbers:
            return ""
        low, high = min(numbers), max(numbers)
        return f"{statistics.median(numbers):.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"

    for (kind, workers, (tool, method)), rounds in found.items():
        per_trial = 1000 / options.trials
        cells = [
            cell((cpu + of_server) * per_trial for _, cpu, of_server, _, _ in rounds),
            cell(of_server * per_trial for _, _, of_server, _, _ in rounds) if kind == "PostgreSQL" else "",
            cell((options.trials / seconds for seconds, *_ in rounds), 0),
            cell(one for *_, asks, _ in rounds for one in asks),
            cell(one for *_, tells in rounds for one in tells),
        ]
        lines.append(f"| {kind} | {workers} | {tool} | {method} | {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    print(text)
    out = ROOT / "experiments" / "store"
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.md").write_text(text)


main()
