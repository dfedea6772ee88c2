"""Environment that keeps linear algebra to one thread.

Nothing here multiplies large matrices. OpenBLAS and OpenMP would start a thread a core all the
same, which waits busily at first and takes the core that another process could use.
"""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Variables to set before NumPy is imported."""
