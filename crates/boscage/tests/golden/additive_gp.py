#!/usr/bin/env python3
"""Golden numbers of the additive Gaussian process, from independent implementations.

    pip install numpy scipy scikit-learn mpmath
    python3 crates/boscage/tests/golden/additive_gp.py          write additive_gp.json
    python3 crates/boscage/tests/golden/additive_gp.py --check  compare with the stored file

The model
    κ^G(x,x') = σ^G ∏_{i∈G} e_i(x_i,x'_i),   σ^G = √(Σ_{i∈G} σ_i²)   (multiplied once, not squared)
    rbf       e_i = exp(−d²/2ℓ_i²)
    matern52  e_i = (1 + √5 r + 5r²/3) exp(−√5 r),  r = |d|/ℓ_i     (a product over dimensions)
    with d = x_i − x'_i, or for a categorical dimension d = 0 if equal, else 1;
    Δ = Σ_G κ^G(X,X) + noise_std² I.

Who computes what
    rho, joint mean and variance      scikit-learn's GaussianProcessRegressor and kernels
    components' means and variances   dense solves in NumPy with the same kernel objects
    all derivatives                   mpmath at 40 digits, central differences with h = 1e-12,
                                      from formulas written out a second time in this file
Variances are of the function values, without the noise. Before anything is written, rho,
means and variances are also computed in mpmath and must agree; `worst_disagreement` in the
file says how closely. Variables are counted from 0.

A case holds its inputs and `results`. `results.components` is in the order of `components`;
means and variances are in the order of the test points `Xs`.
`gradient` is the derivative of rho with respect to log ℓ_i, log σ_i and log noise_std.
`test_point_gradient` (some cases) is the derivative of the joint mean and variance at
`point` with respect to each of its coordinates.
"""

import datetime
import json
import math
import pathlib
import platform
import sys

import mpmath
import numpy as np
import scipy
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern
from mpmath import mp, mpf

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "additive_gp.json"
STEP = "1e-12"
TOLERANCE = 1e-10

mp.dps = 40


# The model by scikit-learn


class OnColumn(Kernel):
    """A kernel of one column of X; a categorical column is one-hot coded first.

    With entries 1/√2 the codes of two different categories have the distance 1.
    """

    def __init__(self, kernel, column, categories=None):
        self.kernel = kernel
        self.column = column
        self.categories = categories

    def part(self, X):
        column = np.asarray(X)[:, [self.column]]
        if self.categories is None:
            return column
        return (column == np.asarray(self.categories)[None, :]) / math.sqrt(2.0)

    def __call__(self, X, Y=None, eval_gradient=False):
        assert not eval_gradient
        return self.kernel(self.part(X), None if Y is None else self.part(Y))

    def diag(self, X):
        return self.kernel.diag(self.part(X))

    def is_stationary(self):
        return self.kernel.is_stationary()


def component_kernel(case, component):
    """κ^G from scikit-learn's kernels."""
    amplitude = math.sqrt(sum(case["scales"][i] ** 2 for i in component))
    kernel = ConstantKernel(amplitude, "fixed")
    for i in component:
        lengthscale = case["lengthscales"][i]
        if case["kernel"] == "rbf":
            factor = RBF(lengthscale, "fixed")
        else:
            factor = Matern(lengthscale, "fixed", nu=2.5)
        categories = None
        if case["categorical"][i]:
            categories = sorted({row[i] for row in case["X"] + case["Xs"]})
        kernel = kernel * OnColumn(factor, i, categories)
    return kernel


