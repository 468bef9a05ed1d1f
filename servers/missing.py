"""Finds programs that a machine must have, or raises an error that says what to install."""

from __future__ import annotations

import shutil

__all__ = ["MissingProgramError", "program"]


class MissingProgramError(Exception):
    """A program is not installed; the message says which, and how to get it."""


def program(name: str, install: str) -> str:
    """The path of a program. Raises MissingProgramError, with the advice `install`, if it is not on the machine."""
    found = shutil.which(name)
    if found is None:
        raise MissingProgramError(f"{name} is not installed: {install}")
    return found
