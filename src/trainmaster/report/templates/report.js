"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  // Light and dark.
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Sorting.
  const sortBy = (table, column, heading) => {
    const up = heading.getAttribute("aria-sort") !== "ascending";
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const missing = (row) => column > 0 && row.cells[column].dataset.value === undefined;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const order = column === 0 ? value(a).localeCompare(value(b)) : value(a) - value(b);
      return up ? order : -order;
    });
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sortBy(table, column, heading));
    });
  }

  // Jobs on nodes. The geometry is that of lane_drawing.py.
  const source = byId("lane-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const controls = { policy: byId("lane-policy"), page: byId("lane-page"), colour: byId("lane-colour"), hour: byId("lane-hour") };
  const picture = byId("lane-picture");
  const readout = byId("lane-readout");
  const NS = "http://www.w3.org/2000/svg";
  const FIELDS = 7;
  let bars = [];

  const make = (name, attributes, content) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (content !== undefined) node.textContent = content;
    return node;
  };
  const two = (amount, base, large, small) => {
    const whole = Math.floor(amount / base), rest = amount % base;
    return [whole ? `${whole} ${large}` : "", rest || !whole ? `${rest} ${small}` : ""].filter(Boolean).join(" ");
  };
  const duration = (s) => {
    if (s < 60) return `${Math.round(s)} s`;
    if (Math.round(s) < 3600) return two(Math.round(s), 60, "m", "s");
    if (Math.round(s / 60) < 1440) return two(Math.round(s / 60), 60, "h", "m");
    return two(Math.round(s / 3600), 24, "d", "h");
  };
  const hourName = (start) => {
    const since = `hour from ${duration(start)} to ${duration(start + 3600)} after the first submission`;
    if (data.start === null) return since;
    const [from, to] = [start, start + 3600].map((s) => new Date((data.start + s) * 1000).toISOString());
    const end = from.slice(0, 10) === to.slice(0, 10) ? to.slice(11, 16) : `${to.slice(0, 10)} ${to.slice(11, 16)}`;
    return `${since} (${from.slice(0, 10)} ${from.slice(11, 16)} to ${end}${data.zone && ` ${data.zone}`})`;
  };
  const shorten = (text, most) => (text.length > most ? `${text.slice(0, most / 2)}…${text.slice(1 - most / 2)}` : text);

  const describe = (bar) => {
    const [id, tenant, gpus] = data.jobs[bar.job];
    const owner = data.tenants[tenant][0];
    return `${id}${owner ? ` of ${owner}` : ""}, ${gpus} GPU${gpus === 1 ? "" : "s"}, ` +
      `${bar.overhead ? "starts or stops" : "runs"} on ${bar.node} for ${duration(bar.length)}`;
  };

  const show = (bar) => {
    const svg = picture.querySelector("svg");
    svg.classList.toggle("dimmed", Boolean(bar));
    for (const other of bars) other.shape.classList.toggle("same", Boolean(bar) && other.job === bar.job);
    readout.textContent = bar ? describe(bar) : "No job chosen.";
  };

  const draw = () => {
    const policy = data.policies[controls.policy.value];
    controls.hour.max = policy.hours - 1;
    const hour = Number(controls.hour.value);
    const firstNode = Number(controls.page?.value ?? 0) * data.page;
    const nodes = policy.nodes.slice(firstNode, firstNode + data.page);
    const byTenant = controls.colour.value === "tenant";
    const width = Math.max(300, picture.clientWidth);
    const total = nodes.reduce((sum, node) => sum + node[1], 0);
    const unit = Math.min(9, Math.max(1.8, 640 / Math.max(1, total)));
    const gap = 4, left = 74, top = 8, right = width - 10;
    const offsets = [top];
    for (const node of nodes) offsets.push(offsets.at(-1) + node[1] * unit + gap);
    const bottom = offsets.at(-1);
    const begin = hour * 3600, end = begin + 3600;
    const x = (s) => left + ((Math.min(end, Math.max(begin, s)) - begin) / 3600) * (right - left);
    const absolute = policy.from + begin;
    const name = hourName(absolute);
    const svg = make("svg", { class: "chart", viewBox: `0 0 ${width} ${bottom + 24}`, role: "group", "aria-label": `Jobs on nodes under ${policy.policy}, ${name}` });
    const every = Math.max(1, Math.ceil(13 / (offsets[1] - offsets[0])));
    nodes.forEach(([label, gpus], index) => {
      svg.append(make("rect", { x: left, y: offsets[index], width: right - left, height: gpus * unit, class: "lane" }));
      if (index % every === 0) {
        svg.append(make("text", { x: left - 8, y: offsets[index] + (gpus * unit) / 2 + 4, "text-anchor": "end", class: "tick" }, shorten(label, 10)));
      }
    });
    bars = [];
    for (let i = 0; i < policy.bars.length; i += FIELDS) {
      const [node, first, span, start, length, job, overhead] = policy.bars.slice(i, i + FIELDS);
      const row = node - firstNode;
      if (start >= end || start + length <= begin || row < 0 || row >= nodes.length) continue;
      const [, tenant, , size] = data.jobs[job];
      const bar = { job, node: nodes[row][0], length, overhead, start: Math.max(start, begin), y: offsets[row] + first * unit };
      const wide = x(start + length) - x(start);
      bar.shape = make("rect", {
        x: x(start), y: bar.y, width: wide > 2.4 ? wide - 0.6 : Math.max(0.8, wide), height: Math.max(0.6, span * unit - 0.6),
        class: `job ${byTenant ? `t${data.tenants[tenant][1]}` : `z${size}`}${overhead ? " overhead" : ""}`,
        tabindex: "-1", role: "img", "aria-label": describe(bar),
      });
      bar.shape.addEventListener("pointerenter", () => show(bar));
      bar.shape.addEventListener("focus", () => show(bar));
      svg.append(bar.shape);
      bars.push(bar);
    }
    bars.sort((a, b) => a.y - b.y || a.start - b.start);
    if (bars.length) bars[0].shape.setAttribute("tabindex", "0");
    for (const minute of [0, 15, 30, 45, 60]) {
      const at = x(begin + 60 * minute);
      svg.append(make("line", { x1: at, y1: bottom, x2: at, y2: bottom + 4, class: "mark" }));
      svg.append(make("text", { x: at, y: bottom + 18, "text-anchor": minute === 60 ? "end" : "middle", class: "tick" }, `+${minute} m`));
    }
    svg.addEventListener("pointerleave", () => show(null));
    svg.addEventListener("keydown", move);
    picture.replaceChildren(svg);
    readout.textContent = "No job chosen.";
    byId("lane-policy-name").textContent = policy.policy;
    byId("lane-hour-name").textContent = name;
    controls.hour.setAttribute("aria-valuetext", name);
    byId("legend-tenant").hidden = !byTenant;
    byId("legend-size").hidden = byTenant;
  };

  // Left and right: the neighbour on the same GPU; up and down: the nearest block on another one.
  const move = (event) => {
    const at = bars.findIndex((bar) => bar.shape === document.activeElement);
    if (at < 0 || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const now = bars[at];
    let next;
    if (event.key === "ArrowRight") next = bars[at + 1];
    else if (event.key === "ArrowLeft") next = bars[at - 1];
    else {
      const down = event.key === "ArrowDown" ? 1 : -1;
      const beyond = bars.filter((bar) => (bar.y - now.y) * down > 0);
      const nearest = Math.min(...beyond.map((bar) => Math.abs(bar.y - now.y)));
      const row = beyond.filter((bar) => Math.abs(bar.y - now.y) === nearest);
      next = row.sort((a, b) => Math.abs(a.start - now.start) - Math.abs(b.start - now.start))[0];
    }
    if (!next) return;
    now.shape.setAttribute("tabindex", "-1");
    next.shape.setAttribute("tabindex", "0");
    next.shape.focus();
  };

  for (const control of Object.values(controls)) control?.addEventListener("input", draw);
  controls.policy.form.addEventListener("submit", (event) => event.preventDefault());
  let known = picture.clientWidth;
  new ResizeObserver(() => {
    if (picture.clientWidth !== known) {
      known = picture.clientWidth;
      draw();
    }
  }).observe(picture);
  draw();
})();