def by_scikit_learn(case):
    X, y, Xs = (np.array(case[key]) for key in ("X", "y", "Xs"))
    kernels = [component_kernel(case, component) for component in case["components"]]
    total = kernels[0]
    for kernel in kernels[1:]:
        total = total + kernel
    model = GaussianProcessRegressor(total, alpha=case["noise_std"] ** 2, optimizer=None)
    model.fit(X, y)
    mean, covariance = model.predict(Xs, return_cov=True)

    delta = total(X) + case["noise_std"] ** 2 * np.eye(len(y))
    components = []
    for kernel in kernels:
        cross = kernel(Xs, X)
        components.append({
            "mean": (cross @ np.linalg.solve(delta, y)).tolist(),
            "variance": (kernel.diag(Xs) - np.sum(cross * np.linalg.solve(delta, cross.T).T, axis=1)).tolist(),
        })
    return {
        "rho": float(model.log_marginal_likelihood_value_),
        "components": components,
        "joint": {"mean": mean.tolist(), "variance": np.diag(covariance).tolist()},
    }


# The model written out once more, at 40 digits


def factor(case, lengthscales, i, a, b):
    """e_i(a, b)"""
    if case["categorical"][i]:
        distance = mpf(0) if a == b else mpf(1)
    else:
        distance = abs(mpf(a) - mpf(b))
    r = distance / lengthscales[i]
    if case["kernel"] == "rbf":
        return mp.exp(-r * r / 2)
    root = mp.sqrt(5) * r
    return (1 + root + root * root / 3) * mp.exp(-root)


def kappa(case, parameters, component, a, b):
    """κ^G(a, b)"""
    lengthscales, scales, _ = parameters
    value = mp.sqrt(sum(scales[i] ** 2 for i in component))
    for i in component:
        value *= factor(case, lengthscales, i, a[i], b[i])
    return value


def exact_parameters(case, shift=None):
    """(ℓ, σ, noise_std), the entry `shift` = (group, index, h) moved by h in log space."""
    groups = [
        [mpf(v) for v in case["lengthscales"]],
        [mpf(v) for v in case["scales"]],
        [mpf(case["noise_std"])],
    ]
    if shift is not None:
        group, index, h = shift
        groups[group][index] *= mp.exp(h)
    return groups[0], groups[1], groups[2][0]


def exact_delta(case, parameters):
    X, n = case["X"], len(case["X"])
    delta = mp.matrix(n, n)
    for a in range(n):
        for b in range(a + 1):
            value = sum(kappa(case, parameters, G, X[a], X[b]) for G in case["components"])
            delta[a, b] = delta[b, a] = value
        delta[a, a] += parameters[2] ** 2
    return delta


def exact_rho(case, shift=None):
    delta = exact_delta(case, exact_parameters(case, shift))
    n = delta.rows
    # Gaussian elimination of (Δ | y): the pivots give log|Δ|, the last column Δ⁻¹y's quadratic form.
    y = [mpf(v) for v in case["y"]]
    rows = [[delta[a, b] for b in range(n)] + [y[a]] for a in range(n)]
    quadratic = log_determinant = mpf(0)
    for k in range(n):
        pivot = rows[k][k]
        log_determinant += mp.log(pivot)
        quadratic += rows[k][n] ** 2 / pivot
        for a in range(k + 1, n):
            ratio = rows[a][k] / pivot
            for b in range(k + 1, n + 1):
                rows[a][b] -= ratio * rows[k][b]
    return -quadratic / 2 - log_determinant / 2 - mpf(n) / 2 * mp.log(2 * mp.pi)


class ExactPosterior:
    def __init__(self, case):
        self.case = case
        self.parameters = exact_parameters(case)
        self.inverse = exact_delta(case, self.parameters) ** -1
        self.alpha = self.inverse * mp.matrix([mpf(v) for v in case["y"]])

    def at(self, point, components):
        """Mean and variance of Σ_{G ∈ components} f^G."""
        def k(a, b):
            return sum(kappa(self.case, self.parameters, G, a, b) for G in components)

        cross = mp.matrix([k(row, point) for row in self.case["X"]])
        mean = (cross.T * self.alpha)[0]
        return mean, k(point, point) - (cross.T * self.inverse * cross)[0]


