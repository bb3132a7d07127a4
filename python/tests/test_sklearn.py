"""The regressor: scikit-learn's own checks, known functions, an independent implementation, and difficult data."""

import copy
import functools
import operator
import pickle

import numpy
import pytest


from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from boscage.sklearn import AdditiveGPRegressor


# No check is expected to fail.
@parametrize_with_checks([AdditiveGPRegressor()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def additive(X):
    return numpy.sin(6 * X[:, 0]) + 4 * (X[:, 1] - 0.5) * (X[:, 2] - 0.5) + X[:, 3] ** 2


@pytest.fixture(scope="module")
def data():
    X = numpy.random.default_rng(1).uniform(size=(360, 8))
    return X[:160], additive(X[:160]), X[160:], additive(X[160:])


@pytest.fixture(scope="module")
def fitted(data):
    return AdditiveGPRegressor().fit(data[0], data[1])


def test_an_additive_function_is_learned(data, fitted):
    assert fitted.score(data[2], data[3]) > 0.995
    assert [(edge.first, edge.second) for edge in fitted.edges_] == [("x1", "x2")]
    assert 0.9 < fitted.edges_[0].frequency <= 1.0
    assert fitted.edge_frequencies_[0] == fitted.edges_[0]
    assert fitted.n_features_in_ == 8
    assert not hasattr(fitted, "feature_names_in_")
    assert numpy.isfinite(fitted.log_likelihood_)


def test_it_is_better_than_one_function_of_all_features(data, fitted):
    whole = AdditiveGPRegressor(method="gp-ucb").fit(data[0], data[1])
    assert fitted.score(data[2], data[3]) > whole.score(data[2], data[3])


def test_training_points_are_met_and_noise_is_found(data, fitted):
    X, y = data[:2]
    mean, std = fitted.predict(X, return_std=True)
    assert numpy.abs(mean - y).max() < 0.02
    assert std.max() < 0.05
    assert fitted.noise_ < 0.01
    noisy = AdditiveGPRegressor().fit(X, y + numpy.random.default_rng(2).normal(scale=0.3, size=len(y)))
    assert 0.2 < noisy.noise_ < 0.4


def test_intervals_hold_about_as_often_as_they_say(data):
    X, y, others, truth = data
    noisy = AdditiveGPRegressor().fit(X, y + numpy.random.default_rng(2).normal(scale=0.3, size=len(y)))
    mean, std = noisy.predict(others, return_std=True)
    assert 0.75 < (numpy.abs(mean - truth) < 1.645 * std).mean() <= 1.0


def test_std_grows_in_gaps_and_beyond_the_data():
    X = numpy.concatenate([numpy.linspace(0, 0.3, 10), numpy.linspace(0.9, 1, 4)])[:, None]
    regressor = AdditiveGPRegressor().fit(X, numpy.sin(9 * X[:, 0]))
    at, gap = (regressor.predict([[x]], return_std=True)[1][0] for x in (0.15, 0.6))
    assert gap > 10 * at
    near, far, very_far = (regressor.predict([[x]], return_std=True)[1][0] for x in (1.05, 2.0, 1e300))
    assert near < far <= very_far
    # Far away nothing is known but the average.
    mean = regressor.predict([[1e300], [-1e300], [1e9]])
    numpy.testing.assert_allclose(mean, mean[0], rtol=1e-12)


def gaussian_process(kernel, X, y, noise, others):
    """Mean and standard deviation by the textbook's formulas, in scikit-learn's implementation."""
    model = GaussianProcessRegressor(kernel, alpha=noise**2, optimizer=None).fit(X, y)
    return model.predict(others, return_std=True)


def fixed(lengthscale, scale, noise):
    return {
        "outputs": "raw",
        "family": "rbf",
        "lengthscale": lengthscale,
        "scale": scale,
        "noise_std": noise,
        "kernel_learning": {
            "lengthscale_bounds": [lengthscale, lengthscale],
            "scale_bounds": [scale, scale],
            "noise_std_bounds": [noise, noise],
        },
    }


def unit_cube(X):
    """Rows with both ends of every range, so that scaling changes nothing."""
    return numpy.concatenate([X, numpy.zeros((1, X.shape[1])), numpy.ones((1, X.shape[1]))])


def test_a_plain_gaussian_process_agrees_with_scikit_learns(data):
    X = unit_cube(data[0][:40, :3])
    y, others = additive_of_three(X), data[2][:, :3]
    method = {"name": "gp-ucb", "settings": fixed(0.4, 0.8, 0.1)}
    regressor = AdditiveGPRegressor(method).fit(X, y)
    mean, std = regressor.predict(others, return_std=True)
    # The amplitude of a component is the root of the sum of its variables' squares, and is not squared.
    # The constant of the model is a part of the kernel.
    kernel = ConstantKernel(0.8 * 3**0.5) * RBF(0.4) + ConstantKernel(10.0)
    expected_mean, expected_std = gaussian_process(kernel, X, y, 0.1, others)
    numpy.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-9)
    numpy.testing.assert_allclose(std, expected_std, rtol=0, atol=1e-9)
    assert regressor.noise_ == pytest.approx(0.1)
    model = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(X, y)
    assert regressor.log_likelihood_ == pytest.approx(model.log_marginal_likelihood(), abs=1e-8)


def additive_of_three(X):
    return numpy.sin(6 * X[:, 0]) + 8 * (X[:, 1] - 0.5) * (X[:, 2] - 0.5)


class Part(RBF):
    """A kernel of some of the columns."""

    def __init__(self, columns=(0,), length_scale=1.0):
        super().__init__(length_scale, "fixed")
        self.columns = columns

    def __call__(self, X, Y=None, eval_gradient=False):
        columns = list(self.columns)
        return super().__call__(X[:, columns], None if Y is None else Y[:, columns])


def test_a_learned_forest_agrees_with_the_sum_of_kernels(data):
    X = unit_cube(data[0][:60, :3])
    y, others = additive_of_three(X), data[2][:, :3]
    method = {"name": "tree", "settings": fixed(0.3, 0.7, 0.1)}
    regressor = AdditiveGPRegressor(method).fit(X, y)
    assert [(edge.first, edge.second) for edge in regressor.edges_][0] == ("x1", "x2")
    pairs = [(int(edge.first[1:]), int(edge.second[1:])) for edge in regressor.edges_]
    alone = [(column,) for column in range(3) if all(column not in pair for pair in pairs)]
    components = [*pairs, *alone]
    parts = [ConstantKernel(0.7 * len(component) ** 0.5) * Part(component, 0.3) for component in components]
    kernel = functools.reduce(operator.add, parts)
    mean, std = regressor.predict(others, return_std=True)
    expected_mean, expected_std = gaussian_process(kernel, X, y, 0.1, others)
    numpy.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-9)
    numpy.testing.assert_allclose(std, expected_std, rtol=0, atol=1e-9)


