"""The optimizers that are compared, all behind the same two calls.

    solver = make("optuna-tpe", parameters, seed=1, budget=300)
    solver.tell(values, y)       a point that was chosen by somebody else, or the last one that was asked for
    values = solver.ask()        the next point; the smaller y, the better

`parameters` is the list that `boscage bench serve` prints: dictionaries with `name`, `type` and what belongs to the type. `values`
is a list in their order: numbers for real, integer and ordinal parameters, truth values for boolean ones, text for categorical
ones. A solver that cannot handle a type raises `Unsupported`. How types are mapped is said at each solver; where nothing is said,
a point is in the unit cube, with the values of a finite parameter evenly spaced.

Libraries are imported when they are needed: they are large.
"""

import hashlib
import importlib.metadata
import importlib.util
import math
import pathlib
import warnings


class Unsupported(Exception):
    """The solver cannot handle a type of parameter."""


class Axis:
    """One parameter as an interval from 0 to 1; the values of a finite one are at equal distances."""

    def __init__(self, parameter):
        self.parameter, self.kind = parameter, parameter["type"]
        self.log = parameter.get("log", False)
        match self.kind:
            case "real":
                self.values = None
            case "integer":
                self.values = list(range(parameter["low"], parameter["high"] + 1, parameter.get("step", 1)))
            case "ordinal":
                self.values = list(parameter["levels"])
            case "boolean":
                self.values = [False, True]
            case "categorical":
                self.values = list(parameter["choices"])
            case other:
                raise Unsupported(f"no solver knows the type {other}")
        if self.values is None or self.kind == "integer" and self.log:
            low, high = parameter["low"], parameter["high"]
            self.low, self.high = (math.log(low), math.log(high)) if self.log else (low, high)

    def grid(self):
        """The places of the values of a finite parameter."""
        if self.kind == "integer" and self.log:
            return [(math.log(value) - self.low) / (self.high - self.low) for value in self.values]
        last = max(1, len(self.values) - 1)
        return [place / last for place in range(len(self.values))]

    def value(self, place):
        """The value at a place, or the nearest one."""
        place = min(1.0, max(0.0, float(place)))
        if self.values is not None:
            distances = [abs(at - place) for at in self.grid()]
            return self.values[distances.index(min(distances))]
        value = self.low + place * (self.high - self.low)
        value = math.exp(value) if self.log else value
        return min(self.parameter["high"], max(self.parameter["low"], value))

    def place(self, value):
        """The place of a value."""
        if self.values is not None:
            return self.grid()[self.values.index(value)]
        return ((math.log(value) if self.log else value) - self.low) / (self.high - self.low)


class Solver:
    """What all have in common."""

    #: The types of parameters that it can handle.
    types = {"real", "integer", "ordinal", "boolean", "categorical"}
    #: The package whose version is noted.
    package = None

    def __init__(self, parameters, seed, budget):
        found = {parameter["type"] for parameter in parameters}
        if not found <= self.types:
            raise Unsupported(f"{type(self).__name__} has no {', '.join(sorted(found - self.types))} parameters")
        self.parameters, self.seed, self.budget = parameters, seed, budget
        self.axes = [Axis(parameter) for parameter in parameters]
        self.start()

    def start(self):
        """Makes the optimizer."""

    def ask(self):
        """The next point."""
        raise NotImplementedError

    def tell(self, values, y):
        """What came out at a point."""
        raise NotImplementedError

    def places(self, values):
        return [axis.place(value) for axis, value in zip(self.axes, values, strict=True)]

    def values(self, places):
        return [axis.value(place) for axis, place in zip(self.axes, places, strict=True)]


class Boscage(Solver):
    """boscage as its users get it. All types are its own."""

    package = "boscage"
    method = None

    def start(self):
        import boscage

        kinds = {
            "real": lambda p: boscage.Real(p["low"], p["high"], log=p.get("log", False)),
            "integer": lambda p: boscage.Integer(p["low"], p["high"], step=p.get("step", 1), log=p.get("log", False)),
            "ordinal": lambda p: boscage.Ordinal(p["levels"]),
            "boolean": lambda p: boscage.Boolean(),
            "categorical": lambda p: boscage.Categorical(p["choices"]),
        }
        space = {parameter["name"]: kinds[parameter["type"]](parameter) for parameter in self.parameters}
        self.optimizer = boscage.Optimizer(space, method=self.method, seed=self.seed)
        self.names = list(space)

    def ask(self):
        params = self.optimizer.ask()
        return [params[name] for name in self.names]

    def tell(self, values, y):
        self.optimizer.tell(dict(zip(self.names, values, strict=True)), y)


