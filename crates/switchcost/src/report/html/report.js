"use strict";
// Draws the charts of the page from the JSON in it. What is measured is computed before: here are only
// looks and the reader's choices.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const base = document.getElementById("base");
  const axes = document.getElementById("axes");
  const published = document.getElementById("published");
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  const LIGHT = {
    ink: "#1c2127", muted: "#59636e", grid: "#e3e7ea", shade: "rgba(90, 110, 130, 0.10)",
    series: ["#0072b2", "#d55e00", "#007a5a", "#a8487c", "#7a6400", "#5b5bd6", "#3d7f9f", "#a33b3b"],
  };
  const DARK = {
    ink: "#e4e9ed", muted: "#a3aeb8", grid: "#2c343b", shade: "rgba(150, 175, 200, 0.13)",
    series: ["#56b4e9", "#ff9e4a", "#3ed6a8", "#f0a6cf", "#e6c229", "#a9a9ff", "#9adcf5", "#ff9a94"],
  };
  // From so many times the least value on, a linear axis hides it.
  const WIDE = 20;
  // Of so many of its values a logarithmic axis must be able to show at least (model::figure::axes).
  const MOSTLY = 0.75;
  // Parts of the width at which two upright texts touch.
  const CLOSE = 0.02;
  const DASHES = ["dot", "dash", "dashdot", "longdash", "longdashdot"];

  // Plotly reads some HTML in texts.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function three(value) {
    const text = value.toPrecision(3);
    return text.includes("e") ? String(Number(text)) : text;
  }

  function inUnits(value, units, step) {
    let at = 0;
    while (at + 1 < units.length && Math.abs(value) >= step) {
      value /= step;
      at += 1;
    }
    return `${Number.isInteger(value) ? value : three(value)} ${units[at]}`;
  }

  function told(value, axis) {
    switch (axis.unit) {
      case "nanoseconds": return inUnits(value, ["ns", "us", "ms", "s"], 1000);
      case "seconds": return inUnits(value * 1e9, ["ns", "us", "ms", "s"], 1000);
      case "bytes": return inUnits(value, ["B", "KiB", "MiB", "GiB"], 1024);
      case "names": return axis.names[value] ?? "";
      default: return Number.isInteger(value) ? String(value) : three(value);
    }
  }

  // Times are drawn in seconds, so that plotly writes n, u and m before the unit.
  const drawn = (value, axis) => (axis.unit === "nanoseconds" && value !== null ? value * 1e-9 : value);

  const isShown = (series) => series.role !== "published" || series.run !== null || published.checked;

  const finite = (values) => values.filter((value) => Number.isFinite(value));

  // The series as chosen: as measured, or as multiples, where the chart has them.
  function chosen(chart) {
    const all = chart.body.series ?? [];
    const relative = chart.relative[base.value];
    const isRelative = base.value !== "absolute" && relative !== undefined;
    const words = base.value === "two" ? "a ring of two" : `run ${data.names[Number(base.value.slice(4))]}`;
    const y = isRelative ? { ...chart.y, unit: "ratio", label: `${chart.y.label}, times that of ${words}` } : chart.y;
    return { series: (isRelative ? relative : all).filter(isShown), y, isRelative };
  }

  function isWide(series) {
    const values = series.flatMap((one) => one.points.map((point) => point.y));
    const positive = values.filter((value) => value > 0);
    return positive.length >= MOSTLY * values.length && Math.max(...positive) >= WIDE * Math.min(...positive);
  }

  function scales(chart, { series, isRelative }) {
    const asked = axes.value;
    const x = chart.x.unit === "names" ? "linear" : asked === "fitting" ? chart.x.scale : asked;
    // Published figures are far off: without them, or as multiples, another scale may suit.
    const hasPublished = (chart.body.series ?? []).some((one) => one.role === "published");
    const steps = series.some((one) => one.role === "steps");
    const fitting = !steps && (isRelative || hasPublished) ? (isWide(series) ? "log" : "linear") : chart.y.scale;
    return { x, y: asked === "fitting" ? fitting : asked };
  }

  const nameOf = (series, several) =>
    several && series.run !== null && series.role !== "published" ? `${data.names[series.run]}: ${series.name}` : series.name;

  // A law and a projected line have the colour of what they are of.
  function colours(series, palette) {
    const measured = series.filter((one) => !["law", "projected", "published"].includes(one.role));
    const keys = [...new Set(measured.map((one) => `${one.run} ${one.name}`))];
    return (one) => {
      let at = keys.indexOf(`${one.run} ${one.name}`);
      if (at < 0) {
        const own = measured.filter((other) => other.run === one.run);
        const of = own.find((other) => one.name.startsWith(`${other.name},`)) ?? own[0];
        at = of ? keys.indexOf(`${of.run} ${of.name}`) : 0;
      }
      return palette.series[Math.max(at, 0) % palette.series.length];
    };
  }

  const translucent = (hex, alpha) =>
    `rgba(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")}, ${alpha})`;

  function band(points, x, y, colour, floor) {
    const bounded = points.length > 1 && points.every((point) => point.low !== null && point.high !== null);
    if (!bounded) return [];
    const places = points.map((point) => drawn(point.x, x));
    const edge = (of, more) => ({
      type: "scatter", mode: "lines", x: places, y: points.map((point) => drawn(Math.max(of(point), floor), y)),
      line: { width: 0 }, hoverinfo: "skip", showlegend: false, ...more,
    });
    return [
      edge((point) => point.high, {}),
      edge((point) => point.low, { fill: "tonexty", fillcolor: translucent(colour, 0.2) }),
    ];
  }

  function errors(points, y, colour, floor) {
    const off = (of) => points.map((point) => (point.low === null ? 0 : drawn(of(point), y)));
    return {
      type: "data", symmetric: false, color: colour, thickness: 1.5, width: 4,
      array: off((point) => point.high - point.y), arrayminus: off((point) => point.y - Math.max(point.low, Math.min(floor, point.y))),
    };
  }

  function hover(name, point, x, y) {
    const interval = point.low === null || point.high === null ? "" : ` (${told(point.low, y)} to ${told(point.high, y)})`;
    return plain(`${name}: ${told(point.y, y)}${interval} at ${told(point.x, x)}`);
  }

  // Where each has a place of its own on an axis of names, the axis names it.
  const isNamed = (chart, one) => chart.x.unit !== "names" || one.points.length > 1;

  function tracesOf(chart, one, look) {
    const { y, colour, several, scale, place } = look;
    const name = plain(nameOf(one, several));
    const floor = scale.y === "log" ? look.least / 10 : -Infinity;
    // Steps go down to nothing, which a logarithmic axis does not have.
    const lift = (value) => (one.role === "steps" && scale.y === "log" ? Math.max(value, 0.5) : value);
    const trace = {
      type: "scatter", name, x: one.points.map((point) => drawn(point.x, chart.x)),
      y: one.points.map((point) => drawn(lift(point.y), y)),
      text: one.points.map((point) => hover(nameOf(one, several), point, chart.x, y)),
      hovertemplate: "%{text}<extra></extra>", meta: one.role,
    };
    const styles = {
      measured: () => {
        const banded = band(one.points, chart.x, y, colour, floor);
        return [...banded, {
          ...trace, mode: "lines+markers", line: { color: colour, width: 2 }, marker: { color: colour, size: 7 },
          ...(banded.length ? {} : { error_y: errors(one.points, y, colour, floor) }),
        }];
      },
      raw: () => [{ ...trace, mode: "markers", marker: { color: colour, size: 4, opacity: 0.6 } }],
      law: () => [{ ...trace, mode: "lines", line: { color: colour, width: 1.5, dash: "longdash" } }],
      projected: () => [{ ...trace, mode: "lines", line: { color: colour, width: 2, dash: "dash" } }],
      published: () => [{
        ...trace, mode: chart.x.unit === "names" ? "markers" : "lines+markers",
        marker: { color: look.muted, size: chart.x.unit === "names" ? 9 : 5, symbol: chart.x.unit === "names" ? "diamond" : "circle" },
        line: { color: look.muted, width: 1, dash: DASHES[place % DASHES.length] }, showlegend: isNamed(chart, one),
      }],
      steps: () => [{
        ...trace, mode: "lines", fill: "tozeroy", fillcolor: translucent(colour, 0.2),
        line: { color: colour, width: 1.5, shape: "hv" },
      }],
      bars: () => [{
        ...trace, type: "bar", marker: { color: colour }, textposition: "none",
        error_y: errors(one.points, y, look.ink, floor),
      }],
    };
    return styles[one.role]();
  }

  function heat(chart) {
    const { map } = chart.body;
    const label = (axis) => (value) => told(value, axis);
    const value = { unit: map.unit };
    const text = map.values.map((row, j) => row.map((cell, i) =>
      `${told(map.ys[j], chart.y)}, ${told(map.xs[i], chart.x)}: ${cell === null ? "not resolved" : told(cell, value)}`));
    const cells = map.values.flat().filter((cell) => cell !== null && cell > 0);
    const ticks = [];
    for (let power = 0; power < 12; power += 1) {
      for (const step of [1, 2, 5]) {
        const tick = step * 10 ** power;
        if (tick >= Math.min(...cells) && tick <= Math.max(...cells)) ticks.push(tick);
      }
    }
    return [{
      type: "heatmap", meta: "map", x: map.xs.map(label(chart.x)), y: map.ys.map(label(chart.y)),
      z: map.values.map((row) => row.map((cell) => (cell !== null && cell > 0 ? Math.log10(cell) : null))),
      text, hovertemplate: "%{text}<extra></extra>", colorscale: "Viridis", xgap: 1, ygap: 1,
      colorbar: {
        tickvals: ticks.map(Math.log10), ticktext: ticks.map((tick) => told(tick, value)),
        outlinewidth: 0, thickness: 14, title: { text: plain(map.label), side: "right" },
      },
    }];
  }

  // Ticks that are read at once: sizes and counts by powers of two, names by name.
  function ticks(axis, scale, values) {
    if (axis.unit === "names") {
      const places = axis.names.map((_, place) => place);
      const short = axis.names.map((name) => plain(name.length > 26 ? `${name.slice(0, 25)}...` : name));
      return { tickvals: places, ticktext: short, range: [-0.6, axis.names.length - 0.4] };
    }
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const bySize = axis.unit === "bytes" || /^(members|pages|primes)/.test(axis.label);
    if (scale === "log" && !bySize) return decades(axis, low, high);
    if (axis.unit === "nanoseconds") return { ticksuffix: "s", exponentformat: "SI", minexponent: 0 };
    if (axis.unit === "count" && scale === "linear" && high - low < 12) return { dtick: 1 };
    if (scale !== "log" || high / low < 4) return axis.unit === "bytes" ? { exponentformat: "SI", ticksuffix: "B" } : {};
    const [first, last] = [Math.floor(Math.log2(low)), Math.ceil(Math.log2(high))];
    const step = Math.max(1, Math.ceil((last - first) / (innerWidth < 600 ? 6 : 11)));
    const places = [];
    for (let power = first; power <= last; power += step) places.push(2 ** power);
    return { tickvals: places, ticktext: places.map((place) => told(place, axis)) };
  }

  // 1, 10, 100, and where there are few of those 2 and 5 between them.
  function decades(axis, low, high) {
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const steps = last - first > 3 ? [1] : [1, 2, 5];
    const places = [];
    for (let power = first; power <= last; power += 1) places.push(...steps.map((step) => step * 10 ** power));
    return { tickvals: places.map((place) => drawn(place, axis)), ticktext: places.map((place) => told(place, axis)) };
  }

  // Caches, knees, regions. Places on a logarithmic axis are logarithms for texts, not for shapes.
  function surroundings(chart, scale, palette, values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const at = (x) => (scale.x === "log" ? Math.log10(drawn(x, chart.x)) : drawn(x, chart.x));
    const stretch = (x0, x1, fillcolor) => ({
      type: "rect", xref: "x", yref: "paper", x0: drawn(x0, chart.x), x1: drawn(x1, chart.x), y0: 0, y1: 1,
      fillcolor, line: { width: 0 }, layer: "below",
    });
    const text = (x, y, words, more) => ({
      x: at(x), y, xref: "x", yref: "paper", text: plain(words), showarrow: false,
      font: { size: 11, color: palette.muted }, ...more,
    });
    const shapes = [];
    const annotations = [];
    chart.regions.forEach((region, place) => {
      if (place % 2 === 1) shapes.push(stretch(region.from, region.to, palette.shade));
      const middle = scale.x === "log" ? Math.sqrt(region.from * region.to) : (region.from + region.to) / 2;
      annotations.push(text(middle, 0, region.label, { yanchor: "bottom", yshift: 2 + 14 * (place % 2) }));
    });
    const span = scale.x === "log" ? Math.log10(high / low) : high - low;
    const width = (one, other) => (scale.x === "log" ? Math.log10(one / other) : one - other) / span;
    const isNear = (mark) => mark.x > 0 && mark.x >= low / 2 && mark.x <= high * 2;
    // Texts of marks that are close to each other stand one below the other.
    let [before, row] = [null, 0];
    for (const mark of chart.marks.filter(isNear).sort((one, other) => one.x - other.x)) {
      row = before !== null && width(mark.x, before) < CLOSE ? (row + 1) % 3 : 0;
      before = mark.x;
      if (mark.between) shapes.push(stretch(...mark.between, palette.shade));
      shapes.push({
        type: "line", xref: "x", yref: "paper", x0: drawn(mark.x, chart.x), x1: drawn(mark.x, chart.x), y0: 0, y1: 1,
        line: { color: palette.muted, width: 1, dash: mark.between ? "dash" : "dot" }, layer: "below",
      });
      annotations.push(text(mark.x, 1 - row / 3, mark.label, { textangle: -90, xanchor: "right", yanchor: "top" }));
    }
    return { shapes, annotations };
  }

  function axisLook(axis, scale, palette, values) {
    const isCategory = scale === "category";
    return {
      type: scale, title: { text: plain(axis.label), standoff: 8 }, gridcolor: palette.grid, linecolor: palette.muted,
      zerolinecolor: palette.muted, automargin: true, ...(isCategory ? {} : ticks(axis, scale, finite(values))),
    };
  }

  const shownOn = (values, scale) => values.filter((value) => scale !== "log" || value > 0);

  function draw(chart) {
    const figure = document.getElementById(chart.id);
    const box = figure.querySelector(".chart");
    const palette = darkness.matches && !printing ? DARK : LIGHT;
    const look = chosen(chart);
    const scale = scales(chart, look);
    const isMap = chart.body.map !== undefined;
    const runs = new Set((chart.body.series ?? []).map((one) => one.run).filter((run) => run !== null));
    const several = runs.size > 1;
    const colourOf = colours(look.series, palette);
    const ys = look.series.flatMap((one) => one.points.map((point) => point.y));
    const xs = look.series.flatMap((one) => one.points.map((point) => point.x));
    const least = Math.min(...ys.filter((value) => value > 0));
    const traces = isMap ? heat(chart) : look.series.flatMap((one, place) => tracesOf(chart, one, {
      y: look.y, colour: colourOf(one), several, scale, place, least, muted: palette.muted, ink: palette.ink,
    }));
    const entries = look.series.filter((one) => one.role !== "published" || isNamed(chart, one)).length;
    const perRow = Math.max(1, Math.floor(box.clientWidth / 230));
    const around = isMap ? {} : surroundings(chart, scale, palette, xs);
    const layout = {
      height: 390 + (entries > 1 ? 22 * Math.ceil(entries / perRow) : 0),
      margin: { l: 64, r: 16, t: 16, b: 48 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: palette.ink, family: "system-ui, sans-serif", size: 13 }, barmode: "group", bargap: 0.35,
      hovermode: "closest", showlegend: entries > 1,
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", traceorder: "normal" },
      xaxis: { ...axisLook(chart.x, isMap ? "category" : scale.x, palette, shownOn(xs, scale.x)), zeroline: false },
      yaxis: axisLook(look.y, isMap ? "category" : scale.y, palette, shownOn(ys, scale.y)),
      ...around,
    };
    // The picture that was there until now.
    box.querySelector(":scope > .picture")?.remove();
    // Anew: react's margins hang by a pixel on what was drawn before.
    Plotly.newPlot(box, traces, layout, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] });
    tell(figure, chart, look, scale);
  }

  // What the reader would otherwise miss without a word.
  function tell(figure, chart, look, scale) {
    const points = look.series.filter((one) => one.role !== "steps").flatMap((one) => one.points);
    const lost = points.filter((point) => (scale.y === "log" && point.y <= 0) || (scale.x === "log" && point.x <= 0)).length;
    const notes = [];
    if (lost > 0) notes.push(`${lost} of ${points.length} points are not above zero and cannot be drawn on a logarithmic axis.`);
    if (base.value !== "absolute" && !look.isRelative) notes.push("As measured: this chart has nothing to be relative to.");
    figure.querySelector(".note[aria-live]").textContent = notes.join(" ");
  }

  // One after the other, so that the page answers meanwhile. A later call takes the place of an earlier.
  let turn = 0;
  function drawAll() {
    if (!globalThis.Plotly) return;
    turn += 1;
    const own = turn;
    const waiting = [...data.figures];
    delete document.documentElement.dataset.drawn;
    const next = () => {
      if (own !== turn) return;
      const chart = waiting.shift();
      if (chart === undefined) {
        document.documentElement.dataset.drawn = "yes";
        return;
      }
      draw(chart);
      setTimeout(next);
    };
    next();
  }

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 200);
  });
  for (const control of [base, axes, published]) control.addEventListener("change", drawAll);
  darkness.addEventListener("change", drawAll);
  // What is not drawn when this returns is not printed.
  addEventListener("beforeprint", () => { printing = true; if (globalThis.Plotly) data.figures.forEach(draw); });
  addEventListener("afterprint", () => { printing = false; drawAll(); });
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());

  // Megabytes: the browser parses them beside its other work if they come as a file of their own, and words and
  // tables do not wait.
  const script = document.createElement("script");
  script.addEventListener("load", drawAll);
  script.addEventListener("error", () => {
    const why = document.createElement("span");
    why.textContent = "This browser does not run the script that draws: charts stay pictures.";
    document.getElementById("controls").append(why);
  });
  const text = document.getElementById("plotly").textContent;
  script.src = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  document.head.append(script);
})();
