# Shorthands; `train` and `test` are README.md's two commands.
.PHONY: train test lint clean

train:
	python3 -m venv --clear .venv && .venv/bin/pip install -q -e '.[notebooks]' && .venv/bin/python notebooks/train_digits.py

test:
	bash .ci/run

lint:
	.venv/bin/ruff check && .venv/bin/ruff format --check && .venv/bin/mypy tracejit tests

clean:
	rm -rf .venv build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
