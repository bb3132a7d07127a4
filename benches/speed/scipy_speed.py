#!/usr/bin/env python3
"""Times SciPy's dense linear algebra on one thread, for comparison with boscage.

    python3 benches/speed/scipy_speed.py                  measure everything, print JSON
    python3 benches/speed/scipy_speed.py --repeats 25     repeats of each quantity (default 11)
    python3 benches/speed/scipy_speed.py NAME...          only these quantities
    python3 benches/speed/scipy_speed.py --list           the names
    python3 benches/speed/scipy_speed.py --serve          answer requests on standard input

Every quantity has a name OPERATION/N, N the size of the matrix:
    cholesky                      scipy.linalg.cholesky(lower, overwrite_a, no check)
    cholesky_dpotrf               the LAPACK routine under it, upper triangle left as it is
    solve_triangular              scipy.linalg.solve_triangular, 3984 right-hand sides in place
    inverse_cho_solve             scipy.linalg.cho_factor, then cho_solve with the identity
    inverse_inv                   scipy.linalg.cholesky, then scipy.linalg.inv of the matrix
    inverse_dpotri                LAPACK dpotrf, then dpotri (one triangle of the inverse)
The inverses include the factorisation. Matrices are float64 in column order. Inputs are
made afresh before each repeat, outside of the timed region; one untimed run comes first.

With --serve each line of input is a request, each answered by one line of JSON:
    NAME [REPEATS]    time a quantity; REPEATS defaults to --repeats
    info              versions, BLAS, CPU, date
    list              the names
    quit              end (so does the end of input)
A request that cannot be met is answered by {"error": ...}.
"""

import os

# Before NumPy is loaded: the libraries read these once.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS",
                 "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import datetime
import functools
import json
import pathlib
import platform
import statistics
import sys
import time

try:
    import numpy as np
    import scipy
    from scipy import linalg
    from scipy.linalg import lapack
except ImportError as error:
    sys.exit(f"{error.name} is missing; install it with: python3 -m pip install scipy threadpoolctl")

try:
    import threadpoolctl
except ImportError:
    threadpoolctl = None

RIGHT_HAND_SIDES = 3984


# Inputs


@functools.lru_cache(maxsize=1)
def positive_definite(n):
    g = np.random.default_rng(n).standard_normal((n, n))
    return np.asfortranarray(g @ g.T / n + np.eye(n))


@functools.lru_cache(maxsize=1)
def factor(n):
    return np.asfortranarray(linalg.cholesky(positive_definite(n), lower=True))


@functools.lru_cache(maxsize=1)
def right_hand_sides(n):
    return np.asfortranarray(np.random.default_rng(n + 1).standard_normal((n, RIGHT_HAND_SIDES)))


def fresh_matrix(n):
    return (positive_definite(n).copy(order="F"),)


def fresh_two_matrices(n):
    return fresh_matrix(n) + fresh_matrix(n)


def fresh_matrix_and_identity(n):
    return (*fresh_matrix(n), np.asfortranarray(np.eye(n)))


def fresh_right_hand_sides(n):
    return (factor(n), right_hand_sides(n).copy(order="F"))


# Operations: what is timed. Each returns its result, which is checked once.


def cholesky(a):
    return linalg.cholesky(a, lower=True, overwrite_a=True, check_finite=False)


def cholesky_dpotrf(a):
    result, status = lapack.dpotrf(a, lower=1, overwrite_a=1, clean=0)
    assert status == 0
    return result


def solve_triangular(l, b):
    return linalg.solve_triangular(l, b, lower=True, overwrite_b=True, check_finite=False)


def inverse_cho_solve(a, identity):
    c = linalg.cho_factor(a, lower=True, overwrite_a=True, check_finite=False)
    return linalg.cho_solve(c, identity, overwrite_b=True, check_finite=False)


def inverse_inv(a, copy):
    linalg.cholesky(a, lower=True, overwrite_a=True, check_finite=False)
    return linalg.inv(copy, overwrite_a=True, check_finite=False)


def inverse_dpotri(a):
    c, status = lapack.dpotrf(a, lower=1, overwrite_a=1, clean=0)
    assert status == 0
    result, status = lapack.dpotri(c, lower=1, overwrite_c=1)
    assert status == 0
    return result


# Checks: the largest error of a result that any correct implementation stays below by far.


def factor_error(n, result):
    lower = np.tril(result)
    return abs(lower @ lower.T - positive_definite(n)).max()


