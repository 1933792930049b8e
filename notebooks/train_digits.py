"""Train a convolutional network on scikit-learn's handwritten digits.

    python notebooks/train_digits.py [--epochs 15] [--seed 0] [--output out] [--target cuda]
    mpiexec -n 4 python notebooks/train_digits.py        # each rank has a quarter of every batch

The network and its loss are written in NumPy style. `tj.jit` traces the training step into an
XLA graph, `tj.value_and_grad` differentiates that graph in reverse mode, and TVM compiles it.
The output folder receives `gradient.hlo`, the loss's gradient as HLO text, and `learning.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tracejit as tj

Array = np.ndarray
Step = Callable[["Tree", Array, Array, Array], tuple["Tree", Array]]
# Arrays by name; lists of them, where each of the two blocks has its own.
Tree = dict[str, Any]

CHANNELS = 16, 32
CLASSES = 10
BATCH = 32
RATE = 0.01
# Batch normalisation: added to the variance; weight of the past in the running statistics.
EPSILON = 1e-5
MEMORY = 0.9


# --- The data ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """Images f32[n, 8, 8, 1] between 0 and 1, and labels s32[n], to train and to test with."""

    images: Array
    labels: Array
    test_images: Array
    test_labels: Array


def load(seed: int) -> Digits:
    """1797 digits; a quarter of them, as many of each class, is kept away from training."""
    bundled = load_digits()
    images = (bundled.images[..., None] / 16).astype(np.float32)
    labels = bundled.target.astype(np.int32)
    train, test, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=seed
    )
    return Digits(train, train_labels, test, test_labels)


def in_double(digits: Digits) -> Digits:
    """The same images in double precision."""
    images, test_images = (x.astype(np.float64) for x in (digits.images, digits.test_images))
    return Digits(images, digits.labels, test_images, digits.test_labels)


# --- The network: plain NumPy, and tracejit's names where NumPy has none -------------------------


def make_parameters(rng: np.random.Generator) -> Tree:
    """Kernels and weights drawn for relu (He et al., 2015); scales of one, offsets of zero."""

    def draw(*shape: int, inputs: int) -> Array:
        return (rng.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)

    first, second = CHANNELS
    return {
        "kernel": [draw(3, 3, 1, first, inputs=9), draw(3, 3, first, second, inputs=9 * first)],
        "scale": [np.ones(n, np.float32) for n in CHANNELS],
        "offset": [np.zeros(n, np.float32) for n in CHANNELS],
        "weights": draw(second * 4, CLASSES, inputs=second * 4),
        "bias": np.zeros(CLASSES, np.float32),
    }


def make_statistics() -> Tree:
    """What inference normalises with, until a training step has seen images."""
    return {
        "mean": [np.zeros(n, np.float32) for n in CHANNELS],
        "variance": [np.ones(n, np.float32) for n in CHANNELS],
    }


def relu_and_pool(x: Array) -> Array:
    """Zero instead of negative, then the greatest of every 2x2: f32[n, h/2, w/2, c]."""
    return tj.nn.max_pool(np.maximum(x, 0), (2, 2), (2, 2))


def classify(x: Array, parameters: Tree) -> Array:
    """The dense layer: f32[n, h, w, c] -> logits f32[n, 10]."""
    return x.reshape(x.shape[0], -1) @ parameters["weights"] + parameters["bias"]


def train_logits(parameters: Tree, x: Array, axis: str | None) -> tuple[Array, Tree]:
    """Logits, normalised with this batch's own statistics, which are returned as well.

    The batch is that of all devices along ``axis``, where there is one.
    """
    means, variances = [], []
    for kernel, scale, offset in zip(
        parameters["kernel"], parameters["scale"], parameters["offset"], strict=True
    ):
        x = tj.nn.conv(x, kernel)
        x, mean, variance = tj.nn.batch_norm(x, scale, offset, EPSILON, axis_name=axis)
        x = relu_and_pool(x)
        means.append(mean)
        variances.append(variance)
    return classify(x, parameters), {"mean": means, "variance": variances}


def infer_logits(parameters: Tree, statistics: Tree, x: Array) -> Array:
    """Logits, normalised with the running statistics."""
    for kernel, scale, offset, mean, variance in zip(
        parameters["kernel"],
        parameters["scale"],
        parameters["offset"],
        statistics["mean"],
        statistics["variance"],
        strict=True,
    ):
        x = tj.nn.conv(x, kernel)
        x = tj.nn.batch_norm_inference(x, scale, offset, mean, variance, EPSILON)
        x = relu_and_pool(x)
    return classify(x, parameters)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean of -log softmax(logits)[label]: f32[]."""
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(log_probabilities[np.arange(len(labels)), labels])


