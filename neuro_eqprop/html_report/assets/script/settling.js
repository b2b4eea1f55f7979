// Convergence of rates and firing rates, and the spike raster.
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
const samplesOf = (trace) => data.samples[trace.place] || [];
const sampleNow = () => Number(byId("sample").value);
const describe = (sample) => `${sample.name}, label ${sample.label}${sample.answer === null || sample.answer === sample.label ? "" : `, answered ${sample.answer}: wrong`}`;
// The selected phase; undefined for all of them.
const phaseNow = (trace) => { const place = byId("zoom"); return place ? trace.phases[Number(place.value) - 1] : undefined; };
const stepsShown = (trace) => { const phase = phaseNow(trace); return phase ? [phase.start + 0.5, phase.stop + 0.5] : [0.5, end(trace.phases) + 0.5]; };
const outputLayer = (trace) => { const names = Object.keys(trace.layers); return names[names.length - 1]; };

const drawCourse = (id, trace, layer, sample, range) => {
  const held = trace && trace.layers[layer], rows = held && held.course.rows[sample];
  if (trace) caption(id, shownAs(trace));
  if (!rows) return draw(id, [], layout(axis("step"), axis("rate")));
  const answer = samplesOf(trace)[sample].label, output = layer === outputLayer(trace), tints = palette();
  const courses = held.lines.map((place) => decode(held.course, rows[place])), units = held.lines.map((place) => held.units[place]);
  const shownSteps = stepsShown(trace), at = held.steps.filter((step) => step < shownSteps[1]).length - 1;
  const last = courses.map((course) => course[at]);
  const named = last.map((_, k) => k).sort((one, other) => last[other] - last[one]).slice(0, 3)
    // Labels of lines that end close together would overlap.
    .filter((k, place, all) => all.slice(0, place).every((other) => Math.abs(last[other] - last[k]) > 0.09 * (range[1] - range[0])));
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
    rows.forEach((text, row) => decodeSteps(text).forEach((step) => {
      x.push(step, step, null);
      y.push(base + row + 0.1, base + row + 0.9, null);
    }));
    ticks.values.push(base + rows.length / 2);
    ticks.texts.push(plain(layer));
    base += rows.length + 2;
    return { x, y, mode: "lines", hoverinfo: "skip", showlegend: false, line: { color: tints[(k + 1) % tints.length], width: 1.3 } };
  });
  byId("raster").style.height = `${Math.round(Math.min(innerWidth < 600 ? 460 : 700, 140 + 3.4 * base))}px`;
  caption("raster", `${held.graded ? "Graded spikes" : "Spikes"}, ${traceOf(name).on}`);
  const y = axis("", { tickvals: ticks.values, ticktext: ticks.texts, showgrid: false, range: [-1, base] });
  draw("raster", traces, layout(axis("step", { range: stepsShown(held) }), y, bands("raster", held.phases)));
};

const leftOut = (trace, layer, name) => {
  const notes = [], line = trace && trace.layers[layer];
  if (line && line.lines.length < line.of) notes.push(`The ${line.lines.length} of ${line.of} units of ${layer} whose rates differ most between samples are drawn.`);
  Object.entries(data.rasters[name] ? data.rasters[name].layers : {}).forEach(([each, held]) => {
    if (held.units.length < held.of) notes.push(`The ${held.units.length} most active of ${held.of} units of ${each} are in the raster.`);
  });
  byId("left-out").textContent = notes.join(" ");
};
const drawImage = (sample) => {
  const place = byId("image"), held = sample.inputs, side = held ? Math.sqrt(held.of) : 0;
  place.hidden = !(side > 1 && side <= 32 && Number.isInteger(side));
  if (place.hidden) return;
  place.width = place.height = side;
  const pixels = decode({ low: 0, high: 255 }, held.rows).flatMap((value) => [value, value, value, 255]);
  place.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels), side), 0, 0);
};
// One sentence on the sample: its answer, and where the nudge leaves the rate of its class.
const seen = (trace, sample) => {
  const about = samplesOf(trace)[sample], held = trace.layers[outputLayer(trace)];
  const place = held.units.indexOf(about.label), rows = held.course.rows[sample];
  if (about.answer === null || place < 0 || !rows) return "";
  const course = decode(held.course, rows[place]), at = (step) => course[held.steps.filter((each) => each <= step).length - 1];
  const ends = trace.phases.map((phase) => [phase, at(phase.stop)]);
  const [free, ...nudged] = ends.map(([, rate]) => rate.toFixed(2));
  const moved = nudged.map((rate, k) => `${rate} ${ends[k + 1][0].beta > 0 ? "towards" : "away from"} the target`);
  const still = ends.every(([, rate]) => Math.abs(rate - ends[0][1]) < 0.02);
  return `This is a ${about.label}, and the free phase answers ${about.answer}. Unit ${about.label} of the output settles at ${free}` +
    (!nudged.length ? "." : still ? "; the nudge does not move it: there is nothing left to learn from this sample." : `; the nudge pulls it to ${moved.join(" and ")}.`);
};
const drawSettling = () => {
  if (!byId("sample")) return;
  const layer = byId("layer").value, left = chosen("left"), right = chosen("simulator");
  // Traces may hold different numbers of samples.
  byId("sample").max = Math.min(...[left, right].filter((trace) => trace).map((trace) => samplesOf(trace).length)) - 1;
  const sample = sampleNow(), about = samplesOf(left || right)[sample];
  const phase = phaseNow(left || right);
  byId("which").textContent = describe(about);
  byId("part").textContent = phase ? phase.name + (phase.beta ? `, beta ${phase.beta}` : "") : "all phases";
  drawImage(about);
  byId("seen").textContent = seen(left || right, sample);
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

const fillSettling = () => {
  if (!byId("sample")) return;
  const shown = data.settling.filter((trace) => Object.keys(trace.layers).length), first = shown[0];
  byId("zoom").max = Math.max(...shown.map((trace) => trace.phases.length));
  byId("zoom").closest("label").hidden = byId("zoom").max < 2;
  Object.keys(first.layers).forEach((name) => option(byId("layer"), name, name));
  byId("layer").value = outputLayer(first);
  byId("sample").max = Math.max(0, samplesOf(first).length - 1);
  byId("sample").value = data.start;
  const spiking = shown.filter((trace) => trace.spikes), rates = shown.filter((trace) => !trace.spikes);
  [["left", [...rates, ...spiking]], ["simulator", [...spiking, ...rates]]].forEach(([id, traces]) => {
    if (!byId(id)) return;
    traces.forEach((trace) => option(byId(id), trace.file, trace.on));
  });
  if (!spiking.length && byId("simulator")) byId("simulator").value = rates[1].file;
  if (!rates.length && byId("left") && spiking[1]) byId("left").value = spiking[1].file;
  ["sample", "layer", "left", "simulator", "zoom"].forEach((id) => listen(id, drawSettling));
};
register(drawSettling, fillSettling);
