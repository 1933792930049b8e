/* Draws the graph of a module: layers from top to bottom, edges between the boxes of a layer, boxes
   within boxes for computations, loops, lines and pieces, which open and close. */
(() => {
const GAP_X = 14, GAP_Y = 34, PAD = 12, HEAD = 22, ROW = 15, DUMMY = 8, CHAR = 6.4;
const WORDS = 36, SWEEPS = 12, STRAIGHTENING = 30;
const escape = text => String(text).replace(/[&<>"]/g, c => "&#" + c.charCodeAt(0) + ";");
const cut = text => text.length > WORDS ? text.slice(0, WORDS - 1) + "…" : text;
const size = n => n < 1024 ? n + " B" : n < 1048576 ? (n / 1024).toFixed(1) + " KiB"
  : n < 1073741824 ? (n / 1048576).toFixed(1) + " MiB" : (n / 1073741824).toFixed(1) + " GiB";
const span = s => s < 1e-6 ? (s * 1e9).toPrecision(2) + " ns" : s < 1e-3 ? (s * 1e6).toPrecision(3) + " µs"
  : s < 1 ? (s * 1e3).toPrecision(3) + " ms" : s.toPrecision(3) + " s";

/* Positions nearest to the wished ones that keep order and distances: pools adjacent violators. */
function placed(wished, weights, distances) {
  const blocks = [];
  let offset = 0;
  wished.forEach((wish, i) => {
    offset += i ? distances[i - 1] : 0;
    let block = {sum: (wish - offset) * weights[i], weight: weights[i], count: 1};
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = {sum: last.sum + block.sum, weight: last.weight + block.weight,
        count: last.count + block.count};
    }
    blocks.push(block);
  });
  const made = [];
  offset = 0;
  let i = 0;
  for (const block of blocks)
    for (let n = 0; n < block.count; n++, i++) {
      offset += i ? distances[i - 1] : 0;
      made.push(block.sum / block.weight + offset);
    }
  return made;
}

/* Layers, order and places of boxes with `w` and `h`; edges are pairs of numbers of boxes, the
   first before the second. Gives every box `x` and `y` of its middle and top, and edges points. */
function layered(boxes, edges) {
  const into = boxes.map(() => []), out = boxes.map(() => []);
  edges.forEach(([a, b]) => { out[a].push(b); into[b].push(a); });
  const rank = boxes.map(() => 0);
  boxes.forEach((_, i) => into[i].forEach(j => { rank[i] = Math.max(rank[i], rank[j] + 1); }));
  for (let i = boxes.length - 1; i >= 0; i--)
    if (!into[i].length && out[i].length) rank[i] = Math.min(...out[i].map(j => rank[j])) - 1;
  const layers = [];
  const nodes = boxes.map((box, i) => ({box, w: box.w, h: box.h, rank: rank[i], up: [], down: []}));
  const chains = edges.map(([a, b]) => {
    const chain = [nodes[a]];
    for (let r = rank[a] + 1; r < rank[b]; r++) {
      const dummy = {w: DUMMY, h: 0, rank: r, up: [], down: []};
      nodes.push(dummy);
      chain.push(dummy);
    }
    chain.push(nodes[b]);
    for (let k = 1; k < chain.length; k++) {
      chain[k - 1].down.push(chain[k]);
      chain[k].up.push(chain[k - 1]);
    }
    return chain;
  });
  for (const node of nodes) (layers[node.rank] ||= []).push(node);
  for (let r = 0; r < layers.length; r++) layers[r] ||= [];
  const number = () => layers.forEach(layer => layer.forEach((node, i) => { node.at = i; }));
  number();
  const crossings = () => {
    let found = 0;
    for (const layer of layers) {
      const ends = layer.flatMap(n => n.down.map(m => m.at).sort((a, b) => a - b));
      if (ends.length > 400) continue;
      for (let i = 0; i < ends.length; i++)
        for (let j = i + 1; j < ends.length; j++) found += ends[i] > ends[j];
    }
    return found;
  };
  let best = Infinity, kept = layers.map(layer => [...layer]);
  for (let sweep = 0; sweep < SWEEPS && best > 0; sweep++) {
    const down = sweep % 2 === 0, order = down ? layers : [...layers].reverse();
    for (const layer of order) {
      for (const node of layer) {
        const near = down ? node.up : node.down;
        node.wish = near.length ? near.reduce((s, n) => s + n.at, 0) / near.length : node.at;
      }
      layer.sort((a, b) => a.wish - b.wish || a.at - b.at);
      layer.forEach((node, i) => { node.at = i; });
    }
    const found = crossings();
    if (found < best) { best = found; kept = layers.map(layer => [...layer]); }
  }
  kept.forEach((layer, r) => { layers[r] = layer; });
  number();
  let y = 0;
  for (const layer of layers) {
    const h = Math.max(0, ...layer.map(n => n.h));
    let x = 0;
    layer.forEach(n => { n.x = x + n.w / 2; x += n.w + GAP_X; n.y = y; n.layer = h; });
    y += h + GAP_Y;
  }
  const mean = (near, own) => near.length ? near.reduce((s, n) => s + n.x, 0) / near.length : own;
  for (let sweep = 0; sweep < STRAIGHTENING; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const near = sweep < SWEEPS ? n => down ? n.up : n.down : n => [...n.up, ...n.down];
      const wished = layer.map(n => mean(near(n), n.x));
      const weights = layer.map(n => n.box ? 1 + near(n).length : 40);
      const apart = layer.slice(1).map((n, i) => (n.w + layer[i].w) / 2 + GAP_X);
      placed(wished, weights, apart).forEach((x, i) => { layer[i].x = x; });
    }
  }
  const left = Math.min(0, ...nodes.map(n => n.x - n.w / 2));
  const right = Math.max(0, ...nodes.map(n => n.x + n.w / 2));
  nodes.forEach(n => { n.x -= left; if (n.box) { n.box.x = n.x; n.box.y = n.y; } });
  const lines = chains.map(chain => chain.map((n, k) => n.box
    ? [n.x, k ? n.y : n.y + n.h, k ? n.y : n.y + n.layer]
    : [n.x, n.y, n.y + n.layer]));
  return {w: right - left, h: Math.max(0, y - GAP_Y), lines};
}

/* A curve in each gap between layers, a straight line beside the boxes of each layer. */
function path(points) {
  let d = "M" + points[0][0].toFixed(1) + " " + points[0][1].toFixed(1);
  points.forEach(([x, top, bottom], k) => {
    if (k) {
      const [px, , py] = points[k - 1], half = (py + top) / 2;
      d += "C" + [px, half, x, half, x, top].map(v => v.toFixed(1)).join(" ");
    }
    if (k < points.length - 1) d += "V" + bottom.toFixed(1);
  });
  return d;
}

function draw(root) {
  const data = JSON.parse(root.querySelector("script.data").textContent);
  const view = root.querySelector("svg"), told = root.querySelector(".told");
  const colour = root.querySelector("select"), prefix = data.prefix;
  const groups = [], homes = [];
  /* A tree of groups: numbers are instructions, lists are [kind, label, parts]. */
  const build = (part, parent) => {
    if (typeof part === "number") {
      const node = {id: part, parent, leaf: true, parts: []};
      homes[part] = node;
      node.parts = (data.calls[part] || []).map(called => build(called, node));
      return node;
    }
    const node = {kind: part[0], label: part[1], parent, open: part[3] === 1, number: groups.length};
    groups.push(node);
    node.parts = part[2].map(each => build(each, node));
    return node;
  };
  const top = build(data.tree, null);
  top.open = true;
  const sums = node => {
    node.bytes = node.leaf ? data.bytes[node.id] : 0;
    node.time = node.leaf ? data.time[node.id] : 0;
    node.count = node.leaf ? 1 : 0;
    for (const part of node.parts) {
      sums(part);
      if (!node.leaf) { node.bytes += part.bytes; node.time += part.time; }
      node.count += part.count;
    }
  };
  sums(top);
  const above = node => { const all = []; for (; node; node = node.parent) all.push(node); return all; };
  const users = data.operands.map(() => []);
  data.operands.forEach((each, i) => each.forEach(j => users[j].push(i)));
  const depth = node => above(node).length;

  /* Lays out what an open node holds: its parts, and a port for each value that enters it. */
  function inside(node) {
    const boxes = [], of = new Map(), edges = new Map(), ports = new Map();
    for (const part of node.parts) {
      const box = measured(part);
      of.set(part, boxes.length);
      boxes.push(box);
    }
    const level = depth(node);
    const leaves = part => part.leaf ? [part.id, ...part.parts.flatMap(leaves)]
      : part.parts.flatMap(leaves);
    for (const part of node.parts)
      for (const id of leaves(part))
        for (const operand of data.operands[id]) {
          const chain = above(homes[operand]).reverse();
          if (chain[level - 1] === node) {
            const from = of.get(chain[level]), to = of.get(part);
            if (from !== undefined && from !== to) edges.set(from + ">" + to, [from, to, operand]);
          } else if (node !== top && !of.has(homes[operand])) {
            const list = ports.get(operand) || [];
            if (!list.includes(part)) list.push(part);
            ports.set(operand, list);
          }
        }
    const made = [], offset = ports.size;
    for (const [operand] of ports)
      made.push({port: operand, w: 7 + CHAR * Math.min(data.names[operand].length, WORDS), h: 16});
    const shifted = [...edges.values()].map(([a, b, o]) => [a + offset, b + offset, o]);
    [...ports.values()].forEach((list, i) =>
      list.forEach(part => shifted.push([i, of.get(part) + offset, made[i].port])));
    const all = [...made, ...boxes];
    shifted.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return {...layered(all, shifted), boxes: all, edges: shifted};
  }
  function texts(node) {
    if (!node.leaf) {
      const [where, code] = node.label.split("\n"), many = node.count + " instructions";
      return code ? [code, where + " · " + many] : [where, many];
    }
    const more = node.parts.length && !node.open ? " ▸" : "";
    return [data.ops[data.op[node.id]] + more, data.shapes[data.shape[node.id]]];
  }
  function measured(node) {
    const lines = texts(node).map(cut);
    const w = Math.max(...lines.map(t => t.length)) * CHAR + 2 * PAD;
    if (!node.open) return {node, lines, w: Math.max(w, 54), h: 2 * ROW + 8};
    const held = inside(node);
    return {node, lines, held, w: Math.max(w, held.w + 2 * PAD), h: held.h + HEAD + 2 * PAD};
  }
  function shade(node) {
    const how = colour.value;
    if (how === "op") {
      if (!node.leaf) return "group";
      return "k" + data.kind[node.id];
    }
    const most = how === "bytes" ? top.most.bytes : top.most.time;
    const part = (how === "bytes" ? node.bytes : node.time) / (most || 1);
    return "h" + Math.min(9, Math.round(9 * Math.sqrt(part)));
  }
  function drawn(box, dx, dy) {
    if (box.port !== undefined)
      return `<g class="port" data-id="${box.port}"><title>${escape(data.names[box.port])}, from outside`
        + `</title><text x="${(dx + box.x).toFixed(1)}" y="${(dy + box.y + 12).toFixed(1)}">`
        + `${escape(cut(data.names[box.port]))}</text></g>`;
    const {node} = box, x = dx + box.x - box.w / 2, y = dy + box.y;
    const opens = !node.leaf || node.parts.length > 0, key = node.leaf ? "i" + node.id : "g" + node.number;
    let made = `<g class="node ${shade(node)}${node.open ? " open" : ""}" tabindex="0" role="button" `
      + `data-key="${key}" aria-label="${escape(texts(node).join(", "))}"`
      + `${opens ? ` aria-expanded="${!!node.open}"` : ""}><rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" `
      + `width="${box.w.toFixed(1)}" height="${box.h.toFixed(1)}" rx="4"/>`;
    const middle = (dx + box.x).toFixed(1);
    if (node.open)
      made += `<text x="${middle}" y="${y + 16}">${escape(box.lines[0])} ▾</text></g>`
        + contents(box.held, x + Math.max(PAD, (box.w - box.held.w) / 2), y + HEAD + PAD);
    else
      made += `<text x="${middle}" y="${y + 17}">${escape(box.lines[0])}${node.leaf ? "" : " ▸"}</text>`
        + `<text class="small" x="${middle}" y="${y + 17 + ROW}">${escape(box.lines[1])}</text></g>`;
    return made;
  }
  function contents(held, dx, dy) {
    const moved = points => points.map(([x, a, b]) => [x + dx, a + dy, b + dy]);
    const lines = held.edges.map(([a, b, operand], i) =>
      `<path class="edge" data-from="${operand}" d="${path(moved(held.lines[i]))}"/>`).join("");
    return lines + held.boxes.map(box => drawn(box, dx, dy)).join("");
  }
  let area = {x: 0, y: 0, w: 10, h: 10}, whole = area, chosen = null;
  const look = () => view.setAttribute("viewBox", [area.x, area.y, area.w, area.h].join(" "));
  function fit() {
    const {width, height} = view.getBoundingClientRect();
    const w = width || 800, h = height || 400;
    const scale = Math.max(whole.w / w, whole.h / h, 0.8), seen = Math.min(scale, 1.6);
    area = {w: w * seen, h: h * seen, x: whole.w / 2 - w * seen / 2, y: -8};
    if (scale <= seen) area.y = whole.h / 2 - h * seen / 2;
    look();
  }
  function most(node, found) {
    if (!node.open || node.leaf) {
      found.bytes = Math.max(found.bytes, node.bytes);
      found.time = Math.max(found.time, node.time);
    } else node.parts.forEach(part => most(part, found));
    return found;
  }
  function refresh(keep) {
    top.most = most(top, {bytes: 0, time: 0});
    const held = inside(top);
    whole = {x: 0, y: 0, w: held.w, h: held.h};
    view.innerHTML = contents(held, 0, 0);
    if (!keep) fit();
    mark();
  }
  const find = key => key[0] === "i" ? homes[+key.slice(1)] : groups[+key.slice(1)];
  function mark() {
    if (chosen === null) return;
    const near = new Set(), node = find(chosen);
    if (node && node.leaf) near.add(String(node.id));
    view.querySelectorAll(".edge").forEach(e => e.classList.toggle("near", near.has(e.dataset.from)));
    view.querySelectorAll(".node").forEach(e => e.classList.toggle("chosen", e.dataset.key === chosen));
  }
  function tell(node) {
    if (!node.leaf) {
      told.innerHTML = `<b>${escape(texts(node)[0])}</b> · ${escape(texts(node)[1])} · `
        + `${size(node.bytes)} · ${span(node.time)} estimated`;
      return;
    }
    const id = node.id, line = data.source[id];
    const names = list => list.slice(0, 12).map(j =>
      `<a href="#${prefix}${escape(data.names[j])}" data-go="${j}">%${escape(data.names[j])}</a>`).join(", ");
    told.innerHTML = `<a class="row" href="#${prefix}${escape(data.names[id])}"><b>%${escape(data.names[id])}</b></a> `
      + `${escape(data.ops[data.op[id]])} ${escape(data.shapes[data.shape[id]])} · ${size(data.bytes[id])} · `
      + `${span(data.time[id])} estimated`
      + (line < 0 ? "" : `<br>${escape(data.sources[line][0])} <code>${escape(data.sources[line][1])}</code>`)
      + (data.operands[id].length ? `<br>of ${names(data.operands[id])}` : "")
      + (users[id].length ? `<br>used by ${names(users[id])}` : "");
  }
  function choose(key, toggles) {
    const node = find(key);
    chosen = key;
    if (toggles && (!node.leaf || node.parts.length)) {
      node.open = !node.open;
      refresh(true);
      const again = view.querySelector(`[data-key="${key}"]`);
      if (again) again.focus({preventScroll: true});
    }
    tell(node);
    mark();
  }
  function reveal(id) {
    for (const node of above(homes[id]).slice(1)) node.open = true;
    chosen = "i" + id;
    refresh(true);
    tell(homes[id]);
    const rect = view.querySelector(`[data-key="i${id}"] rect`);
    if (!rect) return;
    area.x = +rect.getAttribute("x") + rect.getAttribute("width") / 2 - area.w / 2;
    area.y = +rect.getAttribute("y") - area.h / 3;
    look();
  }
  function zoom(by, x = area.x + area.w / 2, y = area.y + area.h / 2) {
    const far = Math.max(whole.w, whole.h, 400) * 4;
    if (area.w * by > far || area.w * by < 60) return;
    area = {x: x - (x - area.x) * by, y: y - (y - area.y) * by, w: area.w * by, h: area.h * by};
    look();
  }
  const scale = () => area.w / (view.getBoundingClientRect().width || 1);
  let drag = null;
  view.addEventListener("pointerdown", e => { drag = {x: e.clientX, y: e.clientY, moved: false}; });
  view.addEventListener("pointermove", e => {
    if (!drag || !(e.buttons & 1)) return;
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    area.x -= dx * scale();
    area.y -= dy * scale();
    drag = {x: e.clientX, y: e.clientY, moved: true};
    look();
  });
  view.addEventListener("click", e => {
    const moved = drag && drag.moved, node = e.target.closest(".node"), port = e.target.closest(".port");
    drag = null;
    if (moved) return;
    if (port) reveal(+port.dataset.id);
    if (node) choose(node.dataset.key, true);
  });
  view.addEventListener("wheel", e => {
    if (!e.ctrlKey && !e.metaKey && !e.shiftKey && document.activeElement !== view
        && !view.contains(document.activeElement)) return;
    e.preventDefault();
    const box = view.getBoundingClientRect(), by = e.deltaY > 0 ? 1.15 : 1 / 1.15;
    zoom(by, area.x + (e.clientX - box.x) * scale(), area.y + (e.clientY - box.y) * scale());
  }, {passive: false});
  view.addEventListener("keydown", e => {
    const step = 60 * scale(), node = e.target.closest(".node");
    const keys = {
      ArrowLeft: () => { area.x -= step; look(); }, ArrowRight: () => { area.x += step; look(); },
      ArrowUp: () => { area.y -= step; look(); }, ArrowDown: () => { area.y += step; look(); },
      "+": () => zoom(1 / 1.25), "=": () => zoom(1 / 1.25), "-": () => zoom(1.25), 0: fit,
      Enter: () => node && choose(node.dataset.key, true), " ": () => node && choose(node.dataset.key, true),
    };
    if (!keys[e.key] || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  view.addEventListener("focusin", e => {
    const node = e.target.closest(".node");
    if (node) { chosen = node.dataset.key; tell(find(chosen)); mark(); }
  });
  const goes = e => {
    const link = e.target.closest("a");
    if (!link) return;
    if (link.dataset.go !== undefined) { e.preventDefault(); reveal(+link.dataset.go); return; }
    const row = document.getElementById(decodeURIComponent(link.getAttribute("href").slice(1)));
    for (let at = row && row.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  };
  told.addEventListener("click", goes);
  colour.addEventListener("change", () => refresh(true));
  root.querySelectorAll("button").forEach(button => button.addEventListener("click", () => {
    const how = button.dataset.do;
    if (how === "fit") fit();
    if (how === "in") zoom(1 / 1.25);
    if (how === "out") zoom(1.25);
    if (how === "close") { groups.forEach(g => { g.open = g === top; }); homes.forEach(h => { h.open = false; }); refresh(); }
    if (how === "open") { groups.forEach(g => { g.open = g.open || g.count <= 200; }); refresh(); }
  }));
  root.hidden = false;
  refresh();
  root.addEventListener("toggle", fit, true);
}
for (const root of document.querySelectorAll(".tracejit .graph[hidden]")) draw(root);
})();