def loss(
    parameters: Tree, images: Array, labels: Array, axis: str | None = None
) -> tuple[Array, Tree]:
    """The loss; beside it, not differentiated, the batch's statistics."""
    logits, statistics = train_logits(parameters, images, axis)
    return cross_entropy(logits, labels), statistics


# --- Training ------------------------------------------------------------------------------------


def make_state(rng: np.random.Generator) -> Tree:
    """All that a training step changes."""
    parameters = make_parameters(rng)
    return {
        "parameters": parameters,
        "statistics": make_statistics(),
        "first": tj.tree.map(np.zeros_like, parameters),
        "second": tj.tree.map(np.zeros_like, parameters),
        "step": np.float32(0),
    }


def adam(state: Tree, gradient: Tree, rate: Array) -> Tree:
    """One step of Adam (Kingma and Ba, 2015), as a function from state to state."""
    step = state["step"] + 1
    first = tj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["first"], gradient)
    second = tj.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["second"], gradient)
    first_scale, second_scale = 1 / (1 - 0.9**step), 1 / (1 - 0.999**step)

    def update(p: Array, m: Array, v: Array) -> Array:
        return p - rate * (m * first_scale) / (np.sqrt(v * second_scale) + 1e-8)

    parameters = tj.tree.map(update, state["parameters"], first, second)
    return {**state, "parameters": parameters, "first": first, "second": second, "step": step}


def train_step(
    state: Tree, images: Array, labels: Array, rate: Array, axis: str | None = None
) -> tuple[Tree, Array]:
    """The next state, and the batch's loss; each device along ``axis`` has a part of the batch."""
    loss_and_gradient = tj.value_and_grad(partial(loss, axis=axis), has_aux=True)
    (value, batch), gradient = loss_and_gradient(state["parameters"], images, labels)
    if axis is not None:
        value, gradient = tj.lax.pmean((value, gradient), axis)
    running = tj.tree.map(
        lambda old, new: MEMORY * old + (1 - MEMORY) * new, state["statistics"], batch
    )
    return {**adam(state, gradient, rate), "statistics": running}, value


def parallel_step(mesh: tj.Mesh) -> Step:
    """`train_step` on all devices of a mesh, which share out each batch."""
    (axis,) = mesh.axis_names
    batch, whole = tj.P(axis), tj.P()
    return tj.shard_map(
        partial(train_step, axis=axis),
        mesh=mesh,
        in_specs=(whole, batch, batch, whole),
        out_specs=(whole, whole),
    )


def predict(state: Tree, images: Array) -> Array:
    """The most likely class of each image: s64[n]."""
    return np.argmax(infer_logits(state["parameters"], state["statistics"], images), axis=1)


def learning_rate(progress: float) -> np.float32:
    """Falls from RATE to zero along half a cosine, ``progress`` running from 0 to 1."""
    return np.float32(RATE * 0.5 * (1 + np.cos(np.pi * progress)))


@dataclass(frozen=True)
class Curves:
    """What was seen while training: a loss per step, an accuracy on the test images per epoch."""

    losses: list[float]
    accuracies: list[float]
    seconds_per_step: float


