"use strict";
for (const lines of document.querySelectorAll("pre[data-lines]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const text = lines.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(lines.querySelector("code"));
      button.textContent = "Selected";
    }
  });
  lines.prepend(button);
}
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort !== "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.ariaSort = down ? "descending" : "ascending";
      const value = (row) => (row.cells[at].dataset.n === undefined ? null : Number(row.cells[at].dataset.n));
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x !== null && y !== null) return x - y;
        if (x !== null || y !== null) return x === null ? -1 : 1;
        return a.cells[at].textContent.localeCompare(b.cells[at].textContent);
      };
      body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
    });
  });
}
