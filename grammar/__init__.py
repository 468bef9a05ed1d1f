"""The grammar of the language, as data."""
