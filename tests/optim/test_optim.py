"""Optimisers against PyTorch 2.13's numbers, schedules, clipping, and files of parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tracejit import optim
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError

WEIGHTS = np.array([[0.5, -1.0], [2.0, 0.25]])
BIAS = np.array([0.1, -0.3])
INPUTS = np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, -0.7]])
TARGETS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])

# The weights, then the bias, after five steps of torch.optim's namesakes in f64.
TORCH = {
    "sgd": (
        optim.sgd(0.1),
        [
            [0.5854701923184517, -0.9265706536785218, 1.9150936643869045, 0.3054939665025907],
            [0.11420740363550538, -0.09715373234992618],
        ],
    ),
    "momentum": (
        optim.sgd(0.1, 0.9),
        [
            [0.7233762632755564, -0.8187411617402826, 1.7764253376181232, 0.36991977038514373],
            [0.14108313658649155, 0.21933931049369104],
        ],
    ),
    "nesterov": (
        optim.sgd(0.1, 0.9, nesterov=True),
        [
            [0.7825020361483311, -0.7874493842207738, 1.7087462396187656, 0.3314462591333325],
            [0.17205036703783186, 0.330403181741025],
        ],
    ),
    "decay": (
        optim.sgd(0.1, 0.9, weight_decay=0.05),
        [
            [0.6883837116326663, -0.7589585093840682, 1.6469965057781482, 0.3484860462121831],
            [0.13897598292102362, 0.23305476265340366],
        ],
    ),
    "adam": (
        optim.adam(0.1),
        [
            [1.0008388329890172, -0.6130507735632271, 1.4980530956955305, 0.34923651225367563],
            [0.5699405385942777, 0.18591814506514182],
        ],
    ),
    "adamw": (
        optim.adamw(0.1, weight_decay=0.05),
        [
            [0.9833941339269952, -0.5969106441319486, 1.4535803154100577, 0.33699067188826953],
            [0.5623838565157581, 0.1886025873439294],
        ],
    ),
    "rmsprop": (
        optim.rmsprop(0.1),
        [
            [1.154535402526733, -0.3185717173116828, 0.8881968788178991, 0.4638711272045042],
            [0.9377346088278962, 1.0274953355298726],
        ],
    ),
    "rmsprop momentum": (
        optim.rmsprop(0.1, 0.9, momentum=0.5),
        [
            [1.6431236615904712, -0.7194652502133054, 0.8667582755845623, -0.06116692833075386],
            [1.1226429617483036, 0.9010728257749236],
        ],
    ),
    "adagrad": (
        optim.adagrad(0.1),
        [
            [0.8336702570214696, -0.7282487608881691, 1.6518350626301495, 0.29453341504505937],
            [0.5121054454673705, 0.008403828663314648],
        ],
    ),
}


def loss(parameters: Any) -> Any:
    return np.mean((np.tanh(INPUTS @ parameters["w"] + parameters["b"]) - TARGETS) ** 2)


def trained(optimizer: optim.Transformation, steps: int = 5) -> Any:
    parameters = {"w": WEIGHTS, "b": BIAS}
    state = optimizer.init(parameters)

    @tj.jit
    def step(parameters: Any, state: Any) -> Any:
        gradient = tj.grad(loss)(parameters)
        updates, state = optimizer.update(gradient, state, parameters)
        return optim.apply_updates(parameters, updates), state

    for _ in range(steps):
        parameters, state = step(parameters, state)
    return parameters


@pytest.mark.parametrize("name", TORCH)
def test_as_torch(name: str) -> None:
    optimizer, (weights, bias) = TORCH[name]
    found = trained(optimizer)
    np.testing.assert_allclose(found["w"].ravel(), weights, 1e-12)
    np.testing.assert_allclose(found["b"], bias, 1e-12)


def test_lion_steps_by_signs() -> None:
    optimizer = optim.lion(0.1, 0.9, 0.99, weight_decay=0.5)
    parameters, gradient = np.array([1.0, -2.0]), np.array([3.0, -0.5])
    state = optimizer.init(parameters)
    updates, state = optimizer.update(gradient, state, parameters)
    np.testing.assert_allclose(updates, [-0.1 * 1.5, 0.1 * 2.0])
    np.testing.assert_allclose(state[0], [0.03, -0.005])


def test_dtypes_stay() -> None:
    parameters = {"w": np.ones(3, np.float32), "h": np.ones(2, ml_dtypes.bfloat16)}
    for make in (optim.sgd, optim.adam, optim.adamw, optim.rmsprop, optim.adagrad, optim.lion):
        optimizer = make(optim.cosine_decay_schedule(0.1, 10))
        state = optimizer.init(parameters)
        updates, again = optimizer.update(parameters, state, parameters)
        made = optim.apply_updates(parameters, updates)
        assert tj.tree.map(lambda a: a.dtype, made) == tj.tree.map(lambda a: a.dtype, parameters)
        assert tj.tree.structure(state) == tj.tree.structure(again)
        for old, new in zip(tj.tree.leaves(state), tj.tree.leaves(again), strict=True):
            assert (old.dtype, old.shape) == (new.dtype, np.shape(new))


def test_a_schedule_counts_steps() -> None:
    optimizer = optim.sgd(optim.piecewise_constant_schedule(1.0, {1: 0.1, 3: 0.5}))
    state = optimizer.init(np.zeros(()))
    seen = []
    for _ in range(4):
        updates, state = optimizer.update(np.ones(()), state)
        seen.append(float(-updates))
    np.testing.assert_allclose(seen, [1, 0.1, 0.1, 0.05])


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (optim.constant_schedule(0.3), [0.3, 0.3, 0.3]),
        (optim.linear_schedule(1.0, 0.0, 10), [1.0, 0.5, 0.0]),
        (optim.cosine_decay_schedule(1.0, 10, 0.1), [1.0, 0.55, 0.1]),
        (optim.exponential_decay(1.0, 5, 0.5), [1.0, 0.5, 0.0625]),
        (optim.exponential_decay(1.0, 4, 0.5, staircase=True), [1.0, 0.5, 0.03125]),
        (optim.exponential_decay(1.0, 5, 0.5, end_value=0.2), [1.0, 0.5, 0.2]),
        (optim.piecewise_constant_schedule(1.0, {5: 0.5, 6: 0.5}), [1.0, 0.5, 0.25]),
        (optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 20, 0.1), [0.0, 0.5, 0.1]),
    ],
)
def test_schedules(schedule: optim.Schedule, rates: list[float]) -> None:
    steps = (0, 5, 20)
    np.testing.assert_allclose([schedule(s) for s in steps], rates, 1e-12, 1e-12)
    compiled = tj.jit(schedule)
    np.testing.assert_allclose([compiled(np.int32(s)) for s in steps], rates, 1e-6, 1e-7)


def test_clipping() -> None:
    gradient = {"a": np.array([3.0, -0.5]), "b": np.array(4.0)}
    norm = np.sqrt(9 + 0.25 + 16)
    np.testing.assert_allclose(optim.global_norm(gradient), norm)
    clipped, _ = optim.clip(1.0).update(gradient, ())
    np.testing.assert_allclose(clipped["a"], [1.0, -0.5])
    scaled, _ = optim.clip_by_global_norm(1.0).update(gradient, ())
    np.testing.assert_allclose(scaled["b"], 4 / norm)
    same, _ = optim.clip_by_global_norm(10.0).update(gradient, ())
    np.testing.assert_allclose(same["a"], gradient["a"])


def test_chains() -> None:
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.scale(2.0), optim.sgd(0.5))
    state = optimizer.init(np.zeros(2))
    updates, _ = optimizer.update(np.array([3.0, 4.0]), state)
    np.testing.assert_allclose(updates, [-0.6, -0.8])
    with pytest.raises(ArgumentError, match="of 1 transformations, not of 3"):
        optimizer.update(np.ones(2), ((),))


def test_decay_needs_parameters() -> None:
    optimizer = optim.adamw(0.1)
    with pytest.raises(ArgumentError, match="needs update"):
        optimizer.update(np.ones(2), optimizer.init(np.ones(2)))


def test_schedules_are_checked() -> None:
    with pytest.raises(AttributeValueError, match="decay_steps must be positive, not 0"):
        optim.cosine_decay_schedule(1.0, 0)
    with pytest.raises(AttributeValueError, match="more than warmup_steps, 10"):
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10)


PARAMETERS = {
    "layers": [{"w": np.arange(6.0).reshape(2, 3)}, {"w": np.zeros((0, 2), np.float32)}],
    "half": np.array([1.5, -2], ml_dtypes.bfloat16),
    "step": np.array(7, np.int32),
}


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_files(ending: str, tmp_path: Path) -> None:
    if ending == "safetensors":
        pytest.importorskip("safetensors")
    path = tmp_path / f"parameters.{ending}"
    optim.save(path, PARAMETERS)
    found = optim.load(path, tj.tree.map(np.zeros_like, PARAMETERS))
    assert tj.tree.structure(found) == tj.tree.structure(PARAMETERS)
    for new, old in zip(tj.tree.leaves(found), tj.tree.leaves(PARAMETERS), strict=True):
        assert new.dtype == old.dtype
        np.testing.assert_array_equal(new, old)


def test_a_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "parameters.npz"
    optim.save(path, {"w": np.ones(2)})
    with pytest.raises(ArgumentError, match=r"lacks \[\"\['v'\]\"\]"):
        optim.load(path, {"v": np.ones(2)})
    with pytest.raises(ArgumentError, match=r"is float64\[2\], not float32\[3\]"):
        optim.load(path, {"w": np.ones(3, np.float32)})
    with pytest.raises(UnsupportedError, match=r"must end in .npz or .safetensors"):
        optim.save(tmp_path / "parameters.txt", PARAMETERS)
