"use strict";
(() => {
  const COLOURS = {/*COLOURS*/};
  const status = document.getElementById("status");

  // What has no number comes last, whichever way it is sorted.
  function sort(table, heads, place) {
    const head = heads[place];
    const before = head.getAttribute("aria-sort");
    const up = before === "none" ? head.dataset.first === "ascending" : before === "descending";
    const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const numbers = head.dataset.kind !== "words";
    const rows = [...table.tBodies[0].rows];
    rows.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = numbers ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true });
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
    for (const each of heads) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    status.textContent = `sorted by ${head.textContent.trim()}, ${up ? "ascending" : "descending"}`;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, place) => {
      head.querySelector("button").addEventListener("click", () => sort(table, heads, place));
    });
  }

  // A figure that leaves the page takes its colours with it, those of paper.
  function standalone(svg) {
    const copy = svg.cloneNode(true);
    const paper = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: "var(--paper)" })) {
      paper.setAttribute(name, value);
    }
    copy.querySelector("desc").after(paper);
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
