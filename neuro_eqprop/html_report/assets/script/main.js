// Sortable tables, and drawing of all charts.
const sort = (head) => {
  const table = head.closest("table"), place = [...head.parentNode.children].indexOf(head);
  const down = head.getAttribute("aria-sort") === "ascending";
  [...head.parentNode.children].forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.children[place].dataset.value;
  const compare = (a, b) => {
    const one = value(a), other = value(b);
    if (one === "" || other === "") return (one === "") - (other === "");
    const numbers = !Number.isNaN(Number(one)) && !Number.isNaN(Number(other));
    return (numbers ? one - other : one.localeCompare(other)) * (down ? -1 : 1);
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
};
document.querySelectorAll("table.sorts th").forEach((head) => {
  const place = [...head.parentNode.children].indexOf(head);
  const row = head.closest("table").tBodies[0].rows[0];
  if (row && row.children[place].classList.contains("number")) head.classList.add("number");
  head.querySelector("button").addEventListener("click", () => sort(head));
});

const drawAll = () => charts.forEach((section) => section.draw());
charts.forEach((section) => section.fill());
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// Redraw for printing: a printed page is white and narrow.
const refit = () => {
  document.querySelectorAll(".js-plotly-plot").forEach((place) => Plotly.Plots.resize(place));
  drawAll();
};
addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; refit(); });
addEventListener("afterprint", () => { delete document.documentElement.dataset.print; refit(); });
