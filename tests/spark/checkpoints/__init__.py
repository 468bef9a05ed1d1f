"""Checkpoints written by former releases, one for each format of the state: ``format-N.tar.gz``."""
