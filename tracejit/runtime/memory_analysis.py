"""How much memory a compiled program takes.

print(jit(f).lower(x).compile().memory_analysis())
"""

from __future__ import annotations

from dataclasses import dataclass

from tracejit.errors import UnsupportedError
from tracejit.loading import supplied
from tracejit.runtime.executable import Executable


@dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes: ``temp_size_in_bytes`` is one workspace, which values share that do not live at once.

    ``alias_size_in_bytes`` is the part of the results that is written over donated arguments.
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    constant_size_in_bytes: int
    temp_size_in_bytes: int

    @property
    def total_size_in_bytes(self) -> int:
        """All together; what is written over an argument counts once."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            - self.alias_size_in_bytes
            + self.constant_size_in_bytes
            + self.temp_size_in_bytes
        )

    def _repr_html_(self) -> str:
        """A table with bars, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html


def memory_analysis(executable: object) -> MemoryAnalysis:
    """The analysis of a compiled program. Raises `UnsupportedError` for one that is interpreted."""
    if not isinstance(executable, Executable):
        raise UnsupportedError("memory_analysis: the program is interpreted, not compiled")
    artifact = executable.artifact
    return MemoryAnalysis(
        sum(spec.nbytes for spec in artifact.inputs),
        sum(spec.nbytes for spec in artifact.outputs),
        sum(artifact.outputs[output].nbytes for output in artifact.aliases),
        sum(constant.nbytes for constant in artifact.constants),
        artifact.workspace_bytes,
    )
