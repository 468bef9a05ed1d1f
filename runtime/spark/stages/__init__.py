"""What runs in every micro-batch: the plan as one streaming frame, and the tasks of its stages."""
