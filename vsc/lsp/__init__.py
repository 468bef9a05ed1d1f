"""``vsc lsp``: what editors ask about topologies, over the Language Server Protocol.

Each file answers one kind of question about a `Document`; `server` speaks with the editor. All facts are the
compiler's. Nothing here starts a JVM or reads data.
"""
