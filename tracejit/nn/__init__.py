"""Pieces of neural networks: activations, convolution and pooling, normalisation, losses.

A module of the package is imported when a name of it is first used; `__init__.pyi` has the same
names for type checkers.
"""

from __future__ import annotations

from tracejit.loading import members_of, on_first_use

SUBMODULES = ("initializers",)
NAMES = {
    "activations": (
        "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
        "log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish one_hot relu relu6 selu "
        "sigmoid silu "
        "soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh"
    ),
    "attention": "dot_product_attention",
    "layers": (
        "avg_pool batch_norm batch_norm_inference conv group_norm "
        "instance_norm layer_norm max_pool min_pool rms_norm"
    ),
    "losses": (
        "absolute_error cosine_similarity cross_entropy hinge_loss huber_loss kl_divergence "
        "log_cosh sigmoid_binary_cross_entropy softmax_cross_entropy "
        "softmax_cross_entropy_with_integer_labels squared_error"
    ),
}
"""The public names, by the module that defines each."""

_members = members_of(__name__, NAMES)
__all__ = sorted([*_members, *SUBMODULES])
__getattr__ = on_first_use(__name__, SUBMODULES, _members)


def __dir__() -> list[str]:
    return __all__