class Random(Solver):
    """Uniform random points."""

    package = "numpy"

    def start(self):
        import numpy

        # Not the numbers that the first points were drawn with.
        self.random = numpy.random.default_rng([self.seed, 77])

    def ask(self):
        return sample(self.axes, self.random)

    def tell(self, values, y):
        pass


def sample(axes, random):
    """A uniform random point."""
    return [
        axis.value(random.random()) if axis.values is None else axis.values[int(random.integers(len(axis.values)))] for axis in axes
    ]


class Optuna(Solver):
    """An Optuna study in memory. Ordinal parameters are integers that count their levels."""

    package = "optuna"

    def sampler(self, optuna):
        raise NotImplementedError

    def start(self):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna = optuna
        self.distributions = {axis.parameter["name"]: self.distribution(axis) for axis in self.axes}
        self.study = optuna.create_study(sampler=self.sampler(optuna))
        self.open = None

    def distribution(self, axis):
        kinds, parameter = self.optuna.distributions, axis.parameter
        match axis.kind:
            case "real":
                return kinds.FloatDistribution(parameter["low"], parameter["high"], log=axis.log)
            case "integer":
                step = parameter.get("step", 1)
                return kinds.IntDistribution(parameter["low"], axis.values[-1], log=axis.log, step=step)
            case "ordinal":
                return kinds.IntDistribution(0, len(axis.values) - 1)
            case _:
                return kinds.CategoricalDistribution(axis.values)

    def ask(self):
        trial = self.study.ask(fixed_distributions=self.distributions)
        params = [trial.params[name] for name in self.distributions]
        values = [axis.values[value] if axis.kind == "ordinal" else value for axis, value in zip(self.axes, params, strict=True)]
        self.open = (trial, values)
        return values

    def tell(self, values, y):
        if self.open is not None and self.open[1] == values:
            self.study.tell(self.open[0], y)
            self.open = None
            return
        params = {
            name: axis.values.index(value) if axis.kind == "ordinal" else value
            for name, axis, value in zip(self.distributions, self.axes, values, strict=True)
        }
        self.study.add_trial(self.optuna.trial.create_trial(params=params, distributions=self.distributions, value=y))


class OptunaTpe(Optuna):
    """Optuna's default sampler, which is the multivariate TPE since Optuna 5."""

    def sampler(self, optuna):
        return optuna.samplers.TPESampler(seed=self.seed)


class OptunaTpeIndependent(Optuna):
    """TPE for each parameter on its own, the default of Optuna up to 4."""

    def sampler(self, optuna):
        return optuna.samplers.TPESampler(seed=self.seed, multivariate=False)


class OptunaGp(Optuna):
    """Optuna's Gaussian process."""

    def sampler(self, optuna):
        one_thread()
        return optuna.samplers.GPSampler(seed=self.seed)


def one_thread():
    """torch, with one thread."""
    import torch

    torch.set_num_threads(1)
    return torch


