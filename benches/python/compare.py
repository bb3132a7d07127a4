"""Seconds of an ask from Python against the same ask from Rust, turn by turn; and what telling many points costs.

    target/python/fresh/bin/python benches/python/compare.py [--rounds 5] [--rust PROGRAM]

Needs the wheel in the environment it is run with, and the same build of the Rust part: by default
`cargo run -p boscage-study --example ask_speed` with the profile of tests, as `python/test` builds the wheel.
Writes experiments/python-ask/results.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = [(50, 300, 6), (250, 1000, 4)]
TELLS = [1000, 10_000]


def run(command: list[str]) -> dict[str, object]:
    # One thread: with more, a busy machine makes the ratio a matter of luck.
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run, in turn (5)")
    parser.add_argument("--rust", help="the example `ask_speed`, if it is built already")
    given = parser.parse_args()
    rust = given.rust
    if rust is None:
        subprocess.run(["cargo", "build", "-q", "-p", "boscage-study", "--example", "ask_speed"], cwd=ROOT, check=True)
        rust = str(ROOT / "target" / "debug" / "examples" / "ask_speed")
    python = [sys.executable, str(Path(__file__).with_name("ask.py"))]
    lines = [
        "# Asks from Python",
        "",
        "Seconds of an ask of the default method from Rust and from Python, one thread, the smallest of"
        f" {given.rounds} rounds in turn (`benches/python/compare.py`). Both ask for the same points.",
        "",
        "| parameters | observations | Rust | Python | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for dimension, observations, asks in CASES:
        words = [str(dimension), str(observations), str(asks)]
        found: dict[str, list[float]] = {"rust": [], "python": []}
        for _ in range(given.rounds):
            sums = set()
            for name, command in (("rust", [rust]), ("python", python)):
                answer = run([*command, *words])
                found[name].append(sum(answer["asks"]) / asks)  # type: ignore[arg-type]
                sums.add(answer["sum"])
            if len(sums) != 1:
                raise SystemExit(f"they asked for different points: {sums}")
        one, other = min(found["rust"]), min(found["python"])
        lines.append(f"| {dimension} | {observations} | {one:.4f} | {other:.4f} | {other / one:.3f} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "Seconds of telling points of 20 parameters one by one, without an ask:",
        "",
        "| points | seconds |",
        "| --- | --- |",
    ]
    for tells in TELLS:
        seconds = min(run([*python, "20", str(tells), "0"])["tells"] for _ in range(given.rounds))  # type: ignore[type-var]
        lines.append(f"| {tells} | {seconds:.3f} |")
        print(lines[-1], flush=True)
    target = ROOT / "experiments" / "python-ask" / "results.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