def solution_error(n, result):
    return abs(factor(n) @ result - right_hand_sides(n)).max()


def inverse_error(n, result):
    lower = np.tril(result)
    inverse = lower + np.tril(result, -1).T
    return abs(inverse @ positive_definite(n) - np.eye(n)).max()


OPERATIONS = {
    # name: (operation, inputs, error, sizes)
    "cholesky": (cholesky, fresh_matrix, factor_error, (250, 500, 1000, 2000)),
    "cholesky_dpotrf": (cholesky_dpotrf, fresh_matrix, factor_error, (250, 500, 1000, 2000)),
    "solve_triangular": (solve_triangular, fresh_right_hand_sides, solution_error, (500, 1000)),
    "inverse_cho_solve": (inverse_cho_solve, fresh_matrix_and_identity, inverse_error, (500, 1000)),
    "inverse_inv": (inverse_inv, fresh_two_matrices, inverse_error, (500, 1000)),
    "inverse_dpotri": (inverse_dpotri, fresh_matrix, inverse_error, (500, 1000)),
}

NAMES = [f"{name}/{n}" for name, (_, _, _, sizes) in OPERATIONS.items() for n in sizes]


class Refused(ValueError):
    """A request that cannot be met."""


def measure(name, repeats):
    if name not in NAMES:
        raise Refused(f"unknown quantity {name!r}; --list shows the names")
    if repeats < 1:
        raise Refused("repeats must be at least 1")
    operation_name, size = name.split("/")
    operation, inputs, error, _ = OPERATIONS[operation_name]
    n = int(size)

    worst = error(n, operation(*inputs(n)))  # also the warm-up
    if not worst < 1e-8:
        raise Refused(f"{name}: wrong result, error {worst}")
    seconds = []
    for _ in range(repeats):
        arguments = inputs(n)
        start = time.perf_counter()
        operation(*arguments)
        seconds.append(time.perf_counter() - start)
    return {
        "name": name,
        "n": n,
        "repeats": repeats,
        "min_seconds": min(seconds),
        "median_seconds": statistics.median(seconds),
    }


# The machine


def cpu_model():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def blas():
    """The libraries in use if threadpoolctl can tell, else what SciPy was built with."""
    if threadpoolctl is not None:
        pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        if pools:
            return sorted({" ".join(str(pool[key]) for key in ("internal_api", "version", "architecture")
                                    if pool.get(key)) for pool in pools})
    try:
        built = scipy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return [f"{built['name']} {built['version']}"]
    except (KeyError, TypeError):
        return ["unknown"]


def require_one_thread():
    """True if checked, False if it could not be checked; ends the program otherwise."""
    if threadpoolctl is None:
        return False
    for pool in threadpoolctl.threadpool_info():
        if pool["num_threads"] != 1:
            sys.exit(f"{pool['internal_api']} uses {pool['num_threads']} threads, expected 1")
    return True


def info():
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": blas(),
        "threads": 1,
        "threads_verified": require_one_thread(),
        "cpu": cpu_model(),
        "date": datetime.date.today().isoformat(),
    }


# Talking


def answer(request, repeats):
    words = request.split()
    if words == ["info"]:
        return info()
    if words == ["list"]:
        return {"names": NAMES}
    try:
        if len(words) not in (1, 2):
            raise Refused("expected: NAME [REPEATS], info, list or quit")
        if len(words) == 2:
            if not words[1].isdigit():
                raise Refused(f"not a number of repeats: {words[1]!r}")
            repeats = int(words[1])
        return measure(words[0], repeats)
    except Refused as refused:
        return {"error": str(refused)}


def serve(repeats):
    for line in sys.stdin:
        if line.strip() == "quit":
            return
        print(json.dumps(answer(line, repeats)), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description="Times SciPy's dense linear algebra on one thread; the head of the file says more.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="quantities to measure (default: all)")
    parser.add_argument("--repeats", type=int, default=11, help="repeats of each quantity (default 11)")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--serve", action="store_true", help="answer requests on standard input")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(NAMES))
        return
    require_one_thread()
    if arguments.serve:
        serve(arguments.repeats)
        return
    try:
        results = [measure(name, arguments.repeats) for name in arguments.names or NAMES]
    except Refused as refused:
        sys.exit(str(refused))
    print(json.dumps({**info(), "results": results}, indent=2))


if __name__ == "__main__":
    main()
