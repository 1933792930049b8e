"""Pictures of graphs: their groups, and what a real browser makes of them."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.display.browser import ENTER, RIGHT, TAB, Browser, needs_browser, opened
from tests.notebooks import scripts
from tracejit.display import graphs
from tracejit.display.graphs import measured_times
from tracejit.hlo.printer import listing
from tracejit.traversal import called_computations, instructions

X = np.ones(5)

# Boxes that are side by side, and edges through boxes that they neither leave nor enter.
FAULTS = """
const faults = [], boxes = [...document.querySelectorAll(".graph .node:not(.open) > rect")]
  .map(r => r.getBBox());
boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
  if (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)
    faults.push("overlap");
}));
for (const edge of document.querySelectorAll(".graph .edge")) {
  const length = edge.getTotalLength(), inside = new Set(), e = edge.getBBox();
  const near = boxes.filter(b => b.x < e.x + e.width && e.x < b.x + b.width
    && b.y < e.y + e.height && e.y < b.y + b.height);
  for (let at = 0; near.length && at <= length; at += 4) {
    const {x, y} = edge.getPointAtLength(at);
    near.forEach((b, i) => {
      if (x > b.x + 1 && x < b.x + b.width - 1 && y > b.y + 1 && y < b.y + b.height - 1)
        inside.add(i);
    });
  }
  if (inside.size) faults.push("edge through " + inside.size);
}
return faults;
"""


def loop(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return np.sin(c) * i + np.sum(c)

    y = tj.lax.fori_loop(0, 10, body, x)
    return np.where(y > 0, y, np.max(y))


def many(count: int) -> Any:
    lines = ["HloModule many", "", "ENTRY main {", "  x0 = f32[64]{0} parameter(0)"]
    for n in range(1, count):
        root = "ROOT " if n == count - 1 else ""
        data = f'metadata={{source_file="train.py" source_line={n // 7 + 1}}}'
        lines.append(f"  {root}x{n} = f32[64]{{0}} add(x{n - 1}, x{max(n - 9, 0)}), {data}")
    return tj.hlo.parse("\n".join([*lines, "}"]))


def digits_gradient() -> Any:
    """The graph of the digits' training step."""
    script = scripts.load("train_digits")
    rng = np.random.default_rng(0)
    digits = script.load(0)
    state = script.make_state(rng)
    batch = digits.images[:32], digits.labels[:32]
    return tj.jit(script.train_step).lower(state, *batch, np.float32(0.1)).module


def data_of(module: Any) -> dict[str, Any]:
    return dict(graphs.Graph([*listing(module)], "p-").data())


def leaves(tree: Any) -> list[int]:
    return [tree] if isinstance(tree, int) else [n for part in tree[2] for n in leaves(part)]


def widest(tree: Any) -> int:
    if isinstance(tree, int):
        return 0
    return max(len(tree[2]), *(widest(part) for part in tree[2]))


def test_groups_are_intervals_of_few_parts() -> None:
    """Every instruction is in one group, in the order of the graph."""
    for count in (30, 300, 10_000):
        data = data_of(many(count))
        assert leaves(data["tree"]) == [*range(count)]
        assert widest(data["tree"]) <= graphs.MOST_PARTS
        assert all(o < i for i, each in enumerate(data["operands"]) for o in each)
        assert len(json.dumps(data)) < 150 * count + 2000


def test_lines_name_their_code() -> None:
    def f(x: Any) -> Any:
        for _ in range(30):
            x = np.sin(x) + 1
        return x

    data = data_of(tj.jit(f).lower(X).module)
    assert "x = np.sin(x) + 1" in json.dumps(data["tree"])
    assert ["test_graphs.py", "x = np.sin(x) + 1"] in [
        [where.split(":")[0], code] for where, code in data["sources"]
    ]


def test_bodies_are_inside_of_what_calls_them() -> None:
    module = tj.jit(loop).lower(X).module
    data = data_of(module)
    called = {data["ops"][data["op"][number]] for number in data["calls"]}
    assert {"while", "reduce"} <= called
    inside = [n for parts in data["calls"].values() for part in parts for n in leaves(part)]
    assert sorted([*leaves(data["tree"]), *inside]) == [*range(len(data["names"]))]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = tmp_path_factory.mktemp("pages") / "loop.html"
    tj.show(loop, X).save(path)
    with opened(path) as browser:
        yield browser


def key_of(browser: Browser, text: str) -> str:
    script = """
    const found = [...document.querySelectorAll(".node")]
      .find(n => n.getAttribute("aria-label").startsWith(arguments[0]));
    return found.dataset.key;
    """
    return str(browser.run(script, text))


@needs_browser
def test_a_click_opens_loops_and_tells_the_line(page: Browser) -> None:
    before = page.run("return document.querySelectorAll('.node').length")
    assert page.run(FAULTS) == []
    page.click(f".node[data-key={key_of(page, 'while')}]")
    assert page.run("return document.querySelectorAll('.node.open').length") >= 2
    assert page.run("return document.querySelectorAll('.node').length") > before
    assert page.run(FAULTS) == []
    page.click(f".node[data-key={key_of(page, 'sine')}]")
    told = page.run("return document.querySelector('.told').textContent")
    assert "return np.sin(c) * i + np.sum(c)" in told
    page.click(".told a.row")
    assert (
        page.run("return document.querySelector('tr:target').textContent")
        .strip()
        .startswith("%sine")
    )
    assert page.complaints() == []


