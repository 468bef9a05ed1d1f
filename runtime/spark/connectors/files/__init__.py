"""Files: a folder as a source, and as a sink whose epochs appear whole."""
