"""Runs topologies, kills them with ``kill -9`` at random points, and compares what is left with an undisturbed run."""
