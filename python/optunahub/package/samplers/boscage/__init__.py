"""The sampler of the package `boscage` (see requirements.txt), under the name by which OptunaHub finds it."""

from boscage.optuna import TreeSampler

__all__ = ["TreeSampler"]
