from tracejit.nn import initializers as initializers
from tracejit.nn.activations import celu as celu
from tracejit.nn.activations import elu as elu
from tracejit.nn.activations import gelu as gelu
from tracejit.nn.activations import glu as glu
from tracejit.nn.activations import hard_sigmoid as hard_sigmoid
from tracejit.nn.activations import hard_silu as hard_silu
from tracejit.nn.activations import hard_swish as hard_swish
from tracejit.nn.activations import hard_tanh as hard_tanh
from tracejit.nn.activations import identity as identity
from tracejit.nn.activations import leaky_relu as leaky_relu
from tracejit.nn.activations import log1mexp as log1mexp
from tracejit.nn.activations import log_sigmoid as log_sigmoid
from tracejit.nn.activations import log_softmax as log_softmax
from tracejit.nn.activations import logmeanexp as logmeanexp
from tracejit.nn.activations import logsumexp as logsumexp
from tracejit.nn.activations import mish as mish
from tracejit.nn.activations import one_hot as one_hot
from tracejit.nn.activations import relu as relu
from tracejit.nn.activations import relu6 as relu6
from tracejit.nn.activations import selu as selu
from tracejit.nn.activations import sigmoid as sigmoid
from tracejit.nn.activations import silu as silu
from tracejit.nn.activations import soft_sign as soft_sign
from tracejit.nn.activations import softmax as softmax
from tracejit.nn.activations import softplus as softplus
from tracejit.nn.activations import sparse_plus as sparse_plus
from tracejit.nn.activations import sparse_sigmoid as sparse_sigmoid
from tracejit.nn.activations import squareplus as squareplus
from tracejit.nn.activations import standardize as standardize
from tracejit.nn.activations import swish as swish
from tracejit.nn.activations import tanh as tanh
from tracejit.nn.attention import dot_product_attention as dot_product_attention
from tracejit.nn.layers import avg_pool as avg_pool
from tracejit.nn.layers import batch_norm as batch_norm
from tracejit.nn.layers import batch_norm_inference as batch_norm_inference
from tracejit.nn.layers import conv as conv
from tracejit.nn.layers import group_norm as group_norm
from tracejit.nn.layers import instance_norm as instance_norm
from tracejit.nn.layers import layer_norm as layer_norm
from tracejit.nn.layers import max_pool as max_pool
from tracejit.nn.layers import min_pool as min_pool
from tracejit.nn.layers import rms_norm as rms_norm
from tracejit.nn.losses import absolute_error as absolute_error
from tracejit.nn.losses import cosine_similarity as cosine_similarity
from tracejit.nn.losses import cross_entropy as cross_entropy
from tracejit.nn.losses import hinge_loss as hinge_loss
from tracejit.nn.losses import huber_loss as huber_loss
from tracejit.nn.losses import kl_divergence as kl_divergence
from tracejit.nn.losses import log_cosh as log_cosh
from tracejit.nn.losses import sigmoid_binary_cross_entropy as sigmoid_binary_cross_entropy
from tracejit.nn.losses import softmax_cross_entropy as softmax_cross_entropy
from tracejit.nn.losses import (
    softmax_cross_entropy_with_integer_labels as softmax_cross_entropy_with_integer_labels,
)
from tracejit.nn.losses import squared_error as squared_error

__all__: list[str]
