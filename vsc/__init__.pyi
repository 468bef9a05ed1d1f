from vsc.api import compile as compile
from vsc.api import start as start
from vsc.compiler import TopologyError as TopologyError

__all__ = ["TopologyError", "__version__", "compile", "start"]
__version__: str
