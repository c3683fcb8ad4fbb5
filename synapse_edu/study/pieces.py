"""The pieces of a layer, differentiable: a forward function and its gradient, joined for autograd.

`backward` writes both by hand because that is fast.  Here each pair becomes one function that
autograd can follow, so that a model put together from pieces, whichever they are, has its gradient
without another derivation.
"""

import numpy as np
from autograd.extend import defvjp_argnums, primitive

from . import backward


def differentiable(forward, backward):
    """Join a pair for autograd.

    Parameters
    ----------
    forward : function
        (*inputs) → (value, what the gradient needs).
    backward : function
        (gradient of the value, what was kept) → the gradients of the inputs, in their order;
        inputs without a gradient, such as masks, come last.

    Returns
    -------
    function
        (*inputs) → value.
    """
    kept = {}

    @primitive
    def piece(*inputs):
        value, kept["last"] = forward(*inputs)
        return value

    def gradient(wanted, value, inputs, options):
        saved = kept.pop("last")  # autograd asks for the gradient right after the value

        def back(dy):
            found = backward(dy, saved)
            return [found[i] for i in wanted]

        return back

    defvjp_argnums(piece, gradient)
    return piece


# --- products --------------------------------------------------------------------------------
def _linear(x, w):
    return x @ w.T, (x, w)  # (N, n_out)


def _linear_backward(dy, saved):
    x, w = saved
    return dy @ w, dy.T @ x


# --- norms -----------------------------------------------------------------------------------
def _layer_norm(x, g, b, eps):
    """LayerNorm (Ba, Kiros & Hinton, 2016): mean 0, standard deviation 1, then g and b."""
    centred = x - np.mean(x, -1, keepdims=True)  # (N, d)
    r = 1 / np.sqrt(np.mean(centred * centred, -1, keepdims=True) + x.dtype.type(eps))  # (N, 1)
    return centred * r * g + b, (centred * r, r, g)


def _layer_norm_backward(dy, saved):
    scaled, r, g = saved
    dh = dy * g  # (N, d)
    along = np.mean(dh * scaled, -1, keepdims=True)  # (N, 1)
    dx = r * (dh - np.mean(dh, -1, keepdims=True) - scaled * along)  # (N, d)
    return dx, (dy * scaled).sum(0), dy.sum(0)


# --- rotation --------------------------------------------------------------------------------
def _rotate(x, cos, sin):
    return backward.rotate(x, cos, sin), (cos, sin)


def _rotate_backward(dy, saved):
    cos, sin = saved
    return (backward.rotate(dy, cos, -sin),)


# --- nonlinearities --------------------------------------------------------------------------
def _relu(x):
    return np.maximum(x, 0), x > 0


def _relu_backward(dy, positive):
    return (dy * positive,)


def _gelu(x):
    """GELU in the form with tanh that GPT-2 uses (Hendrycks & Gimpel, 2016)."""
    root, cubic = x.dtype.type(np.sqrt(2 / np.pi)), x.dtype.type(0.044715)
    t = np.tanh(root * (x + cubic * x * x * x))  # (N, f)
    half = x.dtype.type(0.5)
    slope = half * (1 + t) + half * x * (1 - t * t) * root * (1 + 3 * cubic * x * x)  # (N, f)
    return half * x * (1 + t), slope


def _gelu_backward(dy, slope):
    return (dy * slope,)


# --- loss ------------------------------------------------------------------------------------
def _cross_entropy(logits, targets, weights):
    return backward.cross_entropy(logits.copy(), targets, weights)


def _cross_entropy_backward(dy, dlogits):
    return (dlogits * dlogits.dtype.type(dy),)


linear = differentiable(_linear, _linear_backward)
rms_norm = differentiable(backward.norm, backward.norm_backward)
layer_norm = differentiable(_layer_norm, _layer_norm_backward)
rotate = differentiable(_rotate, _rotate_backward)
attention = differentiable(backward.attention, backward.attention_backward)
swiglu = differentiable(backward.swiglu, backward.swiglu_backward)
relu = differentiable(_relu, _relu_backward)
gelu = differentiable(_gelu, _gelu_backward)
cross_entropy = differentiable(_cross_entropy, _cross_entropy_backward)


def watch(activations, gradients):
    """x → x, which notes the root mean square of x, and the norm of its gradient on the way back.

    The gradients come last layer first; they are put at the front, so that both lists are in the
    order of the layers.
    """

    def forward(x):
        activations.append(float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))))
        return x.copy(), None

    def back(dy, _):
        gradients.insert(0, float(np.linalg.norm(dy.astype(np.float64))))
        return (dy,)

    return differentiable(forward, back)
