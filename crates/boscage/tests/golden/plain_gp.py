#!/usr/bin/env python3
"""Golden numbers of the plain Gaussian process: one component of all variables.

    pip install numpy scipy scikit-learn
    python3 crates/boscage/tests/golden/plain_gp.py          write plain_gp.json
    python3 crates/boscage/tests/golden/plain_gp.py --check  compare with the stored file

The model
    κ(x,x') = s ∏_i e_i(x_i,x'_i),   s = √(Σ_i σ_i²)   (the prior variance)
    rbf       e_i = exp(−d²/2ℓ_i²)
    matern52  e_i = (1 + √5 r + 5r²/3) exp(−√5 r),  r = |d|/ℓ_i     (a product over dimensions)
    Δ = κ(X,X) + noise_std² I.

Who computes what
    rbf       scikit-learn's GaussianProcessRegressor with its own anisotropic RBF kernel,
              ConstantKernel and WhiteKernel; derivatives of rho are its own too
    matern52  NumPy from the formulas above, since scikit-learn's Matérn kernel is one of the
              Euclidean distance and not a product
Before anything is written the rbf cases are computed in NumPy too and must agree, derivatives
included; `worst_disagreement` says how closely. Variances are of the function values, without the
noise. The format is that of additive_gp.json.
"""

import datetime
import json
import math
import pathlib
import platform
import sys

import numpy as np
import scipy
import scipy.linalg
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

FILE = pathlib.Path(__file__).resolve().parent / "plain_gp.json"
TOLERANCE = 1e-9


def by_scikit_learn(case):
    X, y, Xs = (np.array(case[key]) for key in ("X", "y", "Xs"))
    scales = np.array(case["scales"])
    amplitude = math.sqrt(np.sum(scales**2))
    noise = case["noise_std"] ** 2
    kernel = ConstantKernel(amplitude) * RBF(case["lengthscales"]) + WhiteKernel(noise)
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    mean, std = model.predict(Xs, return_std=True)
    rho, gradient = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    by_amplitude, by_lengthscales, by_noise = gradient[0], gradient[1:-1], gradient[-1]
    return {
        "rho": float(rho),
        # The white kernel is part of the predicted variance.
        "joint": {"mean": mean.tolist(), "variance": (std**2 - noise).tolist()},
        "gradient": {
            "log_lengthscales": by_lengthscales.tolist(),
            # s = √Σσ²: ∂log s/∂log σ_i = σ_i²/Σσ².
            "log_scales": (by_amplitude * scales**2 / np.sum(scales**2)).tolist(),
            "log_noise_std": float(2.0 * by_noise),
        },
    }


def by_numpy(case):
    X, y, Xs = (np.array(case[key]) for key in ("X", "y", "Xs"))
    ell, scales = np.array(case["lengthscales"]), np.array(case["scales"])
    amplitude, noise = math.sqrt(np.sum(scales**2)), case["noise_std"] ** 2

    def distances(A, B):
        return np.abs(A[:, None, :] - B[None, :, :]) / ell

    def factors(r):
        if case["kernel"] == "rbf":
            return np.exp(-0.5 * r**2)
        s = math.sqrt(5.0) * r
        return (1.0 + s + s**2 / 3.0) * np.exp(-s)

    def log_slopes(r):
        """∂log e/∂log ℓ"""
        if case["kernel"] == "rbf":
            return r**2
        s = math.sqrt(5.0) * r
        return s**2 * (1.0 + s) / 3.0 / (1.0 + s + s**2 / 3.0)

    r = distances(X, X)
    K = amplitude * np.prod(factors(r), axis=2)
    delta = K + noise * np.eye(len(y))
    factor = scipy.linalg.cho_factor(delta, lower=True)
    alpha = scipy.linalg.cho_solve(factor, y)
    cross = amplitude * np.prod(factors(distances(Xs, X)), axis=2)
    variance = amplitude - np.sum(cross * scipy.linalg.cho_solve(factor, cross.T).T, axis=1)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor[0])))
    W = np.outer(alpha, alpha) - scipy.linalg.cho_solve(factor, np.eye(len(y)))
    return {
        "rho": float(-0.5 * y @ alpha - 0.5 * log_determinant - 0.5 * len(y) * math.log(2.0 * math.pi)),
        "joint": {"mean": (cross @ alpha).tolist(), "variance": variance.tolist()},
        "gradient": {
            "log_lengthscales": [0.5 * float(np.sum(W * K * log_slopes(r)[:, :, i])) for i in range(len(ell))],
            "log_scales": (0.5 * np.sum(W * K) * scales**2 / np.sum(scales**2)).tolist(),
            "log_noise_std": float(noise * np.trace(W)),
        },
    }