def test_pipelines_searches_and_cross_validation(data):
    X, y = data[0][:90], data[1][:90]
    pipeline = make_pipeline(StandardScaler(), AdditiveGPRegressor())
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.8
    mean, std = pipeline.fit(X, y).predict(X[:4], return_std=True)
    assert mean.shape == std.shape == (4,)
    # Scaling beforehand changes nothing but the last digits.
    numpy.testing.assert_allclose(mean, AdditiveGPRegressor().fit(X, y).predict(X[:4]), rtol=1e-3)
    search = GridSearchCV(AdditiveGPRegressor(), {"method": ["tree", "gp-ucb"]}, cv=3).fit(X, y)
    assert search.best_params_ == {"method": "tree"}


def test_clones_have_the_parameters_and_no_data():
    regressor = AdditiveGPRegressor({"name": "tree", "settings": {"family": "matern52"}}, random_state=3)
    again = clone(regressor.fit([[0.0], [1.0]], [1.0, 2.0]))
    assert again.get_params() == regressor.get_params()
    assert not hasattr(again, "edges_")


@pytest.mark.parametrize("way", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_pickles_and_copies_predict_the_same_to_the_last_bit(data, way):
    X = data[0][:50].copy()
    regressor = AdditiveGPRegressor(random_state=numpy.random.RandomState(5)).fit(X, data[1][:50])
    expected = regressor.predict(data[2], return_std=True)
    # What comes after fitting must not matter.
    X[:] = 0
    regressor.set_params(method="gp-ucb", random_state=1)
    again = way(regressor)
    for found, wanted in zip(again.predict(data[2], return_std=True), expected, strict=True):
        numpy.testing.assert_array_equal(found, wanted)
    assert again.edges_ == regressor.edges_
    # And once more from a copy that has not yet predicted.
    third = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(regressor))))
    numpy.testing.assert_array_equal(third.predict(data[2]), expected[0])


