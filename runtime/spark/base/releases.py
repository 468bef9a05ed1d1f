"""Releases of Spark."""

from __future__ import annotations

import pyspark

__all__ = ["minor_release"]


def minor_release(spark: str = pyspark.__version__) -> str:
    """Major and minor number, ``4.1`` for ``4.1.4``: what packages for Spark are made for."""
    return ".".join(spark.split(".")[:2])
