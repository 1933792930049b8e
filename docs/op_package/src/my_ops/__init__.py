"""A package of ops in C for tracejit: my_ops.leaky(x, slope=0.1)."""

from pathlib import Path

from tracejit.custom_ops import gradient, load_op_library

(_path,) = Path(__file__).parent.glob("library.*")
_library = load_op_library(_path)

leaky = _library.my_ops_leaky


@gradient("MyOps>Leaky")
def _leaky_gradient(op, grad):
    return [_library.my_ops_leaky_grad(grad, op.inputs[0], slope=op.get_attr("slope"))]
