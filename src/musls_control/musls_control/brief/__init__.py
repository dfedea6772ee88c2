"""Record of a planned flight (`Brief`), and the list of findings against it."""
