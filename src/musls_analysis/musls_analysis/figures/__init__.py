"""Figures of one flight, one module each.

`musls_analysis.figures.write.write_figures` draws them all here,
`musls_analysis.figures.worker.FigureWorkers` in helper processes. Nothing is imported with the
package itself, because matplotlib is slow to import and the helpers are started without it.
"""
