"""Send and Recv: data from one device to another, or between device and host, by a channel.

token = send(x, 7, [(0, 1)])            device 0 sends to device 1 through channel 7
x = recv(Shape(F32, (4,)), 7, [(0, 1)])

HLO text has a begin and an end of each (Send and SendDone, Recv and RecvDone).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import define, make
from tracejit.ops.collective import arrays_of, as_groups
from tracejit.ops.constants import get_tuple_element
from tracejit.ops.groups import Groups, require_pairs
from tracejit.ops.tokens import after_all
from tracejit.shapes import TOKEN, AnyShape, ElementType, Shape, TupleShape

PAIRS_NAME = "_xla_send_recv_source_target_pairs"

_CHANNEL = (
    Attribute("channel_id", Kind.INT, None),
    Attribute("is_host_transfer", Kind.BOOL, False),
    Attribute("frontend_attributes", Kind.STRINGS, ()),
)
_CONTEXT = Shape(ElementType.U32)
Strings = tuple[tuple[str, str], ...]


def pairs_of(frontend_attributes: Strings) -> Groups | None:
    """Which device sends to which, as XLA notes it; None where nothing says so.

    Raises `AttributeValueError` for another text, and where a source or a target comes twice.
    """
    text = dict(frontend_attributes).get(PAIRS_NAME)
    if text is None:
        return None
    plain = re.sub(r"\s", "", text)
    if re.fullmatch(r"\{(\{\d{1,9},\d{1,9}\}(,\{\d{1,9},\d{1,9}\})*)?\}", plain) is None:
        raise AttributeValueError(f"{PAIRS_NAME} must be pairs such as {{{{0,1}}}}, not {text}")
    numbers = [int(number) for number in re.findall(r"\d+", plain)]
    pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    require_pairs(PAIRS_NAME, pairs)
    return pairs


def _noted(pairs: Sequence[Sequence[int]] | None) -> Strings:
    if pairs is None:
        return ()
    groups = as_groups(pairs)
    require_pairs("send", groups)
    return ((PAIRS_NAME, "{" + ",".join(f"{{{s},{t}}}" for s, t in groups) + "}"),)


def _require_data(function: str, shape: AnyShape) -> None:
    arrays_of(function, shape.elements if isinstance(shape, TupleShape) else (shape,))


def _require_context(function: str, operand: AnyShape, begin: str) -> AnyShape:
    """The data's shape of a begun transfer's result."""
    parts = operand.elements if isinstance(operand, TupleShape) else ()
    if len(parts) != 3 or parts[1:] != (_CONTEXT, TOKEN):
        raise ShapeError(f"{function}: operand must be a {begin}'s result, not {operand}")
    return parts[0]


@define("Send", "send", *_CHANNEL, side_effect=True)
def SEND(
    operand: AnyShape,
    token: AnyShape,
    *,
    channel_id: int | None,
    is_host_transfer: bool,
    frontend_attributes: Strings,
) -> TupleShape:
    _require_data("send", operand)
    if token != TOKEN:
        raise ShapeError(f"send: token must be a token, not {token}")
    pairs_of(frontend_attributes)
    return TupleShape((operand, _CONTEXT, TOKEN))


@define("SendDone", "send-done", *_CHANNEL, side_effect=True)
def SEND_DONE(
    context: AnyShape,
    *,
    channel_id: int | None,
    is_host_transfer: bool,
    frontend_attributes: Strings,
) -> AnyShape:
    _require_context("send_done", context, "send")
    return TOKEN


@define("Recv", "recv", *_CHANNEL, Attribute("shape", Kind.SHAPE), side_effect=True)
def RECV(
    token: AnyShape,
    *,
    channel_id: int | None,
    is_host_transfer: bool,
    frontend_attributes: Strings,
    shape: AnyShape,
) -> AnyShape:
    if token != TOKEN:
        raise ShapeError(f"recv: token must be a token, not {token}")
    _require_data("recv", _require_context("recv", shape, "recv"))
    pairs_of(frontend_attributes)
    return shape


@define("RecvDone", "recv-done", *_CHANNEL, side_effect=True)
def RECV_DONE(
    context: AnyShape,
    *,
    channel_id: int | None,
    is_host_transfer: bool,
    frontend_attributes: Strings,
) -> TupleShape:
    return TupleShape((_require_context("recv_done", context, "recv"), TOKEN))


def send_start(
    operand: Instruction,
    token: Instruction,
    handle: int,
    source_target_pairs: Sequence[Sequence[int]] | None = None,
    is_host_transfer: bool = False,
) -> Instruction:
    """The begin of a transfer: (operand, a context, a token), for `send_done` alone."""
    return make(
        SEND,
        operand,
        token,
        channel_id=handle,
        is_host_transfer=is_host_transfer,
        frontend_attributes=_noted(source_target_pairs),
    )


def send_done(context: Instruction) -> Instruction:
    """The token of when the transfer that a Send began has ended (XLA: SendDone)."""
    return make(SEND_DONE, context, **_channel_of("send_done", context))


def recv_start(
    token: Instruction,
    shape: AnyShape,
    handle: int,
    source_target_pairs: Sequence[Sequence[int]] | None = None,
    is_host_transfer: bool = False,
) -> Instruction:
    """The begin of a transfer: (room for the data, a context, a token), for `recv_done` alone."""
    return make(
        RECV,
        token,
        channel_id=handle,
        is_host_transfer=is_host_transfer,
        frontend_attributes=_noted(source_target_pairs),
        shape=TupleShape((shape, _CONTEXT, TOKEN)),
    )


def recv_done(context: Instruction) -> Instruction:
    """The data that a Recv waits for, and a token: a pair (XLA: RecvDone)."""
    return make(RECV_DONE, context, **_channel_of("recv_done", context))


def _channel_of(function: str, context: Instruction) -> dict[str, Any]:
    """The attributes of the begin, which its end repeats."""
    if context.op not in (SEND, RECV):
        _require_context(function, context.shape, function.removesuffix("_done"))
        return {}
    return {attribute.name: context.attributes[attribute.name] for attribute in _CHANNEL}


def send(
    operand: Instruction,
    handle: int,
    source_target_pairs: Sequence[Sequence[int]] | None = None,
) -> Instruction:
    """Sends an array, or a tuple of arrays, to a `recv` of the channel ``handle`` (XLA: Send).

    Returns the token of when it has ended. ``source_target_pairs`` maps partitions that send to
    those that receive; a device that is no source sends nothing. Without, a device's recv takes
    its own send's data, else that of the only other device. Raises `AttributeValueError` where a
    source or a target comes twice.
    """
    return send_with_token(operand, after_all([]), handle, source_target_pairs)


def send_with_token(
    operand: Instruction,
    token: Instruction,
    handle: int,
    source_target_pairs: Sequence[Sequence[int]] | None = None,
) -> Instruction:
    """As `send`, after ``token`` (XLA: SendWithToken)."""
    return send_done(send_start(operand, token, handle, source_target_pairs))


def recv(
    shape: AnyShape,
    handle: int,
    source_target_pairs: Sequence[Sequence[int]] | None = None,
) -> Instruction:
    """The next data of ``shape`` that was sent through the channel ``handle`` (XLA: Recv).

    ``source_target_pairs`` as those of `send`; a device that is no target gets zeros.
    """
    received = recv_with_token(after_all([]), shape, handle, source_target_pairs)
    return get_tuple_element(received, 0)


def recv_with_token(
    token: Instruction,
    shape: AnyShape,
    handle: int,
    source_target_pairs: Sequence[Sequence[int]] | None = None,
) -> Instruction:
    """As `recv`, after ``token``; the pair of the data and a token (XLA: RecvWithToken)."""
    return recv_done(recv_start(token, shape, handle, source_target_pairs))


def send_to_host(operand: Instruction, token: Instruction, handle: int) -> Instruction:
    """Puts an array into the host's queue ``handle``; returns a token (XLA: SendToHost)."""
    return send_done(send_start(operand, token, handle, is_host_transfer=True))


def recv_from_host(token: Instruction, shape: AnyShape, handle: int) -> Instruction:
    """The next data of the host's queue ``handle``, and a token: a pair (XLA: RecvFromHost)."""
    return recv_done(recv_start(token, shape, handle, is_host_transfer=True))
