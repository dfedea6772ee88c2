"""The benchmark of controllers: its tasks and their scores."""
