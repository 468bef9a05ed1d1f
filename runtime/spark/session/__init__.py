"""A Spark session and its Python workers: settings, the package for them, signals."""
