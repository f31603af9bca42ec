// Sorting, filtering and hover of a page; without it every table is whole and in its own order.
"use strict";
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const make = (name, fields = {}) => Object.assign(document.createElement(name), fields);
  const UNITS = { "µs": 1e-6, "ms": 1e-3, "min": 60, "KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30, "TiB": 2 ** 40 };
  const words = new Intl.Collator(undefined, { numeric: true });

  // Returns what a cell is sorted by: a number in its basic unit, or its text.
  function valueOf(cell) {
    const text = (cell.firstElementChild?.dataset.v ?? cell.textContent).trim();
    const found = /^[+-]?\d[\d.,]*(?:e-?\d+)?/.exec(text);
    if (!found || /^\d{4}-\d\d-\d\d/.test(text)) return text === "–" ? "" : text;
    const unit = /^\s*([^\s\d[(]+)/.exec(text.slice(found[0].length));
    return parseFloat(found[0]) * (UNITS[unit?.[1]] ?? 1);
  }

  function compare(one, other) {
    if (one === "" || other === "") return (one === "") - (other === "");
    if (typeof one === "number" && typeof other === "number") return one - other;
    return words.compare(one, other);
  }

  function sort(table, heading) {
    const column = [...heading.parentNode.children].indexOf(heading);
    const order = { none: "ascending", ascending: "descending", descending: "none" }[heading.ariaSort ?? "none"];
    for (const other of all("thead th", table)) other.ariaSort = other.firstElementChild ? "none" : null;
    heading.ariaSort = order;
    for (const body of table.tBodies) {
      const rows = all("tr:not(.point, .remark)", body);
      rows.forEach((row, index) => { row.place ??= index; });
      const key = (row) => (order === "none" ? row.place : valueOf(row.cells[column]));
      const keyed = rows.map((row) => [key(row), row]);
      const way = order === "descending" ? -1 : 1;
      // What has no value stays last, whichever way.
      keyed.sort(([a, x], [b, y]) => (a === "" || b === "" ? compare(a, b) : way * compare(a, b)) || x.place - y.place);
      const after = rows.at(-1)?.nextElementSibling;
      const anchor = after && rows.includes(after) ? null : after;
      for (const [, row] of keyed) body.insertBefore(row, anchor ?? null);
    }
  }

  for (const table of all("table.sorts")) {
    for (const heading of all("thead th:not(.range)", table)) {
      const button = make("button", { type: "button" });
      button.append(...heading.childNodes);
      heading.append(button);
      heading.ariaSort = "none";
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  // A bar of choices: what is chosen stands in the address, so that it can be sent to others.
  for (const form of all(".filter")) {
    const { what, names, choices } = JSON.parse(form.firstElementChild.textContent);
    const keys = Object.keys(names), fields = {};
    const told = make("output", { ariaLive: "polite" });
    const search = make("input", { type: "search", placeholder: `search ${what}`, ariaLabel: `search ${what}` });
    fields.q = search;
    form.append(search);
    for (const [name, values] of Object.entries(choices)) {
      const select = make("select");
      select.append(new Option("any", ""), ...[...new Set(Object.values(values))].sort(words.compare).map((value) => new Option(value)));
      const label = make("label", { textContent: `${name} ` });
      label.append(select);
      fields[name] = select;
      form.append(label);
    }
    form.append(told);
    const show = () => {
      const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const hidden = new Set(keys.filter((key) =>
        !asked.every((word) => names[key].toLowerCase().includes(word)) ||
        Object.entries(choices).some(([name, values]) => fields[name].value && values[key] !== fields[name].value)));
      for (const row of all("[data-k]")) row.hidden = hidden.has(row.dataset.k);
      told.value = `${keys.length - hidden.size} of ${keys.length} ${what}`;
    };
    const said = new URLSearchParams(location.hash.slice(1));
    for (const [name, field] of Object.entries(fields)) if (said.has(name)) field.value = said.get(name);
    form.addEventListener("input", () => {
      show();
      const given = Object.entries(fields).filter(([, field]) => field.value).map(([name, field]) => [name, field.value]);
      history.replaceState(null, "", `#${new URLSearchParams(given)}`);
    });
    form.hidden = false;
    show();
  }

  // Values of plots by mouse, finger and keyboard: arrows go from plot to plot, and along its marks.
  const bubble = make("div", { className: "bubble", hidden: true, ariaHidden: "true" });
  document.body.append(bubble);
  const titled = (target) => target.closest?.("path[data-t], svg.plot");
  function tell(target) {
    const said = target && (target.dataset.t ?? target.getAttribute("aria-label"));
    bubble.hidden = !said;
    if (!said) return;
    bubble.textContent = said;
    const at = target.getBoundingClientRect(), width = document.documentElement.clientWidth;
    const left = Math.max(4, Math.min(at.left + at.width / 2 - bubble.offsetWidth / 2, width - bubble.offsetWidth - 4));
    const above = at.top - bubble.offsetHeight - 6;
    bubble.style.left = `${left + scrollX}px`;
    bubble.style.top = `${(above > 0 ? above : at.bottom + 6) + scrollY}px`;
  }
  for (const plot of all("svg.plot")) {
    // Its own title would be shown a second time.
    for (const title of all("title", plot)) {
      if (title.parentNode === plot) plot.setAttribute("aria-label", title.textContent);
      else title.parentNode.dataset.t = title.textContent;
      title.remove();
    }
  }
  const near = (plot) => all("svg.plot", plot.closest("table") ?? document).filter((each) => each.getClientRects().length);
  const first = new Set();
  for (const plot of all("svg.plot")) {
    const place = plot.closest("table") ?? document;
    plot.tabIndex = first.has(place) ? -1 : 0;
    first.add(place);
  }
  document.addEventListener("pointerover", (event) => tell(titled(event.target)));
  document.addEventListener("focusin", (event) => tell(titled(event.target)));
  document.addEventListener("focusout", () => tell(null));
  document.addEventListener("keydown", (event) => {
    const plot = document.activeElement?.closest("svg.plot");
    if (event.key === "Escape") tell(null);
    if (!plot) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const plots = near(plot), marks = all("path[data-t]", plot);
    if (step) {
      const next = plots[plots.indexOf(plot) + step];
      if (!next) return;
      plot.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if (along && marks.length) {
      plot.mark = Math.max(0, Math.min((plot.mark ?? (along > 0 ? -1 : marks.length)) + along, marks.length - 1));
      tell(marks[plot.mark]);
    } else return;
    event.preventDefault();
  });

  const folded = () => all("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => { opened = folded(); for (const each of opened) each.open = true; });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
})();
