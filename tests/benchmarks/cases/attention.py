"""One training step of `notebooks/train_transformer.py`: a transformer block, and AdamW.

PyTorch attends by its own fused function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tests.benchmarks.case import Case, Target
from tests.benchmarks.cases.optimiser import TorchTraining, Tree, adam, begin

HEADS, LENGTH, LETTERS = 4, 32, 63
RATE, WARM, STEPS, WEIGHT_DECAY = 3e-3, 200, 2000, 1e-2


def inputs(rng: numpy.random.Generator, batch: int, width: int) -> tuple[Any, ...]:
    """The state, and numbers of characters s32[batch, length + 1]."""

    def draw(*shape: int) -> numpy.ndarray:
        return numpy.asarray(rng.standard_normal(shape) / math.sqrt(shape[0]), numpy.float32)

    parameters = {
        "embedding": draw(LETTERS, width),
        "position": draw(LENGTH, width),
        "qkv": draw(width, 3 * width),
        "project": draw(width, width),
        "up": draw(width, 4 * width),
        "down": draw(4 * width, width),
        **{f"scale{n}": numpy.ones(width, numpy.float32) for n in range(3)},
        "out": draw(width, LETTERS),
    }
    return begin(parameters), rng.integers(0, LETTERS, (batch, LENGTH + 1), dtype=numpy.int32)


def rate(count: int) -> float:
    """Warms up along a line, then falls along half a cosine."""
    if count < WARM:
        return RATE * count / WARM
    return RATE * 0.5 * (1 + math.cos(math.pi * min((count - WARM) / (STEPS - WARM), 1)))


def traced_rate(np: Any, count: Any) -> Any:
    """The same of a traced count."""
    falling = 0.5 * (1 + np.cos(np.pi * np.minimum((count - WARM) / (STEPS - WARM), 1)))
    return RATE * np.where(count < WARM, count / WARM, falling)


def step(lib: Any, state: Tree, text: Any) -> Any:
    np = lib.numpy

    def normalise(x: Any, scale: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale

    def attend(x: Any, p: Tree) -> Any:
        batch, length, width = x.shape
        qkv = (x @ p["qkv"]).reshape(batch, length, 3, HEADS, width // HEADS)
        q, k, v = (qkv[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(width // HEADS)
        mask = np.tril(np.ones((length, length), bool))
        weights = lib.nn.softmax(np.where(mask, scores, -np.inf))
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return mixed @ p["project"]

    def loss(p: Tree) -> Any:
        x = p["embedding"][text[:, :-1]] + p["position"]
        x = x + attend(normalise(x, p["scale0"]), p)
        x = x + lib.nn.gelu(normalise(x, p["scale1"]) @ p["up"]) @ p["down"]
        logits = normalise(x, p["scale2"]) @ p["out"]
        picked = np.take_along_axis(lib.nn.log_softmax(logits), text[:, 1:, None], 2)
        return -np.mean(picked)

    value, gradient = lib.value_and_grad(loss)(state["parameters"])
    return value, adam(np, state, gradient, traced_rate(np, state["count"]), WEIGHT_DECAY)


def torch_loss(torch: Any, p: Tree, text: Any) -> Any:
    functional = torch.nn.functional

    def normalise(x: Any, scale: Any) -> Any:
        return functional.layer_norm(x, scale.shape, scale, eps=1e-5)

    x = functional.embedding(text[:, :-1], p["embedding"]) + p["position"]
    batch, length, width = x.shape
    qkv = (normalise(x, p["scale0"]) @ p["qkv"]).reshape(batch, length, 3, HEADS, width // HEADS)
    q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.transpose(1, 2).reshape(batch, length, width) @ p["project"]
    hidden = functional.gelu(normalise(x, p["scale1"]) @ p["up"], approximate="tanh")
    x = x + hidden @ p["down"]
    logits = normalise(x, p["scale2"]) @ p["out"]
    return functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten().long())


CASES = [
    Case(
        "training step, transformer",
        (16, 88),
        tiny=(2, 8),
        inputs=inputs,
        tracejit=step,
        jax=step,
        torch=TorchTraining(torch_loss, RATE, weight_decay=WEIGHT_DECAY, schedule=rate),
        target=Target(0.8),
        tolerance=1e-3,
        memory=True,
    )
]
