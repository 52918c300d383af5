"""Contract tests that you inherit: `PolicyContract` for policies, `ReaderContract` for trace readers.

>>> from trainmaster.testing import PolicyContract, ReaderContract
"""

from trainmaster.testing.policies import PolicyContract
from trainmaster.testing.readers import ReaderContract

__all__ = ["PolicyContract", "ReaderContract"]
