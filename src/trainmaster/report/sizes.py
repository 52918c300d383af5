"""Jobs by the number of GPUs that they ask for."""

from __future__ import annotations

import math

SIZES = (
    (1, "< 1 GPU"),
    (2, "1 GPU"),
    (5, "2–4 GPUs"),
    (9, "5–8 GPUs"),
    (17, "9–16 GPUs"),
    (math.inf, "17 or more"),
)
"""Upper bound (exclusive) and name of each size class."""


def size_class(num_gpus: float) -> int:
    """Index into SIZES.

    >>> [SIZES[size_class(n)][1] for n in (0.5, 1, 4, 8, 64)]
    ['< 1 GPU', '1 GPU', '2–4 GPUs', '5–8 GPUs', '17 or more']
    """
    return next(index for index, (bound, _) in enumerate(SIZES) if num_gpus < bound)