class BoTorch(Solver):
    """BoTorch's default Gaussian process with LogEI, both as they come: the best value is the best one observed, as in BoTorch's
    own input constructor, and the acquisition is maximised as in its tutorials, from 10 of 512 points.

    Where not all parameters are real, `optimize_acqf_mixed_alternating` does the same for finite ones (evenly spaced in the unit
    interval) and categorical ones, for which the model is BoTorch's `MixedSingleTaskGP`.
    """

    package = "botorch"
    restarts, raw_samples, options, fit_options = 10, 512, {}, {}

    def start(self):
        warnings.filterwarnings("ignore")
        self.torch = one_thread()
        self.torch.manual_seed(self.seed)
        self.points, self.outcomes = [], []
        # Categories are numbers to BoTorch.
        self.categories = [d for d, axis in enumerate(self.axes) if axis.kind == "categorical"]
        self.finite = [d for d, axis in enumerate(self.axes) if axis.values is not None and axis.kind != "categorical"]

    def scale(self, d):
        return max(1, len(self.axes[d].values) - 1) if d in self.categories else 1

    def tell(self, values, y):
        self.points.append([place * self.scale(d) for d, place in enumerate(self.places(values))])
        self.outcomes.append(-y)

    def ask(self):
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from botorch.optim import optimize_acqf
        from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch = self.torch
        points = torch.tensor(self.points, dtype=torch.double)
        outcomes = torch.tensor(self.outcomes, dtype=torch.double).unsqueeze(-1)
        model = MixedSingleTaskGP(points, outcomes, self.categories) if self.categories else SingleTaskGP(points, outcomes)
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": self.fit_options})
        improvement = LogExpectedImprovement(model, best_f=outcomes.max())
        highest = torch.tensor([self.scale(d) for d in range(len(self.axes))], dtype=torch.double)
        bounds = torch.stack([torch.zeros_like(highest), highest])
        common = {"bounds": bounds, "q": 1, "num_restarts": self.restarts, "raw_samples": self.raw_samples}
        if self.categories or self.finite:
            found, _ = optimize_acqf_mixed_alternating(
                improvement,
                discrete_dims={d: self.axes[d].grid() for d in self.finite},
                cat_dims={d: list(range(len(self.axes[d].values))) for d in self.categories},
                **common,
            )
        else:
            found, _ = optimize_acqf(improvement, options=self.options, **common)
        return self.values([place / self.scale(d) for d, place in enumerate(found.squeeze(0).tolist())])


class BoTorchFast(BoTorch):
    """The same with less work: the acquisition is maximised from 2 of 64 points in at most 50 steps, the model is trained in at
    most 75.
    """

    restarts, raw_samples, options, fit_options = 2, 64, {"maxiter": 50}, {"maxiter": 75}


class Turbo(Solver):
    """TuRBO-1 (Eriksson, Pearce, Gardner, Turner, Poloczek: Scalable Global Optimization via Local Bayesian Optimization, NeurIPS
    2019), after the paper and with the constants of its published code, one point at a time. One constant is another: there are
    at most 2,000 candidates, not 5,000, and a sample at them is exact; at 5,000 the published code takes five times as long for
    an approximate one.

    A Gaussian process (Matérn 5/2 with a lengthscale for each variable, Adam for 50 steps) in a box around the best point; the box
    is twice as long after 3 successes and half as long after max(4, D) failures; the next point is the best of a Thompson sample
    at perturbed Sobol points in it. When the box is too short, everything is forgotten and a new one begins with 10 random points.
    Finite parameters are rounded; categorical ones with more than two choices would have an order, and are refused.
    """

    types = {"real", "integer", "ordinal", "boolean"}
    package = "gpytorch"
    longest, first_length, shortest, most_candidates = 1.6, 0.8, 0.5**7, 2000
    successes_to_grow, first_points = 3, 10

    def start(self):
        import numpy

        warnings.filterwarnings("ignore")
        self.torch = one_thread()
        self.torch.manual_seed(self.seed)
        self.random = numpy.random.default_rng([self.seed, 78])
        self.failures_to_shrink = max(4, len(self.axes))
        self.begin()

    def begin(self):
        self.points, self.outcomes = [], []
        self.length, self.successes, self.failures = self.first_length, 0, 0

    def tell(self, values, y):
        if len(self.points) >= self.first_points:
            best = min(self.outcomes)
            is_success = y < best - 1e-3 * abs(best)
            self.successes, self.failures = (self.successes + 1, 0) if is_success else (0, self.failures + 1)
            if self.successes == self.successes_to_grow:
                self.length, self.successes = min(2 * self.length, self.longest), 0
            elif self.failures == self.failures_to_shrink:
                self.length, self.failures = self.length / 2, 0
        self.points.append(self.places(values))
        self.outcomes.append(y)
        if self.length < self.shortest:
            self.begin()

    def ask(self):
        if len(self.points) < self.first_points:
            return sample(self.axes, self.random)
        import gpytorch

        torch = self.torch
        points = torch.tensor(self.points, dtype=torch.double)
        outcomes = torch.tensor(self.outcomes, dtype=torch.double)
        outcomes = (outcomes - outcomes.median()) / outcomes.std().clamp_min(1e-9)
        model = self.model(points, outcomes)
        centre = points[outcomes.argmin()]
        weights = model.covar_module.base_kernel.lengthscale.detach().squeeze(0)
        weights = weights / weights.mean()
        weights = weights / weights.log().mean().exp()
        low = (centre - weights * self.length / 2).clamp(0, 1)
        high = (centre + weights * self.length / 2).clamp(0, 1)
        dimension = len(self.axes)
        count = min(100 * dimension, self.most_candidates)
        engine = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=int(self.random.integers(2**31)))
        candidates = low + (high - low) * engine.draw(count).to(torch.double)
        # Each candidate differs from the centre in some variables only.
        moved = torch.rand(count, dimension) <= min(20 / dimension, 1)
        none = ~moved.any(dim=1)
        moved[none, torch.randint(dimension, (int(none.sum()),))] = True
        candidates = torch.where(moved, candidates, centre)
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(2000):
            drawn = model.likelihood(model(candidates)).sample()
        return self.values(candidates[drawn.argmin()].tolist())

    def model(self, points, outcomes):
        import gpytorch
        from gpytorch.constraints import Interval

        torch = self.torch

        class Model(gpytorch.models.ExactGP):
            def __init__(self, likelihood):
                super().__init__(points, outcomes, likelihood)
                self.mean_module = gpytorch.means.ConstantMean()
                kernel = gpytorch.kernels.MaternKernel(
                    nu=2.5, ard_num_dims=points.shape[1], lengthscale_constraint=Interval(0.005, 2.0)
                )
                self.covar_module = gpytorch.kernels.ScaleKernel(kernel, outputscale_constraint=Interval(0.05, 20.0))

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=Interval(5e-4, 0.2))
        model = Model(likelihood).double()
        model.initialize(**{"covar_module.outputscale": 1.0, "covar_module.base_kernel.lengthscale": 0.5})
        model.initialize(**{"likelihood.noise": 0.005})
        model.train()
        likelihood.train()
        likelihood_of_data = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        steps = torch.optim.Adam(model.parameters(), lr=0.1)
        with gpytorch.settings.max_cholesky_size(2000):
            for _ in range(50):
                steps.zero_grad()
                loss = -likelihood_of_data(model(points), outcomes)
                loss.backward()
                steps.step()
        model.eval()
        likelihood.eval()
        return model


