"""Looking at recordings in 3-D: pictures and films drawn without a display, and rerun's viewer.

`scene` says what one sees: a recording, what its bodies look like, where everything is at given
times, a second recording laid over it. `chart` and `picture` draw that, `film` makes files of
pictures, `rerun_log` hands it to the viewer.
"""
