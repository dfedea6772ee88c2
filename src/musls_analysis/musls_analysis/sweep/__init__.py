"""Parameter sweeps: many runs of one scenario, each in a process whose death costs that run only.

A sweep file becomes points and runs (`plan`), flown as far as the folder (`store`) does not hold
them (`run`); the folder gives one table of all runs, and `figures` draws it.
"""
