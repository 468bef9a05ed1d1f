"""Where rows come from and go to: one file for each kind of connector, behind the interface in `connector`.

Nothing else in the runtime lists the kinds.
"""
