"""Runs topologies, kills them with ``kill -9`` at random points, and compares the results with an undisturbed run."""