class Cma(Solver):
    """CMA-ES by pycma: from the best of the first points, with a quarter of each range as the first step size, and from a random
    point when it has converged. Finite parameters are pycma's integer variables; categorical ones are refused.
    """

    types = {"real", "integer", "ordinal", "boolean"}
    package = "cma"

    def start(self):
        import cma
        import numpy

        warnings.filterwarnings("ignore")
        self.cma = cma
        self.random = numpy.random.default_rng([self.seed, 79])
        self.told, self.strategy, self.restarts = [], None, 0
        # A real variable from 0 to 1, a finite one from 0 on, by its levels.
        self.ranges = [1.0 if axis.values is None else float(max(1, len(axis.values) - 1)) for axis in self.axes]

    def begin(self, places):
        finite = [d for d, axis in enumerate(self.axes) if axis.values is not None]
        margin = [0.0 if axis.values is None else 0.499 for axis in self.axes]
        options = {
            "bounds": [[-m for m in margin], [high + m for high, m in zip(self.ranges, margin, strict=True)]],
            "CMA_stds": self.ranges,
            "integer_variables": finite,
            "seed": self.seed * 1000 + self.restarts + 1,
            "verbose": -9,
        }
        self.restarts += 1
        first = [place * high for place, high in zip(places, self.ranges, strict=True)]
        self.strategy = self.cma.CMAEvolutionStrategy(first, 0.25, options)
        self.batch, self.results = [], []

    def ask(self):
        if self.strategy is None:
            self.begin(min(self.told)[1])
        elif not self.batch and self.strategy.stop():
            self.begin([float(place) for place in self.random.random(len(self.axes))])
        if not self.batch:
            self.batch, self.results = list(self.strategy.ask()), []
        point = self.batch[len(self.results)]
        return self.values([x / high for x, high in zip(point, self.ranges, strict=True)])

    def tell(self, values, y):
        if self.strategy is None:
            self.told.append((y, self.places(values)))
            return
        self.results.append(y)
        if len(self.results) == len(self.batch):
            self.strategy.tell(self.batch, self.results)
            self.batch = []


