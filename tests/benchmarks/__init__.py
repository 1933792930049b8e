"""Side-by-side measurements: tracejit, NumPy, JAX and PyTorch.

`python -m tests.benchmarks` prints tables of ratios and writes a picture and a JSON file;
`--help` lists the options. A new measurement is one entry in a table under `cases/`.
"""
