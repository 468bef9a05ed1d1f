"""The passes: each one function in one file; its arguments are its dependencies, its facts stay beside the graph."""
