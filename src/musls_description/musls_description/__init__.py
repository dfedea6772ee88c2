"""Systems of several UAVs that carry a slung load: their parts, models and starts.

Internal: what users may rely on is in `musls` and its modules.
"""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment that keeps linear algebra to one thread, to be set before NumPy is imported.

Nothing here multiplies large matrices. OpenBLAS and OpenMP would start a thread a core all the
same, which waits busily at first and takes the core that another process could use.
"""
