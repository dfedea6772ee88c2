"""Array types of annotations: shapes and units stand in the docstrings."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Records = NDArray[np.void]
