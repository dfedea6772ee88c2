"""Looking at recordings in 3-D: pictures and films drawn without a display, and rerun's viewer.

`subject` says what one sees (a recording, what its bodies look like, where its time starts),
`sampled` where everything is at given times; `camera`, `canvas`, `bodies`, `ground`, `chart` and
`picture` draw that, `film` makes films of pictures, `rerun_log` hands it to the viewer.
"""
