// Parallel coordinates of a sweep, and accuracy against joules; the rows are best first.
const sweepNumber = (value) => (value && Math.abs(value) < 1e-3 ? value.toExponential(3) : String(Number(value.toPrecision(4))));
const sweepText = (value) => (value === null || value === undefined ? "" : typeof value === "number" ? sweepNumber(value) : Array.isArray(value) ? value.join(",") : String(value));
// Values scaled to [0, 1]: numbers by size, others by order of appearance.
const scaled = (values) => {
  const known = values.filter((value) => value !== null);
  if (known.every((value) => typeof value === "number")) {
    const low = Math.min(...known), span = Math.max(...known) - low || 1;
    return values.map((value) => (value === null ? null : (value - low) / span));
  }
  const texts = values.map((value) => JSON.stringify(value)), names = [...new Set(texts)];
  return texts.map((text) => names.indexOf(text) / Math.max(names.length - 1, 1));
};
// Tick labels of an axis: all values if there are few, else the ends.
const ticksOf = (values, heights) => {
  const labels = new Map(values.map((value, k) => [sweepText(value), heights[k]]).filter(([, height]) => height !== null));
  return [...labels].filter(([, height]) => labels.size <= 6 || height === 0 || height === 1);
};
const drawCoordinates = () => {
  const { axes, measures, rows } = data.sweep, names = [...axes, ...measures];
  const heights = Object.fromEntries(names.map((name) => [name, scaled(rows.map((row) => row[name]))]));
  byId("coordinates").style.minWidth = `${Math.max(100 * names.length, 320)}px`;
  byId("coordinates").style.height = "420px";
  const lines = rows.map((row, place) => ({
    type: "scatter", mode: "lines+markers", showlegend: false, opacity: 0.7, hoverinfo: "text",
    x: names.map(plain), y: names.map((name) => heights[name][place]), text: names.map((name) => plain(`${name}: ${sweepText(row[name])}`)),
    line: { color: ramp(1 - place / Math.max(rows.length - 1, 1)), width: 1.5 },
  })).reverse();
  const annotations = names.flatMap((name) => ticksOf(rows.map((row) => row[name]), heights[name]).map(([text, y]) => ({
    x: plain(name), y, text: plain(text), xanchor: "left", xshift: 6, showarrow: false, font: { size: 11, color: colour("ink") },
  })));
  draw("coordinates", lines, layout(axis("", { type: "category", side: "top" }), axis("", { visible: false }), { annotations, margin: { t: 60, b: 30, l: 40, r: 60 } }));
};
const drawSweepJoules = () => {
  if (!byId("joules")) return;
  const rows = data.sweep.rows.filter((row) => row.joules !== null && row.spiking_accuracy !== null), front = [];
  [...rows].sort((one, other) => one.joules - other.joules || other.spiking_accuracy - one.spiking_accuracy).forEach((row) => {
    if (!front.length || row.spiking_accuracy > front[front.length - 1].spiking_accuracy) front.push(row);
  });
  const points = (held) => ({ type: "scatter", x: held.map((row) => row.joules), y: held.map((row) => row.spiking_accuracy) });
  const about = (row) => data.sweep.axes.map((name) => plain(`${name}: ${sweepText(row[name])}`)).join("<br>");
  draw("joules", [
    { ...points(rows), mode: "markers", name: "cells", text: rows.map(about), marker: { color: colour("soft"), size: 7 } },
    { ...points(front), mode: "lines+markers", name: "front", line: { color: colour("rate") } },
  ], layout(axis("joules of an inference", { type: "log" }), axis("accuracy as spikes", { tickformat: ".1%" }), { margin: { l: 60, r: 12, t: 40, b: 44 } }));
};
register(() => { drawCoordinates(); drawSweepJoules(); });
