// Joules on each chip, joules by term, and accuracy against joules.
const PREFIX = { "-15": "f", "-12": "p", "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M" };
const joules = (value) => {
  const power = Math.max(-15, Math.min(6, 3 * Math.floor(Math.log10(value) / 3 + 1e-9)));
  return `${Number((value / 10 ** power).toPrecision(3))} ${PREFIX[power]}J`;
};
const range = (row) => `${joules(row.low)} to ${joules(row.high)}`;
const clip = (place, name) => (place.clientWidth < 560 && name.length > 22 ? `${name.slice(0, 21)}…` : name);

// Dots with ranges on a logarithmic axis, grouped by boundary; dense devices are hollow.
const drawStack = (id, rows) => {
  const place = byId(id);
  if (!place || !rows.length) return;
  const known = rows.filter((row) => row.joules);
  const least = known.map((row) => Math.log10(row.low > 0 ? row.low : row.joules));
  const first = known.length ? Math.floor(Math.min(...least)) : 0;
  const last = known.length ? Math.log10(Math.max(...known.map((row) => row.high))) + 0.25 : 1;
  const lines = [];
  let group = null;
  rows.forEach((row) => {
    const heading = row.joules ? `inside ${row.group || "an unknown boundary"}` : "no joules";
    if (heading !== group) lines.push({ heading });
    group = heading;
    lines.push({ row });
  });
  place.style.height = `${110 + 24 * lines.length}px`;
  const drawn = lines.map((line, at) => ({ ...line, at })).filter((line) => line.row);
  const traces = [];
  const ends = drawn.filter((line) => line.row.joules);
  traces.push({
    type: "scatter", mode: "markers", showlegend: false, marker: { color: ends.map((line) => (line.row.dense ? colour("soft") : colour("ink"))), symbol: ends.map((line) => (line.row.dense ? "circle-open" : "circle")), size: 8 },
    x: ends.map((line) => Math.log10(line.row.joules)), y: ends.map((line) => line.at),
    error_x: {
      type: "data", symmetric: false, color: colour("ink"), thickness: 1.4, width: 4,
      array: ends.map((line) => Math.log10(line.row.high / line.row.joules)),
      arrayminus: ends.map((line) => (line.row.low > 0 ? Math.log10(line.row.joules / line.row.low) : 0)),
    },
    customdata: ends.map((line) => `${plain(line.row.name)}: ${line.row.least ? "at least " : ""}${joules(line.row.joules)}<br>${range(line.row)}`),
    hovertemplate: "%{customdata}<extra></extra>",
  });
  const most = Math.max(12, Math.floor((place.clientWidth - 240) / 7));
  const shorten = (text) => plain(text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const notes = lines.map((line, at) => ({ line, at })).filter(({ line }) => line.heading || line.row.reason).map(({ line, at }) => ({
    x: 0, xref: "paper", y: at, xanchor: "left", showarrow: false, align: "left",
    text: line.heading ? `<i>${plain(line.heading)}</i>` : shorten(line.row.reason), font: { color: colour("soft"), size: 12 },
  }));
  const decades = [];
  for (let k = first; k <= last; k += 1) decades.push(k);
  const x = axis("", { range: [first, last], tickvals: decades, ticktext: decades.map((k) => joules(10 ** k)) });
  const label = (row) => (row.least && row.joules ? "≥ " : "") + clip(place, row.name);
  const y = axis("", {
    showgrid: false, range: [lines.length - 0.4, -0.6], tickvals: drawn.map((line) => line.at), ticktext: drawn.map((line) => plain(label(line.row))),
  });
  draw(id, traces, layout(x, y, { barmode: "overlay", bargap: 0.3, annotations: notes }));
};

const drawTerms = (id, rows, tint) => {
  const place = byId(id);
  if (!place || !rows.length) return;
  place.style.height = `${70 + 30 * rows.length}px`;
  const span = [0, Math.max(...rows.map((row) => row.high)) * 1.05];
  const traces = [{
    type: "bar", orientation: "h", x: rows.map((row) => row.joules), y: rows.map((_, k) => k),
    customdata: rows.map((row) => `${plain(row.name)}: ${joules(row.joules)}<br>${range(row)}`), hovertemplate: "%{customdata}<extra></extra>",
    marker: { color: rows.map((row) => row.colour || tint(row)), opacity: 0.85 },
    error_x: {
      type: "data", symmetric: false, color: colour("ink"), thickness: 1.4, width: 4,
      array: rows.map((row) => row.high - row.joules), arrayminus: rows.map((row) => row.joules - row.low),
    },
  }];
  const x = axis("", { range: span, tickformat: "~s", ticksuffix: "J", nticks: 6 });
  const y = axis("", { showgrid: false, tickvals: rows.map((_, k) => k), ticktext: rows.map((row) => plain(clip(place, row.name))) });
  draw(id, traces, layout(x, y, { bargap: 0.35 }));
};

// The axis shows the upper accuracies only: far lower ones would compress them to a line.
const FAR = 5;
const drawTrade = () => {
  const chosen = byId("trade-chip"), points = chosen && data.energy.curves[chosen.value];
  if (!points) return;
  const codes = [...new Set(points.map((point) => point.code))], colours = palette();
  const ends = [Math.min(...points.map((point) => point.low)), Math.max(...points.map((point) => point.high))].map(Math.log10);
  const span = [ends[0] - 0.08, ends[1] + 0.08], dtick = span[1] - span[0] > 1.2 ? 1 : "D2";
  const top = Math.max(...points.map((point) => 100 * point.accuracy));
  const near = points.filter((point) => 100 * point.accuracy >= top - FAR), least = Math.min(...near.map((point) => 100 * point.accuracy));
  const pad = Math.max(0.25, 0.15 * (top - least));
  const pixels = (value) => ((Math.log10(value) - span[0]) / (span[1] - span[0])) * (byId("trade").clientWidth - 80);
  const traces = codes.map((code, k) => {
    const mine = points.filter((point) => point.code === code).sort((a, b) => a.joules - b.joules);
    let last = -Infinity;  // leave out labels that would overlap the previous one
    const labels = mine.map((point) => {
      if (!near.includes(point) || pixels(point.joules) - last < 26) return "";
      last = pixels(point.joules);
      return `${point.steps}`;
    });
    return {
      type: "scatter", mode: "lines+markers+text", name: plain(code), line: { color: colours[k % colours.length], width: 1.6 }, marker: { size: 7, symbol: k },
      x: mine.map((point) => point.joules), y: mine.map((point) => 100 * point.accuracy), text: labels,
      textposition: k % 2 ? "top center" : "bottom center", textfont: { size: 11, color: colours[k % colours.length] },
      customdata: mine.map((point) => `${plain(code)}, ${point.steps} steps: ${(100 * point.accuracy).toFixed(2)} % for ${joules(point.joules)}<br>${range(point)}${point.fits ? "" : "<br>unknown whether it fits"}`),
      hovertemplate: "%{customdata}<extra></extra>",
      error_x: {
        type: "data", symmetric: false, color: colours[k % colours.length], thickness: 0.8, width: 2,
        array: mine.map((point) => point.high - point.joules), arrayminus: mine.map((point) => point.joules - point.low),
      },
    };
  });
  const best = points.find((point) => point.best);
  if (best) traces.push({
    type: "scatter", mode: "markers", name: `best trade: ${plain(best.code)}, ${best.steps} steps`, x: [best.joules], y: [100 * best.accuracy], hoverinfo: "skip",
    marker: { symbol: "star", size: 15, color: colour("fifth"), line: { color: colour("ink"), width: 1 } },
  });
  const below = points.length - near.length;
  byId("trade-below").textContent = below ? `${below} of ${points.length} points lie below the axis, at ${(100 * Math.min(...points.map((point) => point.accuracy))).toFixed(0)} % and more: too few steps to settle.` : "";
  const x = axis("joules of an inference; the numbers are steps", { type: "log", range: span, dtick, tickformat: "~s", ticksuffix: "J" });
  const y = axis("test accuracy, %", { range: [least - pad, top + pad], nticks: 6 });
  draw("trade", traces, layout(x, y, { margin: { l: 50, r: 12, t: 24 + 19 * Math.ceil(traces.length / (byId("trade").clientWidth < 560 ? 1 : 3)), b: 44 } }));
};

const drawEnergy = () => {
  const use = byId("use");
  if (use) drawStack("chips", data.energy.bars[use.value] || []);
  drawTrade();
  const place = byId("chip"), estimate = place && data.energy.estimates[Number(place.value)];
  if (!estimate) return;
  const rows = estimate.terms.slice().reverse().concat(estimate.total ? [estimate.total] : []);
  drawTerms("terms", rows, (row) => colour(row === estimate.total ? "rate" : "spike"));
  document.querySelectorAll(".estimate").forEach((part) => { part.hidden = part.dataset.estimate !== place.value; });
};
const fillEnergy = () => {
  const labels = { inference: "an inference", learning: "a training sample" };
  if (byId("use")) Object.keys(data.energy.bars).forEach((use) => option(byId("use"), use, labels[use]));
  if (byId("trade-chip")) Object.keys(data.energy.curves).forEach((name) => option(byId("trade-chip"), name, name));
  if (byId("chip")) data.energy.estimates.forEach((estimate, k) => option(byId("chip"), k, estimate.name));
  ["use", "chip", "trade-chip"].forEach((id) => listen(id, drawEnergy));
};
register(drawEnergy, fillEnergy);