@needs_browser
def test_keys_pan_zoom_and_open(page: Browser) -> None:
    def seen() -> list[float]:
        box = page.run("return document.querySelector('.graph svg').getAttribute('viewBox')")
        return [float(word) for word in box.split()]

    page.run("document.querySelector('.graph > svg').focus()")
    page.press("0")
    x, _, width, _ = seen()
    page.press(RIGHT)
    assert seen()[0] > x
    page.press("+")
    assert seen()[2] < width
    page.press(TAB)
    label = "return document.activeElement.getAttribute('aria-label')"
    assert page.run(label)
    key = key_of(page, "while")
    page.run("document.querySelector(`[data-key=${arguments[0]}]`).focus()", key)
    is_open = "return document.activeElement.getAttribute('aria-expanded')"
    before = page.run(is_open)
    page.press(ENTER)
    assert {before, page.run(is_open)} == {"true", "false"}
    assert page.complaints() == []


@needs_browser
@pytest.mark.parametrize("how", ["bytes", "time", "op"])
def test_colours(page: Browser, how: str) -> None:
    page.run(
        "const s = document.querySelector('.graph select'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('change'))",
        how,
    )
    script = "return [...new Set([...document.querySelectorAll('.node')].map(n => n.classList[1]))]"
    assert all(name[0] == ("k" if how == "op" else "h") for name in page.run(script) if name)
    assert page.complaints() == []


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_pages_look_as_they_should(dark: bool, tmp_path: Path) -> None:
    """A picture with boxes of several colours on a light or a dark ground."""
    image = pytest.importorskip("matplotlib.image")
    path = tmp_path / "page.html"
    tj.show(loop, X).save(path)
    with opened(path, dark=dark) as browser:
        pixels = image.imread(io.BytesIO(browser.picture()), format="png")[..., :3]
        assert browser.complaints() == []
    ground = np.median(pixels.reshape(-1, 3), axis=0).mean()
    assert (ground < 0.2) if dark else (ground > 0.95)
    colours = np.unique((pixels.reshape(-1, 3) * 7).astype(int), axis=0)
    assert len(colours) > 12
    assert 0.02 < np.mean(np.abs(pixels.mean(2) - ground) > 0.05) < 0.6


@needs_browser
def test_the_digits_gradient_is_readable(tmp_path: Path) -> None:
    """Whole in the view at a size that can be read, without an edge through a box."""
    path = tmp_path / "digits.html"
    module = digits_gradient()
    tj.show(module).save(path)
    with opened(path) as browser:
        assert browser.run(FAULTS) == []
        count = browser.run("return document.querySelectorAll('.node').length")
        assert 8 <= count <= graphs.MOST_PARTS
        for _ in range(3):
            browser.run(
                "document.querySelector('.node[aria-expanded=false]').dispatchEvent("
                "new MouseEvent('click', {bubbles: true}))"
            )
        assert browser.run(FAULTS) == []
        assert browser.run("return document.querySelectorAll('.node').length") > count
        assert browser.complaints() == []


@needs_browser
def test_ten_thousand_instructions_open_at_once(tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    tj.show(many(10_000)).save(path)
    begin = time.perf_counter()
    with opened(path) as browser:
        assert 1 < browser.run("return document.querySelectorAll('.node').length") <= 40
        opened_in = browser.run(
            "const begin = performance.now(); document.querySelector('.node').dispatchEvent("
            "new MouseEvent('click', {bubbles: true})); return performance.now() - begin"
        )
        assert opened_in < 2000
        assert browser.run("return document.querySelectorAll('.node.open').length") == 1
        assert browser.run(FAULTS) == []
        assert browser.complaints() == []
    assert time.perf_counter() - begin < 60


def test_pages_ask_for_nothing() -> None:
    assert not re.search(
        r"https?:|//|url\(|@import|eval\(", graphs.script().replace("</script>", "")
    )


def measured_program() -> Any:
    def program(x: Any) -> Any:
        product = x @ x
        return np.sum(np.tanh(product), axis=0) + loop(x[0])

    return tj.jit(program).lower(np.eye(200)).compile()


def test_measured_times_are_those_of_the_lines() -> None:
    compiled = measured_program()
    report = compiled.explain(np.eye(200), measure=True)
    times = measured_times(report.module, report.kernels)
    assert set(times) <= {*instructions(report.module.entry), *loop_bodies(report.module)}
    whole = sum(kernel.seconds or 0.0 for kernel in report.kernels)
    assert 0.0 < sum(times.values()) <= 1.01 * whole
    (product,) = [i for i in instructions(report.module.entry) if i.op.opcode == "dot"]
    assert times[product] > 0.0


def loop_bodies(module: Any) -> list[Any]:
    called = [c for c in called_computations(module) if c is not module.entry]
    return [instruction for computation in called for instruction in instructions(computation)]


def test_reports_have_a_picture_where_they_are_timed() -> None:
    compiled = measured_program()
    assert 'class="graph"' not in tj.show(compiled.explain()).html
    page = tj.show(compiled.explain(np.eye(200), measure=True)).html
    assert "selected>time, measured" in page
    assert "time, estimated" not in page


@needs_browser
def test_the_measured_picture_is_coloured_by_time(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    tj.show(measured_program().explain(np.eye(200), measure=True)).save(path)
    with opened(path) as browser:
        browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        script = "return [...document.querySelectorAll('.node')].map(n => n.classList[1])"
        assert {name[0] for name in browser.run(script) if name} == {"h"}
        assert browser.complaints() == []
