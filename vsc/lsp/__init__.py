"""``vsc lsp``: answers editors' questions about topologies over the Language Server Protocol.

Each module answers one kind of question about a `Document`; `server` talks to the editor. All facts come from the
compiler. Nothing here starts a JVM or reads data.
"""