def exact_gradient(case):
    h = mpf(STEP)

    def slope(group, index):
        above, below = (exact_rho(case, (group, index, s * h)) for s in (1, -1))
        return float((above - below) / (2 * h))

    dimensions = range(len(case["lengthscales"]))
    return {
        "log_lengthscales": [slope(0, i) for i in dimensions],
        "log_scales": [slope(1, i) for i in dimensions],
        "log_noise_std": slope(2, 0),
    }


def test_point_gradient(case, posterior, point):
    h = mpf(STEP)
    means, variances = [], []
    for i in range(len(point)):
        ends = []
        for s in (1, -1):
            moved = [mpf(v) for v in point]
            moved[i] += s * h
            ends.append(posterior.at(moved, case["components"]))
        means.append(float((ends[0][0] - ends[1][0]) / (2 * h)))
        variances.append(float((ends[0][1] - ends[1][1]) / (2 * h)))
    return {"point": point, "joint_mean": means, "joint_variance": variances}


# The cases


def rounded(array):
    """Inputs of six decimals are exact in the file and easy to read."""
    return np.round(array, 6).tolist()


def case(name, seed, dimensions, n, components, *, kernel="rbf", lengthscales=None, scales=None,
         noise_std=0.1, test_points=5):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, dimensions))
    y = sum(np.sin(5.0 * X[:, list(G)].sum(axis=1) + len(G)) for G in components)
    y = y + noise_std * generator.standard_normal(n)
    Xs = generator.uniform(size=(test_points, dimensions))
    if lengthscales is None:
        lengthscales = rounded(np.exp(generator.uniform(np.log(0.08), np.log(1.5), dimensions)))
    if scales is None:
        scales = rounded(np.exp(generator.uniform(np.log(0.2), np.log(2.0), dimensions)))
    made = {
        "name": name,
        "kernel": kernel,
        "categorical": [False] * dimensions,
        "components": components,
        "lengthscales": lengthscales,
        "scales": scales,
        "noise_std": noise_std,
        "X": rounded(X),
        "y": rounded(y),
        "Xs": rounded(Xs),
    }
    made["Xs"][-1] = made["X"][0]  # one test point is an observed one
    return made


def cases():
    forest = [[0, 4], [0, 3], [2, 3], [1]]
    yield case("forest_with_isolated_vertex", 1, 5, 20, forest, lengthscales=[0.1] * 5, scales=[0.5] * 5)

    drawn = [[0, 5], [0, 4], [0, 3], [2, 3], [1]]  # the forest of the paper's first figure
    yield case("paper_figure", 2, 6, 20, drawn, lengthscales=[0.1] * 6, scales=[0.5] * 6)

    mixed = [[0], [1], [3], [0, 1], [1, 2], [3, 4], [5]]
    yield case("singles_and_edges", 3, 6, 30, mixed, noise_std=0.07)
    yield case("singles_and_edges_matern52", 3, 6, 30, mixed, noise_std=0.07, kernel="matern52")

    yield case("triangle_and_singles", 4, 5, 24, [[0, 2, 3], [1], [4]])

    made = case("categorical", 5, 4, 24, [[0, 1], [1, 2], [1], [3]])
    levels = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]
    for row in made["X"] + made["Xs"][:-1]:  # the last test point is a row of X
        row[1] = levels[min(int(4 * row[1]), 3)]
    made["categorical"][1] = True
    assert {row[1] for row in made["X"]} == set(levels)
    yield made

    yield case("one_dimension", 6, 1, 8, [[0]])

    made = case("duplicates", 7, 3, 18, [[0, 1], [2]])
    for copy, original in [(5, 0), (9, 0), (17, 0), (11, 3)]:
        made["X"][copy] = list(made["X"][original])
    yield made


WITH_TEST_POINT_GRADIENT = {"singles_and_edges", "singles_and_edges_matern52"}


def disagreement(ours, theirs):
    return abs(ours - theirs) / max(abs(theirs), 1e-3)


