"""Parameter sweeps: many runs of one scenario, spread over processes or machines.

A sweep file (`spec`) becomes points and runs (`plan`); `run` flies what the
folder (`store`) does not hold yet, each run in a process whose death costs
that run only; `signals` and `store` make one table of all runs, `overlay` and `metric_figure` the
figures.
"""
