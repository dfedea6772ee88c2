"""Parameter sweeps: many runs of one scenario, spread over processes or machines.

A sweep file (`spec`) becomes points (`sampling`) and runs (`plan`); `execute` flies what the
folder (`store`) does not hold yet, each run in a process (`process`, `worker`) whose death costs
that run only; `metrics` and `table` make one table of all runs, `overlay` and `metric_figure` the
figures.
"""
