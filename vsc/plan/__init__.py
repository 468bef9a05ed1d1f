"""The plan: the one typed seam between the compiler and the runtime. Standard library only.

The compiler makes a `Plan`, the runtime runs it; neither imports the other. `dump` and `load` are its JSON, byte for
byte the same for the same topology.
"""