def train(
    digits: Digits,
    state: Tree,
    step: Step,
    predicted: Callable[[Tree, Array], Array],
    rng: np.random.Generator,
    epochs: int,
) -> tuple[Tree, Curves]:
    """Goes through the training images ``epochs`` times, in batches drawn anew each time."""
    batches = len(digits.images) // BATCH
    losses: list[float] = []
    accuracies: list[float] = []
    seconds = []
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(
            "steps, loss {task.fields[loss]:.4f}, test accuracy {task.fields[accuracy]:.2%}"
        ),
        TimeElapsedColumn(),
    )
    with Progress(*columns, disable=tj.distributed.process_index() > 0) as progress:
        bar = progress.add_task("train", total=epochs * batches, loss=np.nan, accuracy=0.0)
        for _ in range(epochs):
            order = rng.permutation(len(digits.images))[: batches * BATCH]
            for chosen in order.reshape(batches, BATCH):
                rate = learning_rate(len(losses) / (epochs * batches))
                images, labels = digits.images[chosen], digits.labels[chosen]
                start = perf_counter()
                state, value = step(state, images, labels, rate)
                seconds.append(perf_counter() - start)
                losses.append(float(value))
                progress.update(bar, advance=1, loss=losses[-1])
            right = np.asarray(predicted(state, digits.test_images)) == digits.test_labels
            accuracies.append(float(np.mean(right)))
            progress.update(bar, accuracy=accuracies[-1])
    return state, Curves(losses, accuracies, float(np.median(seconds)))


# --- What is left behind -------------------------------------------------------------------------


def draw(curves: Curves, path: Path) -> None:
    """The learning curves, as a PNG."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.semilogy(curves.losses, linewidth=0.8)
    left.set(xlabel="step", ylabel="loss of the batch", title="Training")
    epochs = range(1, len(curves.accuracies) + 1)
    right.plot(epochs, [100 * accuracy for accuracy in curves.accuracies], "o-")
    right.axhline(98, color="grey", linewidth=0.8)
    right.set(xlabel="epoch", ylabel="% of the test images right", title="Images never trained on")
    figure.savefig(path, dpi=120)


def main(
    epochs: int = 15,
    seed: int = 0,
    output: Path = Path("out"),
    double: bool = False,
    target: str = "cpu",
) -> float:
    """Trains, writes the pictures and the graph, and gives the accuracy on the test images."""
    if tj.distributed.is_launched():
        tj.distributed.initialize()
    ranks = tj.distributed.process_count()
    output.mkdir(parents=True, exist_ok=True)
    digits = load(seed)
    rng = np.random.default_rng(seed)
    state = make_state(rng)
    if double:
        digits, state = in_double(digits), tj.tree.map(np.float64, state)
    example = state, digits.images[:BATCH], digits.labels[:BATCH], learning_rate(0)

    start = perf_counter()
    if ranks > 1:
        step = parallel_step(tj.make_mesh((ranks,), ("batch",)))
        traced = start
        step(*example)
    else:
        lowered = tj.jit(train_step, target=target).lower(*example)
        traced = perf_counter()
        step = lowered.compile()
    compiled = perf_counter()

    gradient = tj.jit(tj.value_and_grad(loss, has_aux=True))
    text = gradient.lower(state["parameters"], *example[1:3]).as_text("hlo")

    state, curves = train(digits, state, step, tj.jit(predict, target=target), rng, epochs)
    if tj.distributed.process_index() > 0:
        return curves.accuracies[-1]
    (output / "gradient.hlo").write_text(text, encoding="utf-8")
    np.savetxt(output / "losses.txt", curves.losses)
    draw(curves, output / "learning.png")

    print(f"tracing the training step    {traced - start:8.3f} s")
    print(f"compiling it                 {compiled - traced:8.3f} s")
    print(f"a step of {BATCH} images         {1e3 * curves.seconds_per_step:8.3f} ms")
    print(f"instructions in the gradient {text.count(' = '):8d}")
    print(f"test accuracy                {curves.accuracies[-1]:8.2%}")
    print(f"wrote gradient.hlo and learning.png to {output}")
    return curves.accuracies[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("out"))
    parser.add_argument("--double", action="store_true", help="float64 instead of float32")
    parser.add_argument("--target", default="cpu", help='what it trains on: "cpu" or "cuda"')
    options = parser.parse_args()
    main(options.epochs, options.seed, options.output, options.double, options.target)