def test_seeds(data):
    def frequencies(random_state):
        return AdditiveGPRegressor(random_state=random_state).fit(data[0][:20], data[1][:20]).edge_frequencies_

    assert frequencies(1) == frequencies(1) == frequencies(numpy.int64(1))
    assert frequencies(1) != frequencies(2)
    assert frequencies(numpy.random.RandomState(1)) == frequencies(numpy.random.RandomState(1))
    assert frequencies(None) != frequencies(None)
    with pytest.raises(ValueError, match="the seed is -1"):
        frequencies(-1)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        frequencies("one")


def test_data_frames_give_names(data):
    import pandas
    names = [f"column {letter}" for letter in "abcdefgh"]
    frame = pandas.DataFrame(data[0], columns=names)
    regressor = AdditiveGPRegressor().fit(frame, pandas.Series(data[1]))
    assert list(regressor.feature_names_in_) == names
    assert [(edge.first, edge.second) for edge in regressor.edges_] == [("column b", "column c")]
    others = pandas.DataFrame(data[2], columns=names)
    numpy.testing.assert_array_equal(
        regressor.predict(others), AdditiveGPRegressor().fit(data[0], data[1]).predict(data[2])
    )
    with pytest.raises(ValueError, match="feature names should match"):
        regressor.predict(others.rename(columns={"column a": "z"}))
    # Names are forgotten when it is fitted without.
    assert not hasattr(regressor.fit(data[0][:9], data[1][:9]), "feature_names_in_")


def test_one_column():
    X = numpy.linspace(-3, 3, 25)[:, None]
    regressor = AdditiveGPRegressor().fit(X, numpy.sin(X[:, 0]))
    assert regressor.edges_ == [] and regressor.edge_frequencies_ == []
    inside = numpy.linspace(-2.9, 2.9, 40)
    assert numpy.abs(regressor.predict(inside[:, None]) - numpy.sin(inside)).max() < 0.02


def test_constant_columns_change_nothing_that_matters(data):
    X, y, others, truth = data

    def with_constants(rows):
        return numpy.hstack([rows, numpy.full((len(rows), 1), 7.0), numpy.zeros((len(rows), 1))])

    regressor = AdditiveGPRegressor().fit(with_constants(X), y)
    assert regressor.score(with_constants(others), truth) > 0.99
    only = AdditiveGPRegressor().fit(numpy.ones((5, 2)), [1.0, 2.0, 3.0, 4.0, 5.0])
    mean, std = only.predict([[1.0, 1.0], [9.0, 9.0]], return_std=True)
    assert mean == pytest.approx([3.0, 3.0], abs=0.2) and numpy.isfinite(std).all()


