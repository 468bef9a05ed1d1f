"""The windows of an aggregate: tumbling and hopping, sliding, sessions."""