class Nevergrad(Solver):
    """Nevergrad's NGOpt, which chooses an algorithm by the kind of problem and the budget. An array if all parameters are real;
    otherwise integers are scalars with integer casting, ordinal ones transition choices, the others choices. It gets the first
    points as suggestions, and goes without those that its algorithm cannot take.
    """

    package = "nevergrad"

    def start(self):
        warnings.filterwarnings("ignore")
        import nevergrad

        self.ng = nevergrad
        self.all_real = all(axis.kind == "real" for axis in self.axes)
        if self.all_real:
            variables = nevergrad.p.Array(shape=(len(self.axes),), lower=0.0, upper=1.0)
        else:
            variables = nevergrad.p.Tuple(*map(self.variable, self.axes))
        variables.random_state.seed(self.seed)
        self.optimizer = nevergrad.optimizers.NGOpt(parametrization=variables, budget=self.budget, num_workers=1)
        self.open = None

    def variable(self, axis):
        kinds, parameter = self.ng.p, axis.parameter
        match axis.kind:
            case "real":
                return kinds.Scalar(lower=0.0, upper=1.0)
            case "integer" if not axis.log and parameter.get("step", 1) == 1:
                return kinds.Scalar(lower=parameter["low"], upper=parameter["high"]).set_integer_casting()
            case "integer" | "ordinal":
                return kinds.TransitionChoice(axis.values)
            case _:
                return kinds.Choice(axis.values)

    def outside(self, values):
        """As Nevergrad has it."""
        if self.all_real:
            return self.places(values)
        return tuple(axis.place(value) if axis.kind == "real" else value for axis, value in zip(self.axes, values, strict=True))

    def ask(self):
        candidate = self.optimizer.ask()
        if self.all_real:
            values = self.values(candidate.value)
        else:
            found = zip(self.axes, candidate.value, strict=True)
            values = [axis.value(value) if axis.kind == "real" else value for axis, value in found]
            values = [int(value) if axis.kind == "integer" else value for axis, value in zip(self.axes, values, strict=True)]
        self.open = (candidate, values)
        return values

    def tell(self, values, y):
        if self.open is not None and self.open[1] == values:
            self.optimizer.tell(self.open[0], y)
            self.open = None
            return
        self.optimizer.suggest(self.outside(values))
        candidate = self.optimizer.ask()
        try:
            self.optimizer.tell(candidate, y)
        except self.ng.errors.TellNotAskedNotSupportedError:
            pass


SOLVERS = {
    "boscage": Boscage,
    "boscage-tree-paper": type("BoscageTreePaper", (Boscage,), {"method": "tree-paper"}),
    "random": Random,
    "optuna-tpe": OptunaTpe,
    "optuna-tpe-independent": OptunaTpeIndependent,
    "optuna-gp": OptunaGp,
    "botorch": BoTorch,
    "botorch-fast": BoTorchFast,
    "turbo": Turbo,
    "cma": Cma,
    "nevergrad": Nevergrad,
}


def solver_class(name):
    """The class of a solver; `boscage-METHOD` is any of boscage's methods."""
    if name not in SOLVERS and name.startswith("boscage-"):
        return type("BoscageMethod", (Boscage,), {"method": name.removeprefix("boscage-")})
    if name not in SOLVERS:
        raise SystemExit(f"there is no solver {name!r}; there are {', '.join(SOLVERS)}, and boscage-METHOD for any of its methods")
    return SOLVERS[name]


def make(name, parameters, seed, budget):
    """The solver of this name. `budget` is the number of evaluations that there will be, with those of others."""
    return solver_class(name)(parameters, seed, budget)


def version(name):
    """Which package a solver stands for, and in which version."""
    package = solver_class(name).package
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(f"{package} is not installed here; run it by benches/peers/run") from None
    if package == "boscage":
        # Its version says little while it is being worked on.
        folder = pathlib.Path(importlib.util.find_spec("boscage").origin).parent
        parts = sorted(path for path in folder.iterdir() if path.suffix in (".so", ".py"))
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in parts)).hexdigest()
        found = f"{found}+{digest[:10]}"
    return f"{package} {found}"
