"""Diagnostics: the compiler's findings as values, and how they are shown."""
