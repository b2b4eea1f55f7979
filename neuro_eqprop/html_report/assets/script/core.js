// Shared by all charts.
const data = { scatter: {}, ...JSON.parse(document.getElementById("data").textContent) };
const byId = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const palette = () => ["rate", "spike", "third", "fourth", "fifth"].map(colour);
// Plotly interprets some HTML in its labels: names from files are escaped.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const option = (select, value, text) => { const made = document.createElement("option"); made.value = value; made.textContent = text; select.append(made); };
const listen = (id, action) => { const place = byId(id); if (place) place.addEventListener("input", action); };
const caption = (id, text) => { const place = byId(id); if (place) { place.previousElementSibling.textContent = text; place.setAttribute("aria-label", text); } };

// Numbers are encoded as text, see encoding.py.
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const code = new Map([...LETTERS].map((letter, k) => [letter, k]));
const decode = (packed, text) => {
  const found = [], step = (packed.high - packed.low) / 4095;
  for (let k = 0; k < text.length; k += 2) {
    if (text[k] === "~") found.push(...Array(code.get(text[k + 1]) + 1).fill(found[found.length - 1]));
    else found.push(packed.low + step * (64 * code.get(text[k]) + code.get(text[k + 1])));
  }
  return found;
};
const decodeSteps = (text) => {
  const found = [];
  let at = 0;
  for (const letter of text) {
    at += letter === "~" ? 64 : code.get(letter);
    if (letter !== "~") found.push(at);
  }
  return found;
};

// Eight colours of the viridis colour map, which is perceptually uniform and colour-blind safe.
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
// Each section calls `register` once: `fill` sets up its controls, `drawCharts` draws its charts.
const charts = [];
const register = (drawCharts, fill = () => {}) => charts.push({ fill, draw: drawCharts });
const download = (name, type, text) => {
  const link = document.createElement("a"), url = URL.createObjectURL(new Blob([text], { type }));
  link.href = url; link.download = name; link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};
// A line for each point that is drawn: the name of its trace, x, y, and the value of a cell.
const csv = (traces) => {
  const cell = (value) => (value === null || value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : String(value));
  const lines = [["trace", "x", "y", "z"]];
  traces.forEach((trace, k) => {
    const name = trace.name || `trace ${k + 1}`;
    if (trace.z) trace.z.forEach((row, i) => [...row].forEach((z, j) => lines.push([name, trace.x ? trace.x[j] : j, trace.y ? trace.y[i] : i, z])));
    else [...(trace.y || trace.x || [])].forEach((_, i) => lines.push([name, trace.x ? trace.x[i] : i, trace.y ? trace.y[i] : i, ""]));
  });
  return `${lines.map((line) => line.map(cell).join(",")).join("\n")}\n`;
};
const saves = (place, name, kinds) => {
  const row = document.createElement("p");
  row.className = "save";
  Object.entries(kinds).forEach(([kind, action]) => {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = kind;
    button.setAttribute("aria-label", `Save ${name} as ${kind}`);
    button.addEventListener("click", action);
    row.append(button);
  });
  place.after(row);
};
const svgOf = async (place) => decodeURIComponent((await Plotly.toImage(place, { format: "svg", width: place.clientWidth, height: place.clientHeight })).split(",").slice(1).join(","));
const draw = (id, traces, shape) => {
  const place = byId(id);
  if (!place) return;
  Plotly.react(place, traces, shape, { responsive: true, displayModeBar: false });
  if (!place.nextElementSibling) saves(place, id, {
    SVG: async () => download(`${id}.svg`, "image/svg+xml", await svgOf(place)),
    CSV: () => download(`${id}.csv`, "text/csv", csv(place.data)),
  });
};
// The diagram of the network has its colours from the page; a saved one carries them itself.
document.querySelectorAll("svg.network").forEach((figure) => saves(figure.parentNode, "network", { SVG: () => {
  const copy = figure.cloneNode(true), parts = [...figure.querySelectorAll("*")];
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  [...copy.querySelectorAll("*")].forEach((part, k) => ["fill", "stroke", "font-size", "font-family", "text-anchor"].forEach((key) => {
    part.setAttribute(key, getComputedStyle(parts[k]).getPropertyValue(key));
  }));
  download("network.svg", "image/svg+xml", new XMLSerializer().serializeToString(copy));
} }));
