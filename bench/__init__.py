"""Benchmarks: ``python -m bench`` runs them and writes ``bench/results.md``; see ``bench/README.md``."""
