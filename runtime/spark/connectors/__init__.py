"""Where rows come from and go to: the kinds of connectors, behind the interface in `connector`.

Nothing else in the runtime lists the kinds.
"""
