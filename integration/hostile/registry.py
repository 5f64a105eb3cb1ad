"""The cases. Each is a function with a file of its own under cases/: `attack(target, until)` attacks until that monotonic time."""

import importlib
import pkgutil

import cases


def load():
    """Name -> module, by name."""
    found = {}
    for module in pkgutil.iter_modules(cases.__path__):
        found[module.name] = importlib.import_module(f"cases.{module.name}")
    return dict(sorted(found.items()))