def rounded(array):
    """Inputs of six decimals are exact in the file and easy to read."""
    return np.round(array, 6).tolist()


def case(name, seed, dimensions, n, kernel, shortest, longest, noise_std):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, dimensions))
    y = np.sin(3.0 * X.sum(axis=1)) + X[:, 0] + noise_std * generator.standard_normal(n)
    Xs = generator.uniform(size=(5, dimensions))
    Xs[-1] = X[0]  # one test point is an observed one
    lengthscales = np.exp(generator.uniform(np.log(shortest), np.log(longest), dimensions))
    scales = np.exp(generator.uniform(np.log(0.2), np.log(2.0), dimensions))
    return {
        "name": name,
        "kernel": kernel,
        "categorical": [False] * dimensions,
        "components": [list(range(dimensions))],
        "lengthscales": rounded(lengthscales),
        "scales": rounded(scales),
        "noise_std": noise_std,
        "X": rounded(X),
        "y": rounded(y),
        "Xs": rounded(Xs),
    }


def cases():
    for kernel in ("rbf", "matern52"):
        yield case(f"plain_1_{kernel}", 1, 1, 8, kernel, 0.1, 0.3, 0.1)
        yield case(f"plain_3_little_noise_{kernel}", 2, 3, 15, kernel, 0.2, 0.6, 0.01)
        yield case(f"plain_6_{kernel}", 3, 6, 25, kernel, 0.3, 2.0, 0.1)
        yield case(f"plain_20_{kernel}", 4, 20, 40, kernel, 1.0, 6.0, 0.2)


def numbers(value):
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for entry in value for number in numbers(entry)]
    return [value]


def disagreement(one, other):
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(numbers(one), numbers(other), strict=True))


def solved(made):
    results = by_numpy(made)
    worst = 0.0
    if made["kernel"] == "rbf":
        theirs = by_scikit_learn(made)
        worst = disagreement(results, theirs)
        results = theirs
    assert worst < TOLERANCE, (made["name"], worst)
    results["components"] = [results["joint"]]
    return {**made, "results": results}, worst


def main():
    done = [solved(made) for made in cases()]
    if "--check" in sys.argv[1:]:
        stored = json.loads(FILE.read_text())["cases"]
        for (new, _), old in zip(done, stored, strict=True):
            inputs = [{k: v for k, v in entry.items() if k != "results"} for entry in (new, old)]
            assert inputs[0] == inputs[1], new["name"]
            worst = disagreement(new["results"], old["results"])
            print(f"{new['name']}: {worst:.1e}")
            assert worst < TOLERANCE, new["name"]
        return
    header = {
        "tool": "scikit-learn GaussianProcessRegressor (rbf), NumPy (matern52)",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "script": "crates/boscage/tests/golden/plain_gp.py",
        "date": datetime.date.today().isoformat(),
        "worst_disagreement": float(f"{max(worst for _, worst in done):.1e}"),
        "worst_disagreement_means": "between scikit-learn and NumPy, relative to max(|value|, 1e-3)",
    }
    # One line a case: the file is for programs.
    lines = ",\n    ".join(json.dumps(made, ensure_ascii=False) for made, _ in done)
    head = json.dumps(header, indent=4, ensure_ascii=False)
    FILE.write_text(f'{{\n  "header": {head},\n  "cases": [\n    {lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
