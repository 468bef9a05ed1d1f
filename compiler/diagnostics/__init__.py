"""Diagnostics: what the compiler has to say, as values, and how it is shown."""