def test_repeated_rows_are_averaged(data):
    X = numpy.repeat(data[0][:40], 3, axis=0)
    noise = numpy.tile([-0.2, 0.0, 0.2], 40)
    y = numpy.repeat(data[1][:40], 3)
    mean = AdditiveGPRegressor().fit(X, y + noise).predict(data[0][:40])
    assert numpy.abs(mean - data[1][:40]).mean() < 0.1
    exact = AdditiveGPRegressor().fit(X, y)
    assert numpy.abs(exact.predict(data[0][:40]) - data[1][:40]).max() < 0.05


def test_one_and_two_rows():
    one = AdditiveGPRegressor().fit([[1.0, 2.0]], [5.0])
    mean, std = one.predict([[1.0, 2.0], [8.0, -1.0]], return_std=True)
    assert mean == pytest.approx([5.0, 5.0]) and numpy.isfinite(std).all()
    two = AdditiveGPRegressor().fit([[0.0, 0.0], [1.0, 1.0]], [5.0, 7.0])
    mean = two.predict([[0.0, 0.0], [1.0, 1.0]])
    assert mean == pytest.approx([5.0, 7.0], abs=0.1)


@pytest.mark.parametrize("constant", [0.0, 7.5, -1e12])
def test_constant_targets(data, constant):
    regressor = AdditiveGPRegressor().fit(data[0][:30], numpy.full(30, constant))
    mean, std = regressor.predict(data[2], return_std=True)
    numpy.testing.assert_allclose(mean, constant)
    assert numpy.isfinite(std).all()


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e-6, 1e6, 1e30, 1e250])
def test_scales_do_not_matter(data, scale):
    X, y, others, _ = data
    X, y, others = X[:60], y[:60], others[:50]
    mean, std = AdditiveGPRegressor().fit(X, y).predict(others, return_std=True)
    scaled_mean, scaled_std = AdditiveGPRegressor().fit(X * scale, y).predict(others * scale, return_std=True)
    numpy.testing.assert_allclose(scaled_mean, mean, rtol=1e-3, atol=1e-3)
    scaled_mean, scaled_std = AdditiveGPRegressor().fit(X, y * scale).predict(others, return_std=True)
    numpy.testing.assert_allclose(scaled_mean / scale, mean, rtol=1e-3, atol=1e-3)
    numpy.testing.assert_allclose(scaled_std / scale, std, rtol=1e-2, atol=1e-3)


def test_the_whole_range_of_numbers():
    largest = numpy.finfo(float).max
    X = numpy.array([[-largest], [-largest / 2], [0.0], [largest / 2], [largest]])
    mean, std = AdditiveGPRegressor().fit(X, [0.0, 1.0, 2.0, 3.0, 4.0]).predict(X, return_std=True)
    assert mean == pytest.approx([0, 1, 2, 3, 4], abs=0.3) and numpy.isfinite(std).all()


def test_what_makes_no_sense_is_refused(data):
    X, y = data[0][:9], data[1][:9]
    with pytest.raises(ValueError, match="random has no model to fit"):
        AdditiveGPRegressor("random").fit(X, y)
    with pytest.raises(ValueError, match="no-such"):
        AdditiveGPRegressor("no-such").fit(X, y)
    with pytest.raises(TypeError, match="a method is a name"):
        AdditiveGPRegressor(7).fit(X, y)
    with pytest.raises(ValueError, match="lengthscale"):
        AdditiveGPRegressor({"name": "tree", "settings": {"lengthscale": -1.0}}).fit(X, y)


def test_what_comes_out_belongs_to_the_caller(fitted, data):
    mean, std = fitted.predict(data[2], return_std=True)
    mean += 1
    std[:] = 0
    assert mean.flags.writeable and mean.dtype == float


@pytest.mark.parametrize("seed", range(3))
def test_a_product_among_many_columns_is_found(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(400, 20))
    y = X[:, 0] * X[:, 1] + rng.normal(0, 0.1, size=400)
    regressor = AdditiveGPRegressor().fit(X[:250], y[:250])
    assert regressor.score(X[250:], y[250:]) > 0.8
    assert ("x0", "x1") in [(edge.first, edge.second) for edge in regressor.edges_[:3]]
