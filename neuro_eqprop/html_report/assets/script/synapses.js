// A weight matrix, and the history of the synapse selected in it.
const matrixOf = () => data.synapses.matrices.find((held) => held.key === byId("connection").value);
const cellOf = (held) => [held.rows.indexOf(Number(byId("to").value)), held.columns.indexOf(Number(byId("from").value))];
const sides = () => {
  const place = matrixOf().place, mine = data.settling.filter((trace) => trace.place === place), picked = chosen("simulator");
  const spiking = picked && picked.place === place && picked.spikes ? picked : mine.find((trace) => trace.spikes);
  return [mine.find((trace) => !trace.spikes), spiking].filter((trace) => trace);
};

const drawMatrix = () => {
  const held = matrixOf(), view = byId("view").value, packed = held.views[view] || held.updates[view];
  const z = packed.rows.map((row) => decode(packed, row)), largest = Math.max(Math.abs(packed.low), Math.abs(packed.high));
  const [row, column] = cellOf(held), tall = innerWidth < 900 ? Math.max(190, Math.min(430, 90 + 18 * held.rows.length)) : 440;
  byId("matrix").style.height = `${tall}px`;
  const middle = colour("paper");
  const trace = {
    type: "heatmap", z, zmin: -largest, zmax: largest, xgap: held.columns.length < 90 ? 1 : 0, ygap: held.rows.length < 40 ? 1 : 0,
    colorscale: [[0, colour("fourth")], [0.5, middle], [1, colour("third")]],
    colorbar: { thickness: 10, len: 1, outlinewidth: 0, tickfont: { size: 11 } },
    customdata: held.rows.map((to) => held.columns.map((from) => `${plain(held.source)} ${from} → ${plain(held.target)} ${to}`)),
    hovertemplate: "%{customdata}: %{z:.3g}<extra></extra>",
  };
  const ticks = (units) => { const each = Math.ceil(units.length / (innerWidth < 600 ? 5 : 10)), at = units.map((_, k) => k).filter((k) => k % each === 0); return { tickvals: at, ticktext: at.map((k) => units[k]), showgrid: false }; };
  const around = (y, x) => ({ x0: x - 0.5, x1: x + 0.5, y0: y - 0.5, y1: y + 0.5 });
  const mark = { type: "rect", ...around(row, column), line: { color: colour("ink"), width: 2 } };
  const marks = held.recorded.map(([to, from]) => ({ ...mark, ...around(held.rows.indexOf(to), held.columns.indexOf(from)), line: { color: colour("soft"), width: 1.5 } }));
  if (row >= 0 && column >= 0) marks.push(mark);
  const shape = layout(axis(`from ${plain(held.source)}`, ticks(held.columns)), axis(`to ${plain(held.target)}`, { ...ticks(held.rows), autorange: "reversed" }), {
    shapes: marks, margin: { l: 56, r: 8, t: 8, b: 44 },
  });
  caption("matrix", byId("view").selectedOptions[0].textContent.replace(/^./, (letter) => letter.toUpperCase()));
  draw("matrix", [trace], shape);
  const cut = [["rows", "to", 0], ["columns", "from", 1]].filter(([key, , k]) => held[key].length < held.of[k]);
  byId("matrix-note").textContent = cut.map(([key, way, k]) => `The ${held[key].length} of ${held.of[k]} units ${way === "to" ? "it projects to" : "it comes from"} with the largest changes are shown.`)
    .concat(held.recorded.length ? ["Framed synapses were recorded during learning: click one of them."] : []).join(" ");
};

