"use strict";
(() => {
  const COLOURS = {/*COLOURS*/};
  const status = document.getElementById("status");

  // What has no number comes last, whichever way it is sorted.
  function sort(table, titles, column) {
    const title = titles[column];
    const before = title.getAttribute("aria-sort");
    const up = before === "none" ? title.dataset.first === "ascending" : before === "descending";
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const numbers = title.dataset.sort !== "text";
    const rows = [...table.tBodies[0].rows];
    rows.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = numbers ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true });
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
    for (const each of titles) each.setAttribute("aria-sort", "none");
    title.setAttribute("aria-sort", up ? "ascending" : "descending");
    status.textContent = `sorted by ${title.textContent.trim()}, ${up ? "ascending" : "descending"}`;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const titles = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    titles.forEach((title, column) => {
      title.querySelector("button").addEventListener("click", () => sort(table, titles, column));
    });
  }

  const IN_CHART = ".study > .figures g[data-series]";

  // In a file that a figure is kept as, only the attribute hides.
  function hide(element, hidden) {
    if (element instanceof SVGElement && hidden) element.setAttribute("display", "none");
    else if (element instanceof SVGElement) element.removeAttribute("display");
    else element.hidden = hidden;
  }

  // A legend has room for a few of its entries; what is shown beyond them is counted in its last line.
  function legendOf(svg) {
    const entries = [...svg.querySelectorAll(".entry[data-series]")];
    const more = svg.querySelector(".more");
    const first = entries.filter((entry) => !entry.hasAttribute("display"));
    const slots = first.map((entry) => entry.getAttribute("transform"));
    return (shown, kept, pointed) => {
      const named = entries.filter((entry) => shown.has(entry.dataset.series));
      named.sort((one, other) => kept.has(other.dataset.series) - kept.has(one.dataset.series));
      const rest = named.splice(slots.length);
      const extra = rest.find((entry) => entry.dataset.series === pointed);
      for (const entry of entries) hide(entry, entry !== extra && !named.includes(entry));
      named.forEach((entry, slot) => entry.setAttribute("transform", slots[slot]));
      extra?.setAttribute("transform", more.getAttribute("transform"));
      if (more) {
        hide(more, extra || rest.length === 0);
        more.firstElementChild.textContent = `and ${rest.length} more`;
      }
    };
  }

  // Methods of a study: some are shown, in all of its tables and charts, and some stand out from the others.
  function explore(study) {
    const methods = [...study.querySelector("table.sortable").tBodies[0].rows].map((row) => ({
      series: row.dataset.series, kind: row.dataset.kind, name: row.cells[0].textContent.toLowerCase(),
    }));
    const inTables = [...study.querySelectorAll("tr[data-series], section[data-series]")];
    const inCharts = [...study.querySelectorAll(IN_CHART)];
    const buttons = [...study.querySelectorAll("tr[data-series] button")];
    const legends = [...study.querySelectorAll(":scope > .figures svg")].map(legendOf);
    const filter = study.querySelector(".filter");
    let shown = new Set(methods.map((method) => method.series));
    let pointed;
    const kept = new Set();

    function update() {
      const bright = [...kept, pointed].filter((series) => shown.has(series));
      for (const element of [...inTables, ...inCharts]) hide(element, !shown.has(element.dataset.series));
      for (const element of inCharts) {
        element.classList.toggle("faded", bright.length > 0 && !bright.includes(element.dataset.series));
      }
      for (const button of buttons) button.setAttribute("aria-pressed", kept.has(button.closest("tr").dataset.series));
      for (const legend of legends) legend(shown, kept, pointed);
    }

    function point(event) {
      const series = event.target.closest(`tr[data-series], ${IN_CHART}`)?.dataset.series;
      if (series === pointed) return;
      pointed = series;
      update();
    }

    study.addEventListener("pointerover", point);
    study.addEventListener("pointerleave", point);
    study.addEventListener("focusin", point);
    study.addEventListener("click", (event) => {
      const pressed = event.target.closest(`tr[data-series] button, ${IN_CHART}`);
      if (!pressed) return;
      const { series } = pressed.closest("[data-series]").dataset;
      if (!kept.delete(series)) kept.add(series);
      update();
    });
    study.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      kept.clear();
      update();
    });
    function choose() {
      const words = filter.querySelector("[type=search]").value.toLowerCase().split(/\s+/);
      const kinds = [...filter.querySelectorAll(":checked")].map((box) => box.value);
      const wanted = methods.filter(({ name, kind }) =>
        words.every((word) => name.includes(word)) && (kinds.length === 0 || kinds.includes(kind)));
      shown = new Set(wanted.map((method) => method.series));
      filter.querySelector("output").textContent = `${shown.size} of ${methods.length} methods`;
      update();
    }

    filter?.addEventListener("input", choose);
    // A browser that comes back to the page may have kept what was typed.
    if (filter) choose();
  }

  document.querySelectorAll(".study").forEach(explore);

  // A figure that leaves the page takes its colours with it, those of paper.
  function standalone(svg) {
    const copy = svg.cloneNode(true);
    const paper = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: "var(--paper)" })) {
      paper.setAttribute(name, value);
    }
    copy.querySelector("desc").after(paper);
    for (const faded of copy.querySelectorAll(".faded")) faded.classList.remove("faded");
    for (const element of copy.querySelectorAll("*")) {
      for (const name of ["fill", "stroke"]) {
        const variable = /^var\(--([\w-]+)\)$/.exec(element.getAttribute(name) ?? "");
        if (variable) element.setAttribute(name, COLOURS[variable[1]]);
      }
    }
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
  }

  for (const button of document.querySelectorAll("button.download")) {
    button.addEventListener("click", () => {
      const content = standalone(button.closest("figure").querySelector("svg"));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([content], { type: "image/svg+xml" }));
      link.download = `${button.dataset.name}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  document.documentElement.classList.add("js");
})();
