// Joules on each chip, and by term.
const drawBars = (id, rows, tint) => {
  const place = byId(id);
  if (!place || !rows.length) return;
  place.style.height = `${70 + 30 * rows.length}px`;
  const lowest = Math.min(...rows.map((row) => (row.low > 0 ? row.low : row.joules)));
  const range = [Math.floor(Math.log10(lowest / 2)), Math.log10(Math.max(...rows.map((row) => row.high)) * 1.6)];
  const short = (name) => (place.clientWidth < 480 && name.length > 24 ? `${name.slice(0, 23)}…` : name);
  const traces = [{
    type: "bar", orientation: "h", x: rows.map((row) => row.joules), y: rows.map((_, k) => k),
    customdata: rows.map((row) => plain(row.name)), hovertemplate: "%{customdata}: %{x:.3s}J<extra></extra>",
    marker: { color: rows.map(tint), opacity: 0.85 },
    error_x: {
      type: "data", symmetric: false, color: colour("ink"), thickness: 1.4, width: 4,
      array: rows.map((row) => row.high - row.joules), arrayminus: rows.map((row) => row.joules - row.low),
    },
  }];
  const x = axis("", { type: "log", range, tickformat: "~s", ticksuffix: "J", dtick: 1 });
  const y = axis("", { showgrid: false, tickvals: rows.map((_, k) => k), ticktext: rows.map((row) => plain(short(row.name))) });
  draw(id, traces, layout(x, y, { bargap: 0.35 }));
};
const drawEnergy = () => {
  const kinds = { inference: "spike", learning: "fourth", dense: "soft" };
  drawBars("chips", data.energy.overview.slice().reverse(), (row) => colour(kinds[row.kind]));
  const place = byId("chip"), bill = place && data.energy.bills[Number(place.value)];
  if (!bill) return;
  const rows = bill.terms.slice().reverse().concat(bill.total ? [bill.total] : []);
  drawBars("terms", rows, (row) => colour(row === bill.total ? "rate" : "spike"));
  document.querySelectorAll(".bill").forEach((part) => { part.hidden = part.dataset.bill !== place.value; });
};
const fillEnergy = () => {
  if (byId("chip")) data.energy.bills.forEach((bill, k) => option(byId("chip"), k, bill.name));
  listen("chip", drawEnergy);
};
