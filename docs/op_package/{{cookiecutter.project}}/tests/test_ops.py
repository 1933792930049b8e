import numpy as np
from tracejit.custom_ops import opcheck

from {{ cookiecutter.package }} import leaky


def test_leaky():
    x = np.array([-1, 2, -3], np.float32)
    np.testing.assert_array_equal(leaky(x, slope=0.5), [-0.5, 2, -1.5])
    opcheck(leaky, x, slope=0.5)
