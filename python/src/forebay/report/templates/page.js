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
const spanText = (s, digits) => {
  if (s >= 120) return `${Math.floor(s / 60)} min ${(s % 60).toFixed(Math.max(0, digits - 3))} s`;
  const [value, unit] = s >= 1 || s === 0 ? [s, "s"] : s >= 1e-3 ? [s * 1e3, "ms"] : [s * 1e6, "µs"];
  return `${Number(value.toPrecision(digits))} ${unit}`;
};
for (const chart of document.querySelectorAll("svg[data-timeline]")) {
  const bars = chart.querySelector(".bars");
  const [, , steps, height] = bars.getAttribute("viewBox").split(" ").map(Number);
  const whole = Number(chart.dataset.timeline);
  const narrowest = 1 / 4096;
  let [begin, share] = [0, 1];
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  const buttons = document.createElement("div");
  buttons.className = "zoom";
  buttons.setAttribute("role", "group");
  buttons.setAttribute("aria-label", `Zoom: ${chart.querySelector("title").textContent}`);
  const show = (from, part) => {
    share = Math.min(1, Math.max(narrowest, part));
    begin = Math.min(1 - share, Math.max(0, from));
    bars.setAttribute("viewBox", `${begin * steps} 0 ${share * steps} ${height}`);
    const isNear = share <= 1 / 4;
    bars.querySelector(".far").setAttribute("display", isNear ? "none" : "inline");
    bars.querySelector(".near").setAttribute("display", isNear ? "inline" : "none");
    const digits = 3 + Math.ceil(Math.log10(1 / share));
    const text = (part) => spanText(part * whole, digits);
    [...chart.querySelectorAll(".tick")].forEach((tick, at) => {
      tick.textContent = text(begin + (share * at) / 4);
    });
    said.textContent = `${text(begin)} to ${text(begin + share)}`;
  };
  const zoom = (by, around = 0.5) => {
    const next = Math.min(1, Math.max(narrowest, share * by));
    show(begin + (share - next) * around, next);
  };
  const actions = [
    ["Zoom in", "+", () => zoom(0.5)],
    ["Zoom out", "-", () => zoom(2)],
    ["Earlier", "ArrowLeft", () => show(begin - share / 4, share)],
    ["Later", "ArrowRight", () => show(begin + share / 4, share)],
    ["Whole run", "0", () => show(0, 1)],
  ];
  for (const [text, key, act] of actions) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = `key ${key}`;
    button.addEventListener("click", act);
    buttons.append(button);
  }
  buttons.append(said);
  chart.tabIndex = 0;
  chart.addEventListener("keydown", (event) => {
    const action = actions.find(([, key]) => key === event.key);
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action[2]();
  });
  bars.addEventListener("dblclick", (event) => {
    const box = chart.getBoundingClientRect();
    const [left, width] = ["x", "width"].map((name) => Number(bars.getAttribute(name)) / chart.viewBox.baseVal.width);
    zoom(event.shiftKey ? 2 : 0.5, ((event.clientX - box.left) / box.width - left) / width);
  });
  chart.parentElement.before(buttons);
  show(0, 1);
}
