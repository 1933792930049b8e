"""The scripts beside the notebooks, imported from their files: `notebooks/` is no package."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.project import checkout


def load(name: str) -> ModuleType:
    """A new module from `notebooks/{name}.py`."""
    spec = importlib.util.spec_from_file_location(name, checkout.ROOT / "notebooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while it is being executed.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
