"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const palette = () => ["rate", "spike", "third", "fourth", "fifth"].map(colour);
  // The chart library reads a little markup in its labels; names from files must not be markup.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const scaled = (values) => values.map((value) => value / 1000);

  // Purple to green in steps that look even, also to the colour-blind; neighbours lie far apart on it.
  const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30"];
  const ramp = (share) => {
    const from = colour("dark") === "1" ? 2 : 0;
    const last = colour("dark") === "1" ? RAMP.length - 1 : RAMP.length - 2;
    return RAMP[from + Math.round(share * (last - from))];
  };

  const axis = (title, extra) => ({
    title: { text: title, standoff: 8, font: { size: 12, color: colour("soft") } }, gridcolor: colour("line"), linecolor: colour("line"),
    zeroline: false, automargin: true, fixedrange: true, ...extra,
  });
  const layout = (x, y, extra) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("ink") },
    margin: { l: 50, r: 12, t: 14, b: 44 }, xaxis: x, yaxis: y, hovermode: "closest",
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, ...extra,
  });
  const draw = (id, traces, shape) => {
    const place = byId(id);
    if (place) Plotly.react(place, traces, shape, { responsive: true, displayModeBar: false });
  };

  const curves = (id, named, title, extra) => {
    const colours = palette();
    const traces = Object.entries(named).map(([name, y], k) => ({
      x: data.learning.epoch, y, name: plain(name), mode: "lines+markers",
      line: { color: colours[k % colours.length], width: 2, dash: k < colours.length ? "solid" : "dot" },
      marker: { size: 5, symbol: k }, connectgaps: false,
    }));
    draw(id, traces, layout(axis("epoch"), axis(title, extra), { margin: { l: 50, r: 12, t: 40, b: 44 } }));
  };
  const drawLearning = () => {
    curves("accuracy", data.learning.accuracy, "", { tickformat: ".0%" });
    curves("settle", data.learning.settle, "steps", { rangemode: "tozero" });
    curves("spectral", data.learning.spectral, "norm", {});
  };

  const bands = (id, phases) => ({
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
    margin: { l: 50, r: 12, t: 26, b: 44 },
  });
  const end = (phases) => phases[phases.length - 1].stop;

  const drawCourse = (id, trace, layer, sample, range) => {
    const held = trace && trace.layers[layer];
    if (!held || !held.course[sample]) return draw(id, [], layout(axis("step"), axis("rate")));
    const answer = data.samples[sample].label, output = layer === outputLayer(), tints = palette();
    const last = held.course[sample].map((course) => course[course.length - 1]);
    const named = last.map((_, k) => k).sort((one, other) => last[other] - last[one]).slice(0, 3);
    const traces = held.course[sample].map((course, k) => {
      const shown = output && named.includes(k) && last[k] > 50;
      return {
        x: held.steps, y: scaled(course), mode: shown ? "lines+text" : "lines", showlegend: false,
        name: `unit ${held.units[k]}`, hovertemplate: "step %{x}: %{y:.3f}", cliponaxis: false,
        line: { color: output ? tints[held.units[k] % tints.length] : ramp((0.618034 * held.units[k]) % 1), width: output && held.units[k] === answer ? 4 : 1.7 },
        text: course.map((_, at) => (at === course.length - 1 ? ` ${held.units[k]}` : "")),
        textposition: "middle right", textfont: { size: 13, color: colour("ink") },
      };
    });
    const shape = layout(
      axis("step", { range: [0.5, end(trace.phases) + 0.5] }), axis("rate", { range }), { ...bands(id, trace.phases), margin: { l: 50, r: 24, t: 26, b: 44 } },
    );
    return draw(id, traces, shape);
  };
  const outputLayer = () => { const names = Object.keys(data.settling[0].layers); return names[names.length - 1]; };

  const drawRaster = (name, sample) => {
    const held = data.rasters[name];
    if (!held) return;
    const tints = palette();
    const names = Object.keys(held.layers);
    let base = 0;
    const ticks = { values: [], texts: [] };
    const traces = names.map((layer, k) => {
      const rows = held.layers[layer].samples[sample] || [];
      const x = [], y = [];
      rows.forEach((steps, row) => steps.forEach((step) => {
        x.push(step, step, null);
        y.push(base + row + 0.1, base + row + 0.9, null);
      }));
      ticks.values.push(base + rows.length / 2);
      ticks.texts.push(plain(layer));
      base += rows.length + 2;
      return { x, y, mode: "lines", hoverinfo: "skip", showlegend: false, line: { color: tints[(k + 1) % tints.length], width: 1.3 } };
    });
    byId("raster").style.height = `${Math.round(Math.min(innerWidth < 600 ? 460 : 700, 140 + 3.4 * base))}px`;
    byId("raster").previousElementSibling.textContent = held.graded ? "Messages" : "Spikes";
    const y = axis("", { tickvals: ticks.values, ticktext: ticks.texts, showgrid: false, range: [-1, base] });
    draw("raster", traces, layout(axis("step", { range: [0.5, end(held.phases) + 0.5] }), y, bands("raster", held.phases)));
  };

  const leftOut = (layer, name) => {
    const said = [];
    const line = data.settling[0].layers[layer];
    if (line && line.units.length < line.of) said.push(`The ${line.units.length} of ${line.of} units of ${layer} whose rates differ most between samples are drawn.`);
    Object.entries(data.rasters[name] ? data.rasters[name].layers : {}).forEach(([each, held]) => {
      if (held.units.length < held.of) said.push(`The ${held.units.length} busiest of ${held.of} units of ${each} are in the raster.`);
    });
    byId("left-out").textContent = said.join(" ");
  };
  const drawImage = (sample) => {
    const place = byId("image"), image = sample.image;
    place.hidden = !image;
    if (!image) return;
    place.width = place.height = image.length;
    const pixels = image.flat().flatMap((value) => [value, value, value, 255]);
    place.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels), image.length), 0, 0);
  };
  const drawSettling = () => {
    if (!byId("sample")) return;
    const sample = Number(byId("sample").value), layer = byId("layer").value, name = byId("simulator").value;
    const about = data.samples[sample];
    byId("which").textContent = `sample ${about.index}, label ${about.label}`;
    drawImage(about);
    const rates = data.settling.find((trace) => !trace.spikes), spikes = data.settling.find((trace) => trace.file === name);
    let low = 0, high = 1000;
    [rates, spikes].forEach((trace) => {
      const held = trace && trace.layers[layer];
      if (held) held.course.forEach((units) => units.forEach((course) => course.forEach((value) => { low = Math.min(low, value); high = Math.max(high, value); })));
    });
    const range = [low / 1000 - 0.04 * (high - low) / 1000, high / 1000 + 0.04 * (high - low) / 1000];
    drawCourse("rates", rates, layer, sample, range);
    drawCourse("firing", spikes, layer, sample, range);
    drawRaster(name, sample);
    leftOut(layer, name);
  };

  const drawScatter = () => {
    const held = data.scatter[byId("simulator") ? byId("simulator").value : ""];
    if (!byId("scatter") || !held) return draw("scatter", [], layout(axis("rate"), axis("firing rate")));
    const tints = palette();
    let low = 0, high = 1;
    const traces = Object.entries(held[byId("phase").value] || {}).map(([layer, [x, y]], k) => {
      x.concat(y).forEach((value) => { low = Math.min(low, value / 1000); high = Math.max(high, value / 1000); });
      return {
        x: scaled(x), y: scaled(y), name: plain(layer), mode: "markers",
        hovertemplate: "rate %{x:.3f}, firing %{y:.3f}",
        marker: { size: 6, opacity: 0.55, color: tints[(k + 1) % tints.length], symbol: k },
      };
    });
    traces.unshift({ x: [low, high], y: [low, high], mode: "lines", hoverinfo: "skip", showlegend: false, line: { color: colour("soft"), width: 1, dash: "dot" } });
    return draw("scatter", traces, layout(axis("rate"), axis("firing rate"), { margin: { l: 50, r: 12, t: 40, b: 44 } }));
  };

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

  const option = (select, value, text) => { const made = document.createElement("option"); made.value = value; made.textContent = text; select.append(made); };
  const listen = (id, action) => { const place = byId(id); if (place) place.addEventListener("input", action); };
  const fill = () => {
    if (byId("sample")) {
      byId("sample").max = Math.max(0, data.samples.length - 1);
      Object.keys(data.settling[0].layers).forEach((name) => option(byId("layer"), name, name));
      byId("layer").value = outputLayer();
      const simulated = data.settling.filter((trace) => trace.spikes);
      simulated.forEach((trace) => option(byId("simulator"), trace.file, simulated.some((other) => other !== trace && other.on === trace.on) ? `${trace.on} (${trace.file})` : trace.on));
      byId("choice").hidden = simulated.length === 0;
    }
    const first = Object.values(data.scatter)[0];
    if (byId("phase") && first) Object.keys(first).forEach((name) => option(byId("phase"), name, name));
    if (byId("chip")) data.energy.bills.forEach((bill, k) => option(byId("chip"), k, bill.name));
    listen("chip", drawEnergy);
    ["sample", "layer", "simulator"].forEach((id) => listen(id, drawSettling));
    ["phase", "simulator"].forEach((id) => listen(id, drawScatter));
  };

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

  const drawAll = () => { drawLearning(); drawSettling(); drawScatter(); drawEnergy(); };
  fill();
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Paper is white and narrow, whatever the screen is.
  const refit = () => {
    document.querySelectorAll(".js-plotly-plot").forEach((place) => Plotly.Plots.resize(place));
    drawAll();
  };
  addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; refit(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.print; refit(); });
})();
