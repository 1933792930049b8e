"""Fft."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import COMPLEX
from tracejit.shapes import ElementType, Shape

_REAL = (ElementType.F32, ElementType.F64)
_LENGTHS = (4, 3, 1, 2, 5, 7, 8, 16, 0)


def fft(graph: Graph) -> Instruction:
    """One to three axes, any type of transform; lengths that are not powers of two, too."""
    choices = graph.choices
    element_type = graph.element_type((*_REAL, *COMPLEX))
    kinds = ("RFFT",) if element_type in _REAL else ("FFT", "IFFT", "IRFFT")
    if element_type in _REAL and choices.chance(2):
        # The type of the result, of a transform from the complex numbers of that width.
        wide = ElementType.C128 if element_type is ElementType.F64 else ElementType.C64
        element_type, kinds = wide, ("IRFFT",)
    kind = choices.pick(kinds)
    lengths = [choices.pick(_LENGTHS) for _ in range(choices.pick((1, 1, 2, 3)))]
    sizes = [choices.pick((2, 1, 3, 0)) for _ in range(choices.pick((0, 1, 1, 2)))] + lengths
    if kind == "IRFFT":
        sizes[-1] = lengths[-1] // 2 + 1
    return ops.fft(graph.like(Shape(element_type, tuple(sizes))), kind, lengths)


STEPS = {"Fft": (fft,)}
