"""One training step of the network of `notebooks/train_digits.py`, with Adam.

Convolution, batch normalisation, relu and max pooling, twice; a dense layer; softmax and
cross-entropy; gradients; new parameters and moments.
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, Target

Tree = dict[str, Any]

CHANNELS = 16, 32
RATE, DECAY, DECAY_SQUARE, EPSILON = 0.01, 0.9, 0.999, 1e-5


def inputs(rng: numpy.random.Generator, batch: int) -> tuple[Any, ...]:
    """Parameters, first and second moments, images and labels."""
    first, second = CHANNELS
    shapes = {
        "kernel1": (3, 3, 1, first),
        "scale1": (first,),
        "offset1": (first,),
        "kernel2": (3, 3, first, second),
        "scale2": (second,),
        "offset2": (second,),
        "weights": (second * 4, 10),
        "bias": (10,),
    }
    parameters = {k: 0.3 * rng.standard_normal(s, dtype=numpy.float32) for k, s in shapes.items()}
    moments = {k: numpy.zeros_like(p) for k, p in parameters.items()}
    # A second moment of zero would make the first update all sign, whatever the gradient's size.
    squares = {k: numpy.ones_like(p) for k, p in parameters.items()}
    images = rng.random((batch, 8, 8, 1), dtype=numpy.float32)
    return parameters, moments, squares, images, rng.integers(0, 10, batch, dtype=numpy.int32)


def batch_norm(np: Any, x: Any, scale: Any, offset: Any) -> Any:
    mean = np.mean(x, axis=(0, 1, 2))
    variance = np.var(x, axis=(0, 1, 2))
    normal = (x - mean) / np.sqrt(variance + EPSILON)
    return normal * scale + offset


def batch_norm_tracejit(tj: Any, x: Any, scale: Any, offset: Any) -> Any:
    return tj.nn.batch_norm(x, scale, offset, EPSILON)[0]


def step(lib: Any, norm: Any, p: Tree, m: Tree, v: Tree, x: Any, labels: Any) -> Any:
    np, lax = lib.numpy, lib.lax

    def loss(p: Tree) -> Any:
        h = x
        for i in "12":
            h = lax.conv_general_dilated(
                h, p["kernel" + i], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            h = np.maximum(norm(h, p["scale" + i], p["offset" + i]), 0)
            h = lax.reduce_window(h, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = h.reshape(h.shape[0], -1) @ p["weights"] + p["bias"]
        logits = logits - np.max(logits, axis=1, keepdims=True)
        log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
        return -np.mean(log_probabilities * (labels[:, None] == np.arange(10))) * 10

    value, g = lib.value_and_grad(loss)(p)
    m = {k: DECAY * m[k] + (1 - DECAY) * g[k] for k in p}
    v = {k: DECAY_SQUARE * v[k] + (1 - DECAY_SQUARE) * g[k] ** 2 for k in p}
    p = {k: p[k] - RATE * m[k] / (np.sqrt(v[k]) + 1e-8) for k in p}
    return value, p, m, v


def step_jax(jax: Any, *arguments: Any) -> Any:
    return step(jax, lambda *a: batch_norm(jax.numpy, *a), *arguments)


def step_tracejit(tj: Any, *arguments: Any) -> Any:
    return step(tj, lambda *a: batch_norm_tracejit(tj, *a), *arguments)


def to_torch(name: str, x: Any) -> Any:
    """An array of this layout, features last, in PyTorch's, features before height and width."""
    if name.startswith("kernel"):
        return x.permute(3, 2, 0, 1).contiguous()
    if name == "weights":
        return x.reshape(2, 2, -1, 10).permute(2, 0, 1, 3).reshape(-1, 10)
    return x.clone()


def from_torch(name: str, x: Any) -> Any:
    """The way back."""
    if name.startswith("kernel"):
        return x.permute(2, 3, 1, 0)
    if name == "weights":
        return x.reshape(-1, 2, 2, 10).permute(1, 2, 0, 3).reshape(-1, 10)
    return x


class TorchStep:
    """The same in PyTorch's way: parameters and moments live in an optimiser, updated in place.

    The first call takes them from its arguments, and gives them back in the other engines' layout
    for comparison; the later calls go on from there.
    """

    def __init__(self) -> None:
        self.optimiser: Any = None
        self.parameters: Tree = {}

    def begin(self, torch: Any, p: Tree, m: Tree, v: Tree) -> None:
        self.parameters = {k: to_torch(k, p[k]).requires_grad_() for k in sorted(p)}
        self.optimiser = torch.optim.Adam(
            self.parameters.values(), lr=RATE, betas=(DECAY, DECAY_SQUARE), fused=True
        )
        for name, parameter in self.parameters.items():
            # Step counts this large leave Adam's bias corrections at one.
            self.optimiser.state[parameter] = {
                "step": torch.tensor(1e5),
                "exp_avg": to_torch(name, m[name]),
                "exp_avg_sq": to_torch(name, v[name]),
            }

    def __call__(self, torch: Any, p: Tree, m: Tree, v: Tree, x: Any, labels: Any) -> Any:
        if self.parameters:
            return self.step(torch, x, labels)
        self.begin(torch, p, m, v)
        loss = self.step(torch, x, labels)
        given, state = self.parameters, self.optimiser.state
        moments = {k: from_torch(k, state[q]["exp_avg"]) for k, q in given.items()}
        squares = {k: from_torch(k, state[q]["exp_avg_sq"]) for k, q in given.items()}
        return loss, {k: from_torch(k, q) for k, q in given.items()}, moments, squares

    def step(self, torch: Any, x: Any, labels: Any) -> Any:
        functional, p = torch.nn.functional, self.parameters
        # There is one feature: this moves nothing.
        x = x.permute(0, 3, 1, 2)
        for i in "12":
            x = functional.conv2d(x, p["kernel" + i], padding=1)
            scale, offset = p["scale" + i], p["offset" + i]
            x = functional.batch_norm(x, None, None, scale, offset, training=True, eps=EPSILON)
            x = functional.max_pool2d(functional.relu(x), 2)
        loss = functional.cross_entropy(x.flatten(1) @ p["weights"] + p["bias"], labels.long())
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss


def digits(batch: int, start: bool = False) -> Case:
    return Case(
        f"training step, digits, batch {batch}",
        (batch,),
        tiny=(4,),
        inputs=inputs,
        tracejit=step_tracejit,
        jax=step_jax,
        torch=TorchStep(),
        start=start,
        target=Target(0.8),
        tolerance=1e-3,
        memory=start,
    )


CASES = [digits(32, start=True), digits(256)]