// Rate at each step as if the phase ended there: mean over the fraction window / steps of the phase so far.
const running = (values, phases) => {
  const found = [];
  phases.forEach((phase) => {
    const steps = phase.stop - phase.start, sums = [0];
    for (let k = 1; k <= steps; k += 1) {
      sums.push(sums[k - 1] + values[phase.start + k - 1]);
      const width = Math.ceil((k * phase.window) / steps);
      found.push((sums[k] - sums[k - width]) / width);
    }
  });
  return found;
};
const activity = (trace, layer, unit, sample) => {
  const held = trace.layers[layer], raster = data.rasters[trace.file];
  if (!held) {
    const given = samplesOf(trace)[sample].inputs;
    return given ? { still: decode(given, given.rows)[unit] } : null;
  }
  if (raster && !raster.graded) {
    const row = raster.layers[layer].units.indexOf(unit);
    if (row < 0) return null;
    const spikes = decodeSteps(raster.layers[layer].samples[sample][row]), values = Array(end(trace.phases)).fill(0);
    spikes.forEach((step) => { values[step - 1] = 1; });
    return { values: running(values, trace.phases), spikes };
  }
  const row = held.units.indexOf(unit);
  if (row < 0) return null;
  const course = decode(held.course, held.course.rows[sample][row]), whole = [];
  held.steps.forEach((step, k) => { while (whole.length < step) whole.push(course[k]); });
  return { values: raster ? running(whole, trace.phases) : whole };
};
const recorded = (trace, held, synapse, sample) => {
  const log = (data.synapses.histories[trace.file] || {})[held.name];
  const place = log ? log.synapses.findIndex(([to, from]) => to === synapse[0] && from === synapse[1]) : -1;
  if (place < 0 || !log.tag.rows[sample]) return null;
  const found = {};
  ["pre", "post", "product", "tag", "weight"].forEach((name) => { found[name] = decode(log[name], log[name].rows[sample][place]); });
  return found;
};
const historyOf = (trace, held, synapse, sample) => {
  const known = recorded(trace, held, synapse, sample);
  // In a run that learned, only recorded weights are known at every step.
  if (known || held.learned) return known;
  const post = activity(trace, held.target, synapse[0], sample), pre = activity(trace, held.source, synapse[1], sample);
  if (!pre || !post) return null;
  const [row, column] = cellOf(held);
  const steps = post.values.length, before = pre.values || Array(steps).fill(pre.still);
  const product = post.values.map((value, k) => value * before[k]), tag = [];
  let sum = 0;
  trace.phases.forEach((phase) => {
    for (let k = phase.start; k < phase.stop; k += 1) {
      if (k >= phase.stop - phase.window) sum += ((held.contrast[phase.name] || 0) / phase.window) * product[k];
      tag.push(sum);
    }
  });
  const weight = decode(held.views.weights, held.views.weights.rows[row])[column];
  return { pre: before, post: post.values, product, tag, weight: Array(steps).fill(weight), spikes: { pre: pre.spikes, post: post.spikes } };
};

