"""One elastic cable: its line, axial law, forces and breaks."""
