"""Groups of devices in HLO text, in full and by pattern, and the numbers of a module's devices."""

from __future__ import annotations

import pytest

from tests.judge import parse_xla
from tracejit.equality import same_graph
from tracejit.errors import HloParseError
from tracejit.hlo import parse, to_text

TEXT = """HloModule m, replica_count=4, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %e (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} all-reduce(%p), channel_id=1, replica_groups=GROUPS, \
use_global_device_ids=true, to_apply=%add
}
"""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{{0,1,2,3,4,5,6,7}}", (tuple(range(8)),)),
        ("{{7,0},{ 1, 2 },{3,4},{5,6}}", ((7, 0), (1, 2), (3, 4), (5, 6))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[1,8]<=[8]", (tuple(range(8)),)),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("[2,4]<=[2,2,2]T(2,0,1)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['x'=4,'y'=2] {'x'}", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['x'=4,'y'=2] {'y','x'}", ((0, 2, 4, 6, 1, 3, 5, 7),)),
        ("mesh['x y'=8] {'x y':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=8] {'x':(4)2,'x':(1)2}", ((0, 4, 1, 5), (2, 6, 3, 7))),
        ("mesh['x'=2,'y'=4], device_ids=(7,6,5,4,3,2,1,0) {'x'}", ((7, 3), (6, 2), (5, 1), (4, 0))),
        ("mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}", ((0, 2, 4, 6), (1, 3, 5, 7))),
    ],
)
def test_groups(written: str, expected: tuple[tuple[int, ...], ...]) -> None:
    text = TEXT.replace("GROUPS", written)
    module = parse(text)
    assert module.entry.root.attributes["replica_groups"] == expected
    assert (module.replica_count, module.num_partitions) == (4, 2)
    again = to_text(module)
    assert ", replica_count=4, num_partitions=2\n" in again
    assert same_graph(parse(again), module)
    assert same_graph(parse(parse_xla(text)), module)
    assert same_graph(parse(parse_xla(again)), module)


@pytest.mark.parametrize(
    "written",
    [
        "{{0,1}",
        "{{0 1}}",
        "{0,1}",
        "{{0,1},{1,2}}",
        "[2,4]<=[4]",
        "[2,2,2]<=[8]",
        "[2,4]<=[2,4]T(0,0)",
        "[2,4]<=[2,4]T(0)",
        "[0,4]<=[0]",
        "[-2,-4]<=[8]",
        "[2,4]=[8]",
        "[1000000000,1000000000]<=[1000000000,1000000000]",
        "[2,4]",
        "8",
        "mesh[] {}",
        "mesh['x'=8]",
        "mesh['x'=8] {'y'}",
        "mesh['x'=8,'x'=1] {'x'}",
        "mesh['x'=8] {'x':(3)2}",
        "mesh['x'=8] {'x','x'}",
        "mesh['x'=8] {'x':(1)4,'x':(2)4}",
        "mesh['x'=1000000,'y'=1000000] {'x'}",
        "mesh['x'=8], device_ids=(0,1,2,3,4,5,6,6) {'x'}",
        "mesh['x'=8], device_ids=([4,4]) {'x'}",
        "mesh['x'=8 {'x'}",
        "mesh['x=8] {'x'}",
    ],
)
def test_groups_that_are_none(written: str) -> None:
    with pytest.raises(HloParseError, match="line 11"):
        parse(TEXT.replace("GROUPS", written))


@pytest.mark.parametrize("count", ["0", "-1", "x", "{2}"])
def test_numbers_of_devices_that_are_none(count: str) -> None:
    with pytest.raises(HloParseError, match="line 1"):
        parse(TEXT.replace("replica_count=4", f"replica_count={count}").replace("GROUPS", "{}"))


def test_modules_for_other_numbers_of_devices_differ() -> None:
    module = parse(TEXT.replace("GROUPS", "[2,4]<=[8]"))
    other = parse(TEXT.replace("GROUPS", "[2,4]<=[8]").replace("=4, n", "=8, n"))
    assert not same_graph(module, other)
    alone = parse(TEXT.replace("GROUPS", "[2,4]<=[8]").replace(", replica_count=4", ""))
    assert (alone.replica_count, alone.num_partitions) == (1, 2)


DUMP = """HloModule dump, replica_count=4

ENTRY %e (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %t = token[] after-all()
  %s = (f32[8]{0}, u32[], token[]) send(%p, %t), channel_id=1, \
frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
  %d = token[] send-done(%s), channel_id=1
  %r = (f32[8]{0}, u32[], token[]) recv(%t), channel_id=1, \
frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
  %rd = (f32[8]{0}, token[]) recv-done(%r), channel_id=1
  %q = f32[8]{0} get-tuple-element(%rd), index=0
  %c = s32[] constant(0)
  %i = (s32[]) tuple(%c)
  %b = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%q, %p, %i, %i), \
source_target_pairs={{0,1},{1,0}}, slice_sizes={{4}}
  ROOT %f = f32[8]{0} collective-permute-done(%b)
}
"""


def test_channels_and_slices_as_xla_prints_them() -> None:
    module = parse(DUMP)
    assert [effect.op.name for effect in module.entry.effects] == ["SendDone"]
    assert same_graph(parse(parse_xla(DUMP)), module)
    assert same_graph(parse(parse_xla(to_text(module))), module)


@pytest.mark.parametrize("pairs", ["{{0,1},{0,2}}", "{{0}}", "{0,1}", '"none"'])
def test_pairs_of_a_channel_that_are_none(pairs: str) -> None:
    with pytest.raises(HloParseError, match="source_target_pairs"):
        parse(DUMP.replace("{{0,1},{1,2}}", pairs))
