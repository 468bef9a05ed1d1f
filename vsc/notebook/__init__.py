"""Notebooks: ``%load_ext vsc`` adds ``%%vsdl``, and displays plans and queries.

`vsc.api`, from which programs get their plans, calls `show_in_ipython`: plans are displayed without the extension too.
Importing this package does not import IPython.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vsc.notebook.displays import show_in_ipython

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "show_in_ipython"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Registers the magics; ``%load_ext vsc`` calls it."""
    from vsc.notebook.magic import TopologyMagics

    show_in_ipython()
    shell.register_magics(TopologyMagics)
