"""Optimisers for training scripts: pure functions over trees of arrays.

optimizer = tj.optim.adamw(1e-3)
state = optimizer.init(parameters)
updates, state = optimizer.update(gradient, state, parameters)
parameters = tj.optim.apply_updates(parameters, updates)
"""

from __future__ import annotations

from tracejit.optim.clipping import clip, clip_by_global_norm, global_norm
from tracejit.optim.files import load, save
from tracejit.optim.optimizers import adagrad, adam, adamw, lion, rmsprop, sgd
from tracejit.optim.schedules import (
    Schedule,
    constant_schedule,
    cosine_decay_schedule,
    exponential_decay,
    linear_schedule,
    piecewise_constant_schedule,
    warmup_cosine_decay_schedule,
)
from tracejit.optim.transformations import (
    Transformation,
    add_decayed_weights,
    apply_updates,
    chain,
    scale,
    scale_by_learning_rate,
)

__all__ = [
    "Schedule",
    "Transformation",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_global_norm",
    "constant_schedule",
    "cosine_decay_schedule",
    "exponential_decay",
    "global_norm",
    "linear_schedule",
    "lion",
    "load",
    "piecewise_constant_schedule",
    "rmsprop",
    "save",
    "scale",
    "scale_by_learning_rate",
    "sgd",
    "warmup_cosine_decay_schedule",
]


def __dir__() -> list[str]:
    return __all__
