"""A problem of boscage's own (`boscage bench problems`), evaluated by `boscage bench serve`."""

import json
import os
import pathlib
import subprocess
import zlib

from solvers import Axis, sample

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Sets of names that `boscage bench problems` lists.
SUITES = {
    # What is looked at while boscage is being worked on.
    "open": [
        "hartmann6+14",
        "styblinski-tang-50",
        "styblinski-tang-100",
        "styblinski-tang-250",
        "star25-continuous",
        "random-tree50-continuous",
        "path50-continuous",
        "grid3x3",
        "partition12-continuous",
        "rosenbrock-20-noisy",
        "camelback+10",
    ],
    # Likewise, of functions that all variables shape together, where no sum over few pairs of them is right.
    "rotated": [
        "rastrigin-rotated-10",
        "griewank-rotated-10",
        "rosenbrock-rotated-10",
        "styblinski-tang-rotated-15",
        "ellipsoid-rotated-20",
        "quadratic-embedded-100",
    ],
    # Likewise, of sums of many variables, or nearly, whose minimum is elsewhere for each of them.
    "moved": [
        "ackley-moved-50",
        "levy-moved-50",
        "rastrigin-moved-30",
        "griewank-moved-60",
        "rosenbrock-moved-40",
        "styblinski-tang-moved-50",
        "ellipsoid-moved-100",
    ],
    # Likewise, of which a part cannot be evaluated and has a value of a million instead: programs that crash.
    "penalised": [
        "half-spaces-penalised-20",
        "corner-penalised-20",
        "choices-penalised-20",
        "memory-penalised-20",
    ],
    # Likewise, whose parameters have linear ranges, although some or all of them should have been logarithmic ones.
    "ranges": [
        "log-bowl-20",
        "log-bowl-turned-10",
        "log-few-12",
        "saturating-20",
        "log-counts-18",
        "power-time-16",
    ],
    # For a last check only: nothing may be chosen by what comes out here.
    "held-out": [
        "ackley-rotated-20",
        "levy-rotated-12",
        "hartmann6-embedded-40",
        "ellipsoid-integer-16",
        "ackley53",
        "pest-control-25",
        "labs-40",
    ],
}


def program():
    """The program boscage: BOSCAGE_TEST_BINARY, or what was built last."""
    if named := os.environ.get("BOSCAGE_TEST_BINARY"):
        return named
    built = [ROOT / "target" / profile / "boscage" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        raise SystemExit("boscage is not built: cargo build --release -p boscage-cli, or name it with BOSCAGE_TEST_BINARY")
    return str(max(built, key=lambda path: path.stat().st_mtime))


class Problem:
    """The function of one seed. Whatever boscage maximises is turned round: smaller is better."""

    def __init__(self, name, seed):
        self.name, self.seed = name, seed
        command = [program(), "bench", "serve", name, "--seed", str(seed)]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.server.stdout.readline()
        if not first:
            raise SystemExit(f"{' '.join(command)} has failed")
        facts = json.loads(first)
        self.parameters, self.noise_std = facts["parameters"], facts["noise_std"]
        self.sign = -1.0 if facts["goal"] == "maximize" else 1.0
        self.optimum = None if facts["optimum"] is None else self.sign * facts["optimum"]["value"]

    def value(self, values):
        """The value without noise."""
        self.server.stdin.write(json.dumps(values) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        if "error" in answer:
            raise ValueError(f"{self.name}: {answer['error']}")
        return self.sign * answer["value"]

    def first_points(self, count):
        """Uniform random points, the same for all solvers."""
        axes, random = [Axis(parameter) for parameter in self.parameters], self.random(0)
        return [sample(axes, random) for _ in range(count)]

    def noise(self, count):
        """What is added to each evaluation in turn, the same for all solvers."""
        return self.random(1).normal(0.0, self.noise_std, count).tolist()

    def random(self, purpose):
        import numpy

        return numpy.random.default_rng([zlib.crc32(self.name.encode()), self.seed, purpose])

    def close(self):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait()
