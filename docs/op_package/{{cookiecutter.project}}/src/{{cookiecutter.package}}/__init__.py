"""{{ cookiecutter.description }}"""

from pathlib import Path

from tracejit.custom_ops import get_op, gradient, load_op_library

(_path,) = Path(__file__).parent.glob("library.*")
load_op_library(_path)

leaky = get_op("{{ cookiecutter.namespace }}>Leaky")
_leaky_grad = get_op("{{ cookiecutter.namespace }}>LeakyGrad")


@gradient("{{ cookiecutter.namespace }}>Leaky")
def _leaky_gradient(op, grad):
    return [_leaky_grad(grad, op.inputs[0], slope=op.get_attr("slope"))]
