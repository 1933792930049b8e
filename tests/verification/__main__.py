"""Counts what is not proven of the programs in a corpus.

    python -m tests.verification [--samples N] [--graphs N] [--first SEED] [--show N] [--vectors N]

Verifies the samples of all ops (one in ``--samples``), the HLO dumps among the tests and
``--graphs`` random graphs, with ``--vectors`` as if vectors had so many bytes. Prints counts by
rule and schedule, and ``--show`` findings of each.
Ends with status 1 if anything is certainly wrong.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.verification.corpus import dumps, lowered, random_graphs, samples
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.verification.program import verify_program


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verification")
    parser.add_argument("--samples", type=int, default=1, metavar="N")
    parser.add_argument("--graphs", type=int, default=60, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--show", type=int, default=1, metavar="N")
    parser.add_argument("--vectors", type=int, metavar="BYTES")
    asked = parser.parse_args(given)
    machine = None if asked.vectors is None else Machine(vector_bytes=asked.vectors)
    counts: Counter[tuple[str, str]] = Counter()
    proven = certain = kernels = 0
    seconds = 0.0
    modules = (samples(asked.samples), dumps(), random_graphs(asked.graphs, asked.first))
    for name, program in lowered(itertools.chain(*modules), machine):
        start = time.process_time()
        report = verify_program(program)
        seconds += time.process_time() - start
        proven += report.proven
        kernels += len(program.kernels)
        for finding in report.unproven:
            kind = finding.rule, finding.schedule
            counts[kind] += 1
            certain += finding.is_certain
            if finding.is_certain or counts[kind] <= asked.show:
                print(f"{'WRONG' if finding.is_certain else 'unproven'}: {name}: {finding}")
    for (rule, schedule), count in counts.most_common():
        print(f"{count:6} {rule}: {schedule}")
    print(f"{proven} proven, {counts.total()} not, in {kernels} kernels; {seconds:.1f} s")
    return int(certain > 0)


if __name__ == "__main__":
    sys.exit(main())