const ROWS = [["pre", "pre trace"], ["post", "post trace"], ["product", "product"], ["tag", "tag"], ["weight", "weight"]];
const drawHistory = () => {
  const held = matrixOf(), sample = Number(byId("synapse-sample").value), tints = palette();
  const synapse = [Number(byId("to").value), Number(byId("from").value)];
  const shown = cellOf(held).some((place) => place < 0) ? [] : sides().map((trace, k) => [trace, historyOf(trace, held, synapse, sample), tints[trace.spikes ? 1 : 0], k]).filter(([, log]) => log);
  const about = samplesOf(sides()[0])[sample];
  caption("history", `${held.source} ${synapse[1]} → ${held.target} ${synapse[0]}, ${describe(about)}`);
  byId("synapse-which").textContent = describe(about);
  const digits = (value) => (Math.abs(value) < 5e-7 ? "0" : value.toPrecision(3));
  byId("history-values").replaceChildren(...shown.map(([trace, log]) => {
    const line = document.createElement("li"), last = (name) => log[name][log[name].length - 1];
    line.textContent = `${trace.on}: weight ${digits(last("weight"))}; update of the sample ${digits(last("tag"))} times the learning rate`;
    return line;
  }));
  byId("history-missing").hidden = shown.length > 0;
  const traces = [], axes = {}, labels = [], gap = 0.062, size = (1 - gap * (ROWS.length - 1)) / ROWS.length;
  ROWS.forEach(([name, title], row) => {
    const y = row ? `y${row + 1}` : "y", top = 1 - row * (size + gap);
    const values = shown.flatMap(([, log]) => log[name]), low = Math.min(0, ...values), high = Math.max(0, ...values);
    const room = 0.12 * (high - low || 1);
    axes[row ? `yaxis${row + 1}` : "yaxis"] = axis("", { domain: [Math.max(0, top - size), top], range: [low - room, high + 2.2 * room], nticks: 4 });
    labels.push({ xref: "paper", yref: `${y} domain`, x: 0, y: 1, xanchor: "left", yanchor: "bottom", text: title, showarrow: false, font: { size: 12.5, color: colour("soft") } });
    shown.forEach(([trace, log, color]) => {
      traces.push({
        x: log[name].map((_, k) => k + 1), y: log[name], yaxis: y, mode: "lines", line: { color, width: 2, shape: "hv" }, name: plain(trace.on),
        legendgroup: trace.file, showlegend: row === 0, hovertemplate: `${title} %{y:.4g} at step %{x}`,
      });
      const spikes = (log.spikes || {})[name];
      if (spikes) traces.push({ x: spikes, y: spikes.map(() => high + 0.75 * room), yaxis: y, mode: "markers", hoverinfo: "skip", showlegend: false, marker: { symbol: "line-ns", size: 6, line: { color, width: 1.2 } } });
    });
  });
  const phases = sides()[0].phases, shape = bands("history", phases, { margin: { l: 60, r: 12, t: 62, b: 44 } });
  shape.annotations.forEach((label) => { label.yshift = 15; });
  shape.annotations = shape.annotations.concat(labels);
  draw("history", traces, layout(axis("step", { range: [0.5, end(phases) + 0.5], anchor: `y${ROWS.length}` }), {}, { ...shape, ...axes, hovermode: "closest", legend: { orientation: "h", y: 1.07, yanchor: "bottom", x: 0 } }));
};

let started = false;
const drawSynapses = () => { if (byId("matrix")) { drawMatrix(); drawHistory(); } };
const choose = (to, from) => { byId("to").value = to; byId("from").value = from; drawSynapses(); };
const fillConnection = () => {
  const held = matrixOf();
  byId("view").replaceChildren();
  Object.keys(held.views).forEach((view) => option(byId("view"), view, view));
  Object.keys(held.updates).forEach((file) => option(byId("view"), file, `Hebbian update, ${traceOf(file) ? traceOf(file).on : file}`));
  byId("to").max = held.of[0] - 1;
  byId("from").max = held.of[1] - 1;
  const sample = byId("synapse-sample");
  sample.max = samplesOf(sides()[0]).length - 1;
  sample.value = held.linked && byId("sample") && started ? sampleNow() : held.sample;
  choose(held.rows[held.first[0]], held.columns[held.first[1]]);
};
const fillSynapses = () => {
  if (!byId("matrix")) return;
  data.synapses.matrices.forEach((held) => option(byId("connection"), held.key, held.key));
  fillConnection();
  started = true;
  byId("matrix").on("plotly_click", (event) => {
    const held = matrixOf(), point = event.points[0];
    choose(held.rows[point.pointIndex[0]], held.columns[point.pointIndex[1]]);
  });
  listen("connection", fillConnection);
  listen("view", drawMatrix);
  ["to", "from"].forEach((id) => listen(id, drawSynapses));
  // The two sample sliders are linked if both sections show the same samples.
  ["sample", "simulator"].forEach((id) => listen(id, () => { if (matrixOf().linked) byId("synapse-sample").value = sampleNow(); drawHistory(); }));
  listen("synapse-sample", () => { if (byId("sample") && matrixOf().linked) { byId("sample").value = byId("synapse-sample").value; drawSettling(); } drawHistory(); });
};
register(drawSynapses, fillSynapses);
