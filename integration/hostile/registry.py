"""The cases, and what each says about itself; cases/__init__.py describes it."""

import collections
import importlib
import pkgutil

import cases
from daemons import Limits

# What a module may leave out, and what holds then.
OPTIONAL = {"MOST": {}, "MOST_TIMED": {}, "TARGETS": ("tcd", "dcd"), "TLS": (False, True), "TRANSACTIONS": True, "LIMITS": Limits(),
            "FRESH": False, "TWIN": False, "FEW_CONNECTIONS": False}
Case = collections.namedtuple("Case", ["name", "attack", "slice", "least"] + [what.lower() for what in OPTIONAL])


def _case(name):
    module = importlib.import_module(f"cases.{name}")
    said = {what.lower(): getattr(module, what, otherwise) for what, otherwise in OPTIONAL.items()}
    return Case(name=name, attack=module.attack, slice=module.SLICE, least=module.LEAST, **said)


def load():
    """Name -> case, by name."""
    return {name: _case(name) for name in sorted(module.name for module in pkgutil.iter_modules(cases.__path__))}