def solved(made):
    """The case with its results, and the worst disagreement between the two implementations."""
    results = by_scikit_learn(made)
    results["gradient"] = exact_gradient(made)
    posterior = ExactPosterior(made)
    worst = disagreement(results["rho"], float(exact_rho(made)))
    parts = list(zip(results["components"], [[G] for G in made["components"]]))
    for values, components in parts + [(results["joint"], made["components"])]:
        for t, point in enumerate(made["Xs"]):
            mean, variance = posterior.at(point, components)
            worst = max(worst, disagreement(values["mean"][t], float(mean)),
                        disagreement(values["variance"][t], float(variance)))
    if made["name"] in WITH_TEST_POINT_GRADIENT:
        results["test_point_gradient"] = test_point_gradient(made, posterior, made["Xs"][1])
    assert worst < TOLERANCE, (made["name"], worst)
    print(f"{made['name']}: worst disagreement {worst:.1e}", file=sys.stderr)
    return {**made, "results": results}, worst


# The file


def written(value, indent=0):
    """JSON with 17 significant digits, lists of numbers on one line."""
    inner, outer = "  " * (indent + 1), "  " * indent
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(k)}: {written(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{outer}}}"
    if isinstance(value, list):
        if all(not isinstance(v, (list, dict)) for v in value):
            return "[" + ", ".join(written(v) for v in value) + "]"
        return "[\n" + ",\n".join(inner + written(v, indent + 1) for v in value) + f"\n{outer}]"
    if isinstance(value, float):
        assert math.isfinite(value)
        # Short where that is exact (the inputs), 17 significant digits otherwise.
        short = f"{value:.6f}".rstrip("0")
        if float(short) == value:
            return short + "0" if short.endswith(".") else short
        return f"{value:.17g}"
    return json.dumps(value, ensure_ascii=False)


def differences(stored, fresh, path="", tolerance=TOLERANCE):
    if isinstance(fresh, dict) and isinstance(stored, dict):
        if stored.keys() != fresh.keys():
            yield f"{path}: other keys"
            return
        for key in fresh:
            yield from differences(stored[key], fresh[key], f"{path}/{key}", tolerance)
    elif isinstance(fresh, list) and isinstance(stored, list):
        if len(stored) != len(fresh):
            yield f"{path}: other length"
            return
        for k, (s, f) in enumerate(zip(stored, fresh)):
            yield from differences(s, f, f"{path}/{k}", tolerance)
    elif isinstance(fresh, float) and isinstance(stored, float):
        if disagreement(stored, fresh) > tolerance:
            yield f"{path}: stored {stored!r}, now {fresh!r}"
    elif stored != fresh:
        yield f"{path}: stored {stored!r}, now {fresh!r}"


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    done, worst = [], 0.0
    for made in cases():
        result, disagreed = solved(made)
        done.append(result)
        worst = max(worst, disagreed)
    if arguments:
        stored = json.loads(FILE.read_text(encoding="utf-8"))
        found = list(differences(stored["cases"], done))
        if found:
            sys.exit("\n".join(found))
        print(f"{len(done)} cases agree with {FILE.name}")
        return
    header = {
        "tool": "scikit-learn GaussianProcessRegressor (rho, joint), NumPy (components), mpmath (derivatives)",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "mpmath": mpmath.__version__,
        },
        "script": "crates/boscage/tests/golden/additive_gp.py",
        "date": datetime.date.today().isoformat(),
        "worst_disagreement": float(f"{worst:.1e}"),
        "worst_disagreement_means": "between scikit-learn or NumPy and mpmath at 40 digits, relative to max(|value|, 1e-3)",
    }
    FILE.write_text(written({"header": header, "cases": done}) + "\n", encoding="utf-8")
    assert json.loads(FILE.read_text(encoding="utf-8"))["cases"] == done  # every float survives


if __name__ == "__main__":
    main(sys.argv[1:])
