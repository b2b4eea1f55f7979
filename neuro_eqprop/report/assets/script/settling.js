// Rates and firing rates on their way, and the spikes.
const bands = (id, phases, extra) => ({
  shapes: phases.map((phase) => ({
    type: "rect", xref: "x", yref: "paper", x0: phase.start + 0.5, x1: phase.stop + 0.5, y0: 0, y1: 1,
    layer: "below", line: { width: 0 },
    fillcolor: colour(phase.beta > 0 ? "towards" : phase.beta < 0 ? "against" : "free"),
  })),
  annotations: phases.map((phase) => ({
    xref: "x", yref: "paper", x: (phase.start + phase.stop + 1) / 2, y: 1, yanchor: "bottom",
    showarrow: false, font: { size: 12, color: colour("soft") },
    text: plain(phase.name) + (phase.beta && byId(id).clientWidth > 170 * phases.length ? `, beta ${phase.beta}` : ""),
  })),
  margin: { l: 50, r: 12, t: 26, b: 44 }, ...extra,
});
const end = (phases) => phases[phases.length - 1].stop;
const traceOf = (file) => data.settling.find((trace) => trace.file === file);
const shownAs = (trace) => (trace.spikes ? `Firing rates, ${trace.on}` : `Rates${trace.on.replace(/^rate/, "")}`);
const chosen = (id) => (byId(id) ? traceOf(byId(id).value) : undefined);
const samplesOf = (trace) => data.samples[trace.run] || [];
// The sample that is shown; the section on synapses has a slider of its own if it stands alone.
const sampleNow = () => Number((byId("sample") || byId("sample-again")).value);
const saidOf = (about) => `${about.said}, label ${about.label}`;
// The phase that is looked at, or all of them.
const phaseNow = (trace) => { const place = byId("zoom"); return place ? trace.phases[Number(place.value) - 1] : undefined; };
const stepsShown = (trace) => { const phase = phaseNow(trace); return phase ? [phase.start + 0.5, phase.stop + 0.5] : [0.5, end(trace.phases) + 0.5]; };
const outputLayer = (trace) => { const names = Object.keys(trace.layers); return names[names.length - 1]; };

const drawCourse = (id, trace, layer, sample, range) => {
  const held = trace && trace.layers[layer], rows = held && held.course.rows[sample];
  if (trace) caption(id, shownAs(trace));
  if (!rows) return draw(id, [], layout(axis("step"), axis("rate")));
  const answer = samplesOf(trace)[sample].label, output = layer === outputLayer(trace), tints = palette();
  const courses = held.lines.map((place) => unpack(held.course, rows[place])), units = held.lines.map((place) => held.units[place]);
  const shownSteps = stepsShown(trace), at = held.steps.filter((step) => step < shownSteps[1]).length - 1;
  const last = courses.map((course) => course[at]);
  const named = last.map((_, k) => k).sort((one, other) => last[other] - last[one]).slice(0, 3);
  const traces = courses.map((course, k) => {
    const shown = output && named.includes(k) && last[k] > 0.05;
    return {
      x: held.steps, y: course, mode: shown ? "lines+text" : "lines", showlegend: false,
      name: `unit ${units[k]}`, hovertemplate: "step %{x}: %{y:.3f}", cliponaxis: false,
      line: { color: output ? tints[units[k] % tints.length] : ramp((0.618034 * units[k]) % 1), width: output && units[k] === answer ? 4 : 1.7 },
      text: course.map((_, place) => (place === at ? ` ${units[k]}` : "")),
      textposition: "middle right", textfont: { size: 13, color: colour("ink") },
    };
  });
  const shape = layout(
    axis("step", { range: shownSteps }), axis("rate", { range }), bands(id, trace.phases, { margin: { l: 50, r: 24, t: 26, b: 44 } }),
  );
  return draw(id, traces, shape);
};

const drawRaster = (name, sample) => {
  const held = data.rasters[name];
  if (!byId("raster")) return;
  byId("raster").parentNode.hidden = !held;
  if (!held) return;
  const tints = palette();
  const names = Object.keys(held.layers);
  let base = 0;
  const ticks = { values: [], texts: [] };
  const traces = names.map((layer, k) => {
    const rows = held.layers[layer].samples[sample] || [];
    const x = [], y = [];
    rows.forEach((text, row) => stepsOf(text).forEach((step) => {
      x.push(step, step, null);
      y.push(base + row + 0.1, base + row + 0.9, null);
    }));
    ticks.values.push(base + rows.length / 2);
    ticks.texts.push(plain(layer));
    base += rows.length + 2;
    return { x, y, mode: "lines", hoverinfo: "skip", showlegend: false, line: { color: tints[(k + 1) % tints.length], width: 1.3 } };
  });
  byId("raster").style.height = `${Math.round(Math.min(innerWidth < 600 ? 460 : 700, 140 + 3.4 * base))}px`;
  caption("raster", `${held.graded ? "Messages" : "Spikes"}, ${traceOf(name).on}`);
  const y = axis("", { tickvals: ticks.values, ticktext: ticks.texts, showgrid: false, range: [-1, base] });
  draw("raster", traces, layout(axis("step", { range: stepsShown(held) }), y, bands("raster", held.phases)));
};

