"""Former name of `musls.learning`."""

import gymnasium  # noqa: F401 (missing, it is named first)

from musls import learning
from musls._deprecated import ENVS

__all__ = list(learning.__all__)
__getattr__ = learning.__getattr__
IDS = learning.IDS

ENVS.warn()
