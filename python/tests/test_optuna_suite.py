"""Optuna's own tests of samplers, as it publishes them (since version 5). Nothing is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import optuna.testing.pytest_samplers as samplers

from boscage.optuna import TreeSampler  # noqa: E402


class TestTreeSampler(
    samplers.BasicSamplerTestCase,  # type: ignore[misc, name-defined]
    samplers.RelativeSamplerTestCase,  # type: ignore[misc, name-defined]
    samplers.SingleOnlySamplerTestCase,  # type: ignore[misc, name-defined]
):
    """All cases for samplers of studies with one goal.

    `MultiObjectiveSamplerTestCase` is for studies with several; `SingleOnlySamplerTestCase`, its opposite, is for us.
    """

    @pytest.fixture
    def sampler(self) -> Callable[[], TreeSampler]:
        return lambda: TreeSampler(seed=1, n_startup_trials=3)