const leftOut = (trace, layer, name) => {
  const said = [], line = trace && trace.layers[layer];
  if (line && line.lines.length < line.of) said.push(`The ${line.lines.length} of ${line.of} units of ${layer} whose rates differ most between samples are drawn.`);
  Object.entries(data.rasters[name] ? data.rasters[name].layers : {}).forEach(([each, held]) => {
    if (held.units.length < held.of) said.push(`The ${held.units.length} busiest of ${held.of} units of ${each} are in the raster.`);
  });
  byId("left-out").textContent = said.join(" ");
};
const drawImage = (sample) => {
  const place = byId("image"), held = sample.inputs, side = held ? Math.sqrt(held.of) : 0;
  place.hidden = !(side > 1 && side <= 32 && Number.isInteger(side));
  if (place.hidden) return;
  place.width = place.height = side;
  const pixels = unpack({ low: 0, high: 255 }, held.rows).flatMap((value) => [value, value, value, 255]);
  place.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels), side), 0, 0);
};
const drawSettling = () => {
  if (!byId("sample")) return;
  const sample = sampleNow(), layer = byId("layer").value;
  const left = chosen("left"), right = chosen("simulator"), about = samplesOf(left || right)[sample];
  const phase = phaseNow(left || right);
  byId("which").textContent = saidOf(about);
  byId("part").textContent = phase ? phase.name + (phase.beta ? `, beta ${phase.beta}` : "") : "all phases";
  drawImage(about);
  let low = 0, high = 1;
  [left, right].forEach((trace) => {
    const held = trace && trace.layers[layer];
    if (held) { low = Math.min(low, held.course.low); high = Math.max(high, held.course.high); }
  });
  const range = [low - 0.04 * (high - low), high + 0.04 * (high - low)];
  drawCourse("rates", left, layer, sample, range);
  drawCourse("firing", right, layer, sample, range);
  drawRaster(right ? right.file : "", sample);
  leftOut(left || right, layer, right ? right.file : "");
};

const drawScatter = () => {
  const held = data.scatter[byId("simulator") ? byId("simulator").value : ""];
  if (!byId("scatter") || !held) return draw("scatter", [], layout(axis("rate"), axis("firing rate")));
  const tints = palette();
  let low = 0, high = 1;
  const traces = Object.entries(held[byId("phase").value] || {}).map(([layer, both], k) => {
    const [x, y] = both.rows.map((row) => unpack(both, row));
    low = Math.min(low, both.low);
    high = Math.max(high, both.high);
    return {
      x, y, name: plain(layer), mode: "markers", hovertemplate: "rate %{x:.3f}, firing %{y:.3f}",
      marker: { size: 6, opacity: 0.55, color: tints[(k + 1) % tints.length], symbol: k },
    };
  });
  traces.unshift({ x: [low, high], y: [low, high], mode: "lines", hoverinfo: "skip", showlegend: false, line: { color: colour("soft"), width: 1, dash: "dot" } });
  caption("scatter", `Each point a unit in a sample, ${traceOf(byId("simulator").value).on}`);
  return draw("scatter", traces, layout(axis("rate"), axis("firing rate"), { margin: { l: 50, r: 12, t: 40, b: 44 } }));
};
const fillSettling = () => {
  if (!byId("sample")) return;
  byId("sample").max = Math.max(0, Math.min(...data.settling.map((trace) => samplesOf(trace).length)) - 1);
  const shown = data.settling.filter((trace) => Object.keys(trace.layers).length), first = shown[0];
  byId("zoom").max = Math.max(...shown.map((trace) => trace.phases.length));
  byId("zoom").closest("label").hidden = byId("zoom").max < 2;
  Object.keys(first.layers).forEach((name) => option(byId("layer"), name, name));
  byId("layer").value = outputLayer(first);
  const spiking = shown.filter((trace) => trace.spikes), rates = shown.filter((trace) => !trace.spikes);
  [["left", [...rates, ...spiking]], ["simulator", [...spiking, ...rates]]].forEach(([id, traces]) => {
    if (!byId(id)) return;
    traces.forEach((trace) => option(byId(id), trace.file, trace.on));
  });
  if (!spiking.length && byId("simulator")) byId("simulator").value = rates[1].file;
  if (!rates.length && byId("left") && spiking[1]) byId("left").value = spiking[1].file;
  const phases = Object.values(data.scatter)[0];
  if (byId("phase") && phases) Object.keys(phases).forEach((name) => option(byId("phase"), name, name));
  ["sample", "layer", "left", "simulator", "zoom"].forEach((id) => listen(id, drawSettling));
  // The points below are of the same phase; of all phases there are none, so they stay.
  listen("zoom", () => { const phase = phaseNow(first); if (phase && byId("phase")) { byId("phase").value = phase.name; drawScatter(); } });
  ["phase", "simulator"].forEach((id) => listen(id, drawScatter));
};
