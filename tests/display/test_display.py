"""What objects look like: short reprs, and HTML that is whole, escaped and asks for nothing."""

from __future__ import annotations

import linecache
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.commandline import main
from tracejit.display import Page, html_of, page_of
from tracejit.errors import ArgumentError

X, W = np.ones(3), np.ones((3, 3))
VOID = {"input", "meta"}
MANY = 10_000
MOST_BYTES = 3 << 20
MOST_ROWS = 200


def norm(x: Any, w: Any, n: float = 2.0) -> Any:
    y = np.sin(x) @ w
    return np.sum(np.abs(y) ** n)


def put(x: Any) -> None:
    x[0] = 1.0


class Reader(HTMLParser):
    """Reads a page: raises for tags that are not closed; collects links, ids, text, open tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[tuple[str, bool]] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0
        self.texts: list[str] = []
        self.visible_rows = 0
        self.rows: list[int] = []
        self.feed(text)
        self.close()
        assert not self.stack, f"not closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs)
        assert not {"src", "srcset", "onclick", "data", "action"} & given.keys()
        assert tag not in {"link", "img", "iframe", "object"}
        self.links += [given["href"] or ""] if "href" in given else []
        self.ids += [given["id"] or ""] if "id" in given else []
        self.scripts += tag == "script"
        if tag == "table":
            self.rows.append(0)
        if tag == "tr":
            self.rows[-1] += 1
            self.visible_rows += all(shown for _, shown in self.stack)
        if tag not in VOID:
            self.stack.append((tag, tag != "details" or "open" in given))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in [name for name, _ in self.stack], f"<{tag}/> is no HTML"

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self.stack.pop()
        assert opened == tag, f"</{tag}> ends <{opened}>"

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1][0] not in {"script", "style"}:
            self.texts.append(data)


def checked(html: str) -> Reader:
    """The page, once it is known to be whole and to ask for nothing outside of itself."""
    found = Reader(html)
    assert not re.search(r"https?:|//|url\(|@import", html)
    assert len(set(found.ids)) == len(found.ids)
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert all(link.startswith("#") for link in found.links)
    return found


def every_kind() -> dict[str, Any]:
    jitted = tj.jit(norm)
    jitted(X, W)
    lowered = jitted.lower(X, W)
    compiled = lowered.compile()
    mutating: Any = tj.jit(put, mutates="x")
    return {
        "jitted": jitted,
        "never called": tj.jit(norm),
        "mutating": mutating,
        "module": lowered.module,
        "lowered": lowered,
        "compiled": compiled,
        "compiled module": tj.compile(lowered.module),
        "interpreted": tj.jit(norm, check=True).lower(X, W).compile(),
        "report": compiled.explain(),
        "timed": compiled.explain(X, W, measure=True),
        "memory": lowered.memory_report(),
        "sizes": lowered.compile().memory_analysis(),
        "cache": jitted.cache_report(),
        "why zero": tj.why_zero(lambda x: np.sum(np.round(x)), X),
        "not zero": tj.why_zero(np.sum, X),
        "loop": tj.jit(lambda x: tj.lax.fori_loop(0, 3, lambda i, c: c * c, x)).lower(X),
    }


@pytest.fixture(scope="module")
def kinds() -> dict[str, Any]:
    return every_kind()


def test_every_kind_has_a_page(kinds: dict[str, Any], tmp_path: Path) -> None:
    for name, value in kinds.items():
        assert checked(value._repr_html_()).texts, name
        page = tj.show(value)
        page.save(tmp_path / "page.html")
        document = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert document.startswith("<!DOCTYPE html>")
        checked(document.removeprefix("<!DOCTYPE html>"))
        assert repr(page) == page.text
        assert page._repr_html_() == value._repr_html_()


def test_reprs_are_short(kinds: dict[str, Any]) -> None:
    texts = {name: repr(kinds[name]) for name in kinds}
    assert texts["never called"] == "<jit of norm(x, w, n=2.0): not compiled yet>"
    kind = r"\(x f64\[3\], w f64\[3,3\]\)"
    assert re.fullmatch(
        rf"<jit of norm\(x, w, n=2\.0\): compiled once in \d+\.\d+ s for {kind}>", texts["jitted"]
    )
    assert texts["mutating"].endswith(", which mutates x: not compiled yet>")
    assert texts["module"] == "<module norm: (f64[3], f64[3,3]) -> f64[], 11 instructions>"
    assert texts["lowered"] == "<lowered norm: (f64[3], f64[3,3]) -> f64[], 11 instructions>"
    assert texts["compiled"].startswith("<compiled norm: (f64[3], f64[3,3]) -> f64[], 11 instr")
    for name in ("report", "memory", "cache", "why zero"):
        assert texts[name] == str(kinds[name])


def test_the_repr_of_many_specializations_is_bounded() -> None:
    big = np.ones(100)
    f = tj.jit(lambda x, scale=big: x + 1, check=True)
    for size in range(1, 21):
        f(np.ones(size))
    assert repr(f).endswith("(x f64[18]), (x f64[19]), (x f64[20]), 17 earlier>")
    assert "(x, scale=...)" in repr(f)


def test_text_of_the_user_is_escaped() -> None:
    code = "def f(x):\n    return x + 1  # </code><script>alert('&')</script>\n"
    file = "/nowhere/<b>.py"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    scope: dict[str, Any] = {}
    exec(compile(code, file, "exec"), scope)
    scope["f"].__name__ = "<i>name</i>"
    lowered = tj.jit(scope["f"]).lower(X)
    for html in (lowered._repr_html_(), tj.show(lowered).document(), html_of(lowered.module)):
        found = checked(html.removeprefix("<!DOCTYPE html>"))
        assert found.scripts == 3  # the search, the graph's data, and what draws it
        assert "<b>.py" in "".join(found.texts)
        assert "# </code><script>alert('&')</script>" in "".join(found.texts)
    assert checked(lowered.memory_report()._repr_html_()).scripts == 0


def test_rows_name_the_line_once_and_link_to_operands(kinds: dict[str, Any]) -> None:
    html = kinds["module"]._repr_html_()
    assert checked(html).texts.count("y = np.sin(x) @ w") == 1
    prefix = re.search(r'id="(tj[0-9a-f]{8}-)sine', html)
    assert prefix is not None
    assert f'<a href="#{prefix[1]}parameter.0">%parameter.0</a>' in html
    loop = kinds["loop"].module._repr_html_()
    assert re.search(r'body=<a href="#tj[0-9a-f]{8}-c-[^"]+">%', loop)


def test_ten_thousand_instructions_are_folded_and_bounded() -> None:
    lines = ["HloModule many", "", "ENTRY main {", "  x0 = f32[64]{0} parameter(0)"]
    for n in range(1, MANY):
        root = "ROOT " if n == MANY - 1 else ""
        data = f'metadata={{source_file="train.py" source_line={n // 7 + 1}}}'
        lines.append(f"  {root}x{n} = f32[64]{{0}} add(x{n - 1}, x{n - 1}), {data}")
    module = tj.hlo.parse("\n".join([*lines, "}"]))
    html = module._repr_html_()
    assert len(html) < MOST_BYTES
    found = checked(html)
    assert sum(found.rows) == MANY
    assert max(found.rows) <= MOST_ROWS
    assert found.visible_rows == 0
    assert "10000 instructions" in repr(module)


def test_large_constants_and_long_lines_are_cut() -> None:
    table = np.arange(50_000.0)
    lowered = tj.jit(lambda x: x + table).lower(np.ones(50_000))
    page = tj.show(lowered)
    assert "constant({...})" in page.text
    assert len(page.html) < 20_000 + len(tj.show(np.sin, X).html)


def test_the_memory_of_many_steps_is_a_small_picture() -> None:
    def f(x: Any) -> Any:
        for n in range(1500):
            x = np.concatenate([x[1:], x[:1]]) if n % 2 else np.cumsum(x)
        return x

    report = tj.jit(f).lower(X).memory_report()
    html = report._repr_html_()
    assert "<svg" in html
    assert len(html) < 40_000
    checked(html)


def test_a_sparse_jacobian_is_a_picture() -> None:
    def stencil(x: Any) -> Any:
        return x[1:] - x[:-1]

    pattern = tj.jacobian(stencil, sparse=True)(np.arange(4.0))
    page = tj.show(pattern)
    assert page.text == "3 x 4 csr_array of float64, 6 elements stored, 50.00%"
    assert page.html.count("<rect x=") == 6
    checked(page.html)
    large = tj.show(tj.jacobian(stencil, sparse=True)(np.arange(1000.0)))
    assert 64 <= large.html.count("<rect x=") <= 3 * 64
    assert "<svg" not in tj.show(0 * pattern[:0]).html


def test_show_traces_functions() -> None:
    assert "sine" in tj.show(norm, X, W).text
    assert "multiply" in tj.show(tj.grad(norm), X, w=W).text
    assert "ENTRY" in tj.show(lambda: np.ones(3)).text
    struct = tj.ShapeDtypeStruct((5,), np.float32)
    assert "f32[5]" in tj.show(np.sin, struct).text
    assert isinstance(page_of(tj.jit(norm)), Page)


def test_show_refuses_what_has_no_display() -> None:
    with pytest.raises(ArgumentError, match="show: int has no display"):
        tj.show(3)
    module = tj.jit(norm).lower(X, W).module
    with pytest.raises(ArgumentError, match="show: Module is shown without arguments"):
        tj.show(module, X)


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    source, made = tmp_path / "f.hlo", tmp_path / "f.html"
    source.write_text(str(tj.jit(norm).lower(X, W).module))
    assert main(["show", str(source), "--html", str(made)]) == 0
    found = checked(made.read_text(encoding="utf-8").removeprefix("<!DOCTYPE html>"))
    assert "11 instructions" in "".join(found.texts)
