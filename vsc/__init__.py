"""vsc: versioned stream topologies, compiled to Apache Spark Structured Streaming.

``vsc.compile`` turns a topology into its plan, ``vsc.start`` runs it in a Spark session. Both are loaded on first use:
this package imports nothing, so that ``vsc check`` starts fast. Its parts:

* ``vsc.compiler``: text to plan. Needs neither Spark nor a JVM.
* ``vsc.plan``: the plan, the only interface between compiler and runtime. Standard library only.
* ``vsc.runtime``: the plan's operators, their state, and how they run on Spark.
* ``vsc.testing``: the test driver; it needs no JVM.
"""

__all__ = ["TopologyError", "__version__", "compile", "start"]

__version__ = "1.0.0rc1"

_LAZY = {
    "TopologyError": "vsc.compiler",
    "compile": "vsc.api",
    "load_ipython_extension": "vsc.notebook",  # %load_ext vsc
    "start": "vsc.api",
}
"""The module of each name. Type checkers read ``__init__.pyi`` instead."""


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
