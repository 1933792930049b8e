"""Samples of ConvGeneralDilated."""

from __future__ import annotations

from tests.samples.base import Sample
from tests.samples.contraction import arrays
from tracejit import ops
from tracejit.attributes import ConvDimensionNumbers
from tracejit.ops.base import ALL, FLOATING
from tracejit.shapes import ElementType

NHWC = ConvDimensionNumbers.from_labels("NHWC", "HWIO", "NHWC")
NCHW = ConvDimensionNumbers.from_labels("NCHW", "OIHW", "NCHW")
MIXED = ConvDimensionNumbers.from_labels("CHNW", "WOHI", "WNHC")

SAMPLES = [
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv(x, w, (1, 1), "SAME"),
        arrays((2, 3, 5, 4), (4, 3, 3, 2)),
        ALL,
        "Conv",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_with_general_padding(x, w, (2,), [(1, 2)]),
        arrays((2, 3, 6), (2, 3, 3)),
        ALL,
        "ConvWithGeneralPadding",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_with_general_dimensions(x, w, (2, 1), "VALID", NHWC),
        arrays((2, 5, 4, 3), (3, 2, 3, 4)),
        ALL,
        "ConvWithGeneralDimensions",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_general(x, w, (3, 2), [(2, 1), (-1, 3)], MIXED),
        arrays((3, 6, 2, 5), (2, 4, 3, 3)),
        ALL,
        "ConvGeneral",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_general_dilated(
            x, w, (2, 1), [(1, 2), (3, 0)], (1, 2), (2, 1), NHWC, window_reversal=(False, True)
        ),
        arrays((1, 6, 4, 2), (2, 3, 2, 3)),
        ALL,
        "dilated and reversed",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_general_dilated(
            x, w, (2, 3), [(-1, 2), (2, -1)], (3, 2), (1, 3), NCHW, feature_group_count=2
        ),
        arrays((2, 4, 4, 5), (6, 2, 2, 2)),
        ALL,
        "feature groups",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_general(x, w, (1, 1), "SAME", NHWC, feature_group_count=3),
        arrays((1, 4, 4, 3), (3, 3, 1, 6)),
        ALL,
        "depthwise",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv_general_dilated(
            x, w, (2,), [(1, 1)], (2,), (2,), batch_group_count=3
        ),
        arrays((6, 2, 5), (3, 2, 2)),
        ALL,
        "batch groups",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv(x, w, (), "VALID"),
        arrays((3, 2), (4, 2)),
        ALL,
        "no spatial dimension",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv(x, w, (1,), "VALID"),
        arrays((2, 3, 2), (4, 3, 3)),
        ALL,
        "no position",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv(x, w, (1,), "SAME"),
        arrays((0, 3, 4), (2, 3, 3)),
        ALL,
        "no image",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv(x, w, (1,), "SAME"),
        arrays((2, 0, 4), (2, 0, 3)),
        ALL,
        "no feature",
    ),
    Sample(
        "ConvGeneralDilated",
        lambda x, w: ops.conv(
            x, w, (1,), "SAME", precision_config="high", preferred_element_type=ElementType.F32
        ),
        arrays((2, 3, 4), (2, 3, 3)),
        FLOATING - {ElementType.F64},
        "preferred f32",
    ),
]
