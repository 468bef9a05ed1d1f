"""Notebooks: ``%load_ext vsc`` brings ``%%vsdl``, and plans and queries show themselves.

`show_in_ipython` is called where programs get their plans (`vsc.api`): a plan shows itself without the extension too.
Importing this package does not import IPython.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsc.notebook.displays import show_in_ipython

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "show_in_ipython"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%load_ext vsc`` calls."""
    from vsc.notebook.magic import TopologyMagics

    show_in_ipython()
    shell.register_magics(TopologyMagics)
