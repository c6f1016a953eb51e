"use strict";
// The page is drawn before this runs. It shows values under the pointer, zooms, and switches axes, base and
// series: the shapes of a chart, whose data-d has their places in its own units, are drawn again between other
// ends. All values are computed before. Ends, ticks and numbers are those of ruler.rs and ticks.rs.
(() => {
  const byId = (id) => document.getElementById(id);
  const [base, axes, published] = ["base", "axes", "published"].map(byId);
  const [WIDTH, MARGIN, GAP, LETTER] = [720, 6, 7, 6];
  // Parts that are drawn from the lower end of an axis that cannot show all of them; of others points are left out.
  const ON_FLOOR = new Set(["band", "bar", "steps", "outline", "whisker"]);
  // Ratio from which a linear axis hides the least value; share of the points that a logarithmic one must show.
  const [WIDE, MOSTLY] = [20, 0.75];
  const NEAR = 40;

  // --- Numbers -------------------------------------------------------------------------------------------

  const UNITS = {
    nanoseconds: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
    bytes: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
    count: [[1e9, "G"], [1e6, "M"], [1e4, "k"], [1, ""]],
    ratio: [[-1, ""]],
  };

  function notation(unit, size) {
    const units = UNITS[unit];
    const [least, name] = units.find(([from]) => Math.abs(size) >= from * (1 - 1e-9)) ?? units.at(-1);
    return { divisor: least === 1e4 ? 1e3 : Math.abs(least), name };
  }

  function threeDigits(value) {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size < 1e-5 || size >= 1e6) return value.toExponential(2).replace(/\.?0+e\+?/, "e");
    if (Number.isInteger(value)) return String(value);
    const text = value.toFixed(Math.min(Math.max(2 - Math.floor(Math.log10(size)), 0), 7));
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  function say(unit, value) {
    const { divisor, name } = notation(unit, value);
    return threeDigits(value / divisor) + (name.length > 1 || unit !== "count" ? ` ${name}` : name).trimEnd();
  }

  function exactTo(step, value) {
    if (Math.abs(value) < step * 1e-6) value = 0;
    if (value !== 0 && (Math.abs(value) < 1e-5 || Math.abs(value) >= 1e6)) return value.toExponential(3).replace(".000e", "e").replace("e+", "e");
    const whole = (decimals) => {
      const steps = step * 10 ** decimals;
      return Math.abs(steps - Math.round(steps)) <= 1e-6 * steps && steps > 0.5;
    };
    return value.toFixed([0, 1, 2, 3, 4, 5].find(whole) ?? 6);
  }

  // --- Rulers --------------------------------------------------------------------------------------------

  const draws = (scale, value) => Math.abs(value) < 1e280 && (scale === "linear" || value > 1e-280);

  function ends(scale, values) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) if (draws(scale, value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (low > high) return [0, 1];
    if (scale === "log") {
      const span = Math.log(high / low);
      const margin = Math.exp(span < 1e-9 ? Math.LN2 : Math.min(0.04 * span, Math.LN2));
      return [low / margin, high * margin];
    }
    if (low > 0 && low < 0.6 * high) low = 0;
    if (high < 0 && high > 0.6 * low) high = 0;
    const span = high - low;
    if (span <= Math.max(Math.abs(low), Math.abs(high)) * 1e-9) {
      const around = high === 0 ? 1 : Math.abs(high) * 0.5;
      return [low - around, high + around];
    }
    const margin = (end) => (end === 0 ? 0 : 0.05 * span);
    return [low - margin(low), high + margin(high)];
  }

  // An axis between both ends; those of a zoom are kept, others suit the values.
  function ruler(axis, wanted, values, zoom) {
    const scale = values.some((value) => draws("log", value)) ? wanted : "linear";
    const [low, high] = zoom ?? ends(scale, values);
    const on = scale === "log" ? Math.log : Number;
    const position = (value) => {
      if (!draws(scale, value)) return value > 0 && value !== 1e-280 ? 1 : 0;
      return (on(value) - on(low)) / (on(high) - on(low));
    };
    const value = (at) => (scale === "log" ? low * (high / low) ** at : low + at * (high - low));
    const unit = notation(axis.unit, Math.max(Math.abs(low), Math.abs(high))).name;
    const title = scale === "linear" && unit ? `${axis.label} (${unit})` : axis.label;
    return { ...axis, scale, low, high, position, value, title };
  }

  const nice = (rough) => {
    const power = 10 ** Math.floor(Math.log10(rough));
    return ([1, 2, 5].find((times) => times * power >= rough * (1 - 1e-9)) ?? 10) * power;
  };

  function linearTicks({ unit, low, high }, most) {
    const rough = (high - low) / most;
    const step = unit === "bytes" ? 2 ** Math.ceil(Math.log2(rough)) : unit === "count" ? Math.max(nice(rough), 1) : nice(rough);
    const [first, last] = [Math.ceil(low / step - 1e-6), Math.floor(high / step + 1e-6)];
    const number = last - first + 1;
    if (!(number >= 1 && number <= 1000)) return { ticks: [low], step };
    return { ticks: Array.from({ length: number }, (_, k) => (first + k) * step), step };
  }

  function powers(of, low, high, most) {
    const first = Math.ceil(Math.log2(low) / Math.log2(of) - 1e-6);
    const last = Math.floor(Math.log2(high) / Math.log2(of) + 1e-6);
    const every = Math.max(Math.ceil((last - first + 1) / most), 1);
    const ticks = [];
    for (let power = Math.ceil(first / every) * every; power <= last; power += every) ticks.push(of ** power);
    return ticks;
  }

  function decimals(low, high, most) {
    const decades = Math.log10(high) - Math.log10(low);
    const times = decades * 3 <= most ? [1, 2, 5] : decades * 2 <= most ? [1, 3] : [];
    if (times.length === 0) return powers(10, low, high, most);
    const ticks = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k += 1) ticks.push(...times.map((t) => t * 10 ** k));
    return ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  }

  function ticksOf(along, most) {
    const { unit, low, high, scale } = along;
    if (scale === "log") {
      const twos = unit === "bytes" || (unit === "count" && low > 1 && high / low <= 4096);
      const ticks = twos ? powers(2, low, high, most) : decimals(low, high, most);
      const shown = ticks.length >= 2 ? ticks : linearTicks(along, most).ticks;
      return shown.map((at) => ({ at, label: say(unit, at) }));
    }
    const { ticks, step } = linearTicks(along, most);
    const { divisor } = notation(unit, Math.max(Math.abs(low), Math.abs(high)));
    return ticks.map((at) => ({ at, label: exactTo(step / divisor, at / divisor) }));
  }

  // As many ticks as fit side by side.
  function ticksThatFit(along, room) {
    const touch = (ticks) => ticks.some((tick, k) => k > 0
      && (along.position(tick.at) - along.position(ticks[k - 1].at)) * room
        < (tick.label.length + ticks[k - 1].label.length) * LETTER / 2 + GAP);
    for (let most = 11; most > 0; most -= 1) {
      const ticks = ticksOf(along, most);
      if (!touch(ticks)) return ticks;
    }
    return [];
  }

  // --- Charts --------------------------------------------------------------------------------------------

  const list = (text) => (text ? text.split(" ") : []);

  function shapesOf(group) {
    return [...group.querySelectorAll("[data-part]")].map((element) => ({
      element, part: element.dataset.part,
      series: element.dataset.series === undefined ? null : Number(element.dataset.series),
      corners: list(element.dataset.corners).map((corner) => corner.split(",").map(Number)),
      isStamp: ["points", "hidden"].includes(element.dataset.part),
      isFilled: element.getAttribute("fill") !== "none",
      paths: (element.dataset.d ? element.dataset.d.split(";") : [])
        .map((path) => path.split(" ").map((place) => place.split(",").map(Number))),
    }));
  }

  function chartOf(figure) {
    const box = figure.querySelector(".chart");
    const svg = box.querySelector("svg");
    const { dataset } = svg;
    const axis = (from, name) => {
      const [scale, unit] = from[name].split(" ");
      return { scale, unit, label: from[`${name}Label`] };
    };
    const [left, top, right, bottom] = dataset.plot.split(" ").map(Number);
    const groups = Object.fromEntries([...svg.querySelectorAll("[data-base]")].map((group) => [group.dataset.base, {
      group, y: group.dataset.y ? axis(group.dataset, "y") : axis(dataset, "y"), shapes: null,
    }]));
    return {
      figure, box, svg, groups, kind: dataset.kind, names: dataset.names.split("\n"), x: axis(dataset, "x"),
      published: new Set(list(dataset.published).map(Number)), hidden: new Set(), zoom: {}, width: WIDTH,
      left, top, right, bottom, beside: WIDTH - right, rulers: null, seen: null, picked: -1,
      note: figure.querySelector(".note[aria-live]"), plot: svg.querySelector(".plot"),
      nameTicks: dataset.kind === "names" ? [...svg.querySelectorAll(".tick[text-anchor=end]")].map((tick) => tick.textContent) : [],
    };
  }

  const isShown = (chart, series) => !chart.hidden.has(series) && (published.checked || !chart.published.has(series));

  function present(chart) {
    const name = chart.groups[base.value] ? base.value : "absolute";
    const chosen = chart.groups[name];
    chosen.shapes ??= shapesOf(chosen.group);
    return { ...chosen, isRelative: name !== "absolute" };
  }

  function fittingScale(chart, { y, isRelative }, values) {
    if (!isRelative && chart.published.size === 0) return y.scale;
    // Published values may be far off: without them, or for multiples, another scale may be better.
    const above = values.filter((value) => value > 0);
    const [least, most] = above.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, 0]);
    return above.length >= MOSTLY * values.length && most >= WIDE * least ? "log" : "linear";
  }

  function rulersOf(chart, now, shapes) {
    const wanted = (scale) => (axes.value === "fitting" ? scale : axes.value);
    const places = shapes.flatMap((shape) => shape.paths.flat());
    const isValue = ({ part }) => !["band", "whisker"].includes(part);
    const values = shapes.filter(isValue).flatMap((shape) => shape.paths.flat().map(([, y]) => y));
    const points = shapes.filter(({ part }) => part === "points" || part === "line").flatMap((shape) => shape.paths.flat().map(([, y]) => y));
    const x = chart.kind === "names"
      ? { ...chart.x, ...{ low: -0.5, high: chart.nameTicks.length - 0.5, scale: "linear", position: (at) => (at + 0.5) / chart.nameTicks.length } }
      : ruler(chart.x, wanted(chart.x.scale), places.map(([at]) => at), chart.zoom.x);
    const within = chart.zoom.x ? places.filter(([at]) => at >= x.low && at <= x.high) : places;
    const scale = ruler(now.y, wanted(fittingScale(chart, now, points)), values).scale;
    return { x, y: ruler(now.y, scale, within.map(([, y]) => y), chart.zoom.y) };
  }

  const pixels = (value) => Math.round(Math.min(Math.max(value, -1e5), 1e5) * 10) / 10;

  function placeOf(chart, { x, y }, [at, value], clamped) {
    const within = (share) => (clamped ? Math.min(Math.max(share, 0), 1) : share);
    const [across, up] = chart.kind === "names" ? [y.position(value), 1 - x.position(at)] : [x.position(at), y.position(value)];
    return [chart.left + within(across) * (chart.right - chart.left), chart.bottom - within(up) * (chart.bottom - chart.top)];
  }

  function drawShape(chart, shape, rulers) {
    const { x, y } = rulers;
    const isDrawn = ([at, value]) => draws(x.scale, at) && draws(y.scale, value);
    const isSeen = (any) => (place) => {
      if (shape.part === "mark") return place[0] >= x.low && place[0] <= x.high && draws(x.scale, place[0]);
      if (shape.part === "shade") return draws(x.scale, place[0]);
      if (shape.part === "bar" && y.scale === "log") return false;
      return ON_FLOOR.has(shape.part) ? any : isDrawn(place);
    };
    let d = "";
    for (const path of shape.paths) {
      const places = path.filter(isSeen(path.some(isDrawn)))
        .map((place) => placeOf(chart, rulers, place, shape.series === null || !chart.zoom.x && !chart.zoom.y));
      const all = shape.corners.length && places.length ? shape.corners.map(([dx, dy]) => [places[0][0] + dx, places[0][1] + dy]) : places;
      if (all.length === 0) continue;
      d += all.map(([left, top], k) => `${k ? "L" : "M"}${pixels(left)},${pixels(top)}`).join("");
      d += shape.isFilled ? "Z" : shape.isStamp && shape.corners.length === 0 ? "h0" : "";
    }
    shape.element.setAttribute("d", shape.part === "hidden" ? "" : d);
  }

  function element(parent, name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  // Labels above the plot keep their rows; those without room in any are hidden.
  function drawLabels(chart, { x }) {
    let leaders = "";
    for (const kind of ["mark", "region"]) {
      const labels = [...chart.svg.querySelectorAll(`text.${kind}`)].map((text) => {
        const [from, to] = text.dataset.x.split(",").map(Number);
        const share = (at) => Math.min(Math.max(x.position(at), 0), 1);
        const isSeen = draws(x.scale, from) && to >= x.low && from <= x.high;
        const [wide, room] = [text.textContent.length * 5.7, chart.right - chart.left];
        const middle = (share(from) + share(to)) / 2 * room;
        return { text, from, isSeen, wide, middle: chart.left + Math.max(Math.min(middle, room - wide / 2), wide / 2) };
      }).sort((one, other) => one.middle - other.middle);
      const rows = [...new Set(labels.map(({ text }) => text.getAttribute("y")))].sort((one, other) => other - one);
      const taken = Object.fromEntries(rows.map((row) => [row, -Infinity]));
      for (const { text, from, isSeen, wide, middle } of labels) {
        const row = rows.find((at) => taken[at] + GAP <= middle - wide / 2);
        text.style.display = isSeen && row ? "" : "none";
        if (!isSeen || !row) continue;
        taken[row] = middle + wide / 2;
        text.setAttribute("x", pixels(middle));
        text.setAttribute("y", row);
        const at = chart.left + x.position(from) * (chart.right - chart.left);
        if (kind === "mark") leaders += `M${pixels(at)},${Number(row) + 1.6}L${pixels(at)},${chart.top}`;
      }
    }
    chart.svg.querySelector(".leaders").setAttribute("d", leaders);
  }

  function drawFrame(chart, { x, y }, ticks) {
    const isTurned = chart.kind === "names";
    const across = isTurned ? y : x;
    const { svg, left, right, top, bottom } = chart;
    for (const tick of svg.querySelectorAll(isTurned ? ".tick[text-anchor=middle]" : ".tick")) tick.remove();
    let [grid, frame] = ["", `M${left},${top}L${left},${bottom}L${right},${bottom}`];
    for (const { at, label } of ticksThatFit(across, right - left)) {
      const place = pixels(left + across.position(at) * (right - left));
      grid += `M${place},${top}L${place},${bottom}`;
      frame += `M${place},${bottom}L${place},${bottom + 4}`;
      element(svg, "text", { class: "tick", x: place, y: pixels(bottom + 17.6), "text-anchor": "middle" }, label);
    }
    for (const { at, label } of ticks) {
      const place = pixels(bottom - (isTurned ? 1 - x.position(at) : y.position(at)) * (bottom - top));
      frame += `M${left - 4},${place}L${left},${place}`;
      if (isTurned) continue;
      grid += `M${left},${place}L${right},${place}`;
      element(svg, "text", { class: "tick", x: pixels(left - GAP), y: pixels(place + 3.6), "text-anchor": "end" }, label);
    }
    svg.querySelector(".grid").setAttribute("d", grid);
    svg.querySelector(".frame").setAttribute("d", frame);
    const upright = svg.querySelector("text.upright");
    if (!isTurned && upright) upright.textContent = y.title;
    const title = svg.querySelector("text.across");
    title.textContent = across.title;
    title.setAttribute("x", (left + right) / 2);
  }

  function draw(chart) {
    if (chart.kind === "map") return;
    const now = present(chart);
    const shown = now.shapes.filter((shape) => shape.series !== null && isShown(chart, shape.series));
    const rulers = rulersOf(chart, now, shown);
    const ticks = chart.kind === "names" ? chart.nameTicks.map((_, at) => ({ at })) : ticksOf(rulers.y, 9);
    if (chart.kind !== "names") chart.left = MARGIN + Math.max(...ticks.map(({ label }) => label.length), 0) * LETTER + GAP;
    const isNarrow = chart.width < WIDTH;
    chart.right = chart.width - (isNarrow ? MARGIN + GAP : chart.beside);
    chart.svg.setAttribute("viewBox", `0 0 ${chart.width} ${chart.svg.viewBox.baseVal.height}`);
    for (const value of chart.svg.querySelectorAll("text.value")) value.style.display = isNarrow || now.isRelative ? "none" : "";
    const box = [chart.left, chart.top, chart.right - chart.left, chart.bottom - chart.top];
    ["x", "y", "width", "height"].forEach((name, k) => chart.plot.setAttribute(name, pixels(box[k])));
    chart.plot.setAttribute("viewBox", box.map(pixels).join(" "));
    for (const { group } of Object.values(chart.groups)) group.style.display = group === now.group ? "" : "none";
    // Marks and regions are those of the chart as measured.
    for (const shape of now.shapes) {
      const isHidden = shape.series !== null && !isShown(chart, shape.series);
      if (isHidden) shape.element.setAttribute("d", "");
      else drawShape(chart, shape, rulers);
    }
    drawFrame(chart, rulers, ticks);
    if (chart.kind !== "names") drawLabels(chart, rulers);
    Object.assign(chart, { rulers, seen: null, picked: -1 });
    const isZoomed = Boolean(chart.zoom.x || chart.zoom.y);
    chart.box.classList.toggle("zoomed", isZoomed);
    chart.whole.hidden = !isZoomed;
    tell(chart, now, shown, rulers);
  }

  // The number of points that are not drawn, and why.
  function tell(chart, now, shown, { x, y }) {
    const withPoints = new Set(shown.filter(({ part }) => ["points", "hidden"].includes(part)).map(({ series }) => series));
    const points = shown.filter(({ part, series }) => ["points", "hidden"].includes(part) || (part === "line" && !withPoints.has(series)))
      .flatMap((shape) => shape.paths.flat().map((place) => ({ place, isCount: shape.part === "hidden" })));
    const lost = points.filter(({ place: [at, value], isCount }) => !draws(x.scale, at) || !(draws(y.scale, value) || (isCount && value === 0)));
    const why = [x.scale, y.scale].includes("log") ? "not above zero, so not on a logarithmic axis" : "not a number that can be drawn";
    const notes = lost.length ? [`${lost.length} of ${points.length} points left out: ${why}.`] : [];
    if (base.value !== "absolute" && !now.isRelative) notes.push("As measured: this chart has nothing to be relative to.");
    chart.note.textContent = notes.join(" ");
  }

  // --- Pointing ------------------------------------------------------------------------------------------

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  // All values that are drawn, by x: place and text.
  function seenOf(chart) {
    if (chart.seen) return chart.seen;
    const now = present(chart);
    chart.rulers ??= rulersOf(chart, now, now.shapes.filter((shape) => shape.series !== null && isShown(chart, shape.series)));
    const { x, y } = chart.rulers;
    const withPoints = new Set(now.shapes.filter(({ part }) => ["points", "hidden"].includes(part)).map(({ series }) => series));
    const readable = ({ part, series }) => ["points", "hidden"].includes(part) || (part === "line" && !withPoints.has(series));
    const of = ({ series, paths }) => paths.flat().filter(([at, value]) => draws(x.scale, at) && draws(y.scale, value)).map((place) => {
      const [at, value, low, high] = place;
      const interval = low === undefined ? "" : ` (${say(y.unit, low)} to ${say(y.unit, high)})`;
      const where = chart.kind === "names" ? chart.nameTicks[Math.round(at)] : say(x.unit, at);
      return { place: placeOf(chart, chart.rulers, place, false), words: `${chart.names[series]}: ${say(y.unit, value)}${interval} at ${where}` };
    });
    const within = ({ place: [left, top] }) => left >= chart.left - 1 && left <= chart.right + 1 && top >= chart.top - 1 && top <= chart.bottom + 1;
    chart.seen = now.shapes.filter((shape) => readable(shape) && isShown(chart, shape.series)).flatMap(of).filter(within)
      .sort((one, other) => one.place[0] - other.place[0]);
    return chart.seen;
  }

  const toChart = (chart, event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.svg.getScreenCTM().inverse());
    return [at.x, at.y];
  };

  function showTip(chart, words, [left, top]) {
    const at = new DOMPoint(left, top).matrixTransform(chart.svg.getScreenCTM());
    tip.textContent = words;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(Math.min(at.x + 12, innerWidth - width - 4), 4)}px`;
    tip.style.top = `${at.y - height - 12 < 0 ? at.y + 16 : at.y - height - 12}px`;
  }

  function pick(chart, index) {
    const found = seenOf(chart)[index];
    hideTip(chart);
    if (!found) return;
    chart.picked = index;
    element(chart.plot, "circle", { class: "here", cx: found.place[0], cy: found.place[1], r: 6 });
    showTip(chart, found.words, found.place);
  }

  function hideTip(chart) {
    tip.hidden = true;
    chart.plot.querySelector(".here")?.remove();
  }

  function point(chart, event) {
    const said = event.target.dataset?.said;
    const at = toChart(chart, event);
    if (said) return showTip(chart, said, at);
    const far = (one) => Math.hypot(one.place[0] - at[0], one.place[1] - at[1]);
    const seen = seenOf(chart);
    const nearest = seen.reduce((best, one, index) => (best < 0 || far(one) < far(seen[best]) ? index : best), -1);
    if (nearest >= 0 && far(seen[nearest]) <= NEAR) pick(chart, nearest);
    else hideTip(chart);
  }

  // --- Zoom ----------------------------------------------------------------------------------------------

  function whole(chart) {
    chart.zoom = {};
    hideTip(chart);
    draw(chart);
  }

  // The part of a chart between two places; along an axis on which they are close, all of it.
  function zoomTo(chart, [left, top], [right, bottom]) {
    const { x, y } = chart.rulers;
    const isTurned = chart.kind === "names";
    const share = (at, from, to) => Math.min(Math.max((at - from) / (to - from), 0), 1);
    const between = (along, one, other) => [along.value(Math.min(one, other)), along.value(Math.max(one, other))];
    const across = [left, right].map((at) => share(at, chart.left, chart.right));
    const up = [top, bottom].map((at) => share(at, chart.bottom, chart.top));
    const zoom = { ...chart.zoom };
    if (Math.abs(right - left) > 8) zoom[isTurned ? "y" : "x"] = between(isTurned ? y : x, ...across);
    if (Math.abs(bottom - top) > 24 && !isTurned) zoom.y = between(y, ...up);
    chart.zoom = zoom;
    draw(chart);
  }

  function listen(chart) {
    const { svg } = chart;
    let [from, box] = [null, null];
    svg.addEventListener("pointerdown", (event) => {
      if (chart.kind === "map" || event.button !== 0) return;
      seenOf(chart);
      from = toChart(chart, event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return point(chart, event);
      const [left, top] = toChart(chart, event);
      box ??= element(chart.plot, "rect", { class: "picked" });
      const isFlat = chart.kind === "names" || Math.abs(top - from[1]) <= 24;
      const sides = { x: Math.min(left, from[0]), width: Math.abs(left - from[0]), y: isFlat ? chart.top : Math.min(top, from[1]), height: isFlat ? chart.bottom - chart.top : Math.abs(top - from[1]) };
      for (const [name, value] of Object.entries(sides)) box.setAttribute(name, value);
    });
    const end = (event) => {
      const [start, to] = [from, toChart(chart, event)];
      box?.remove();
      [from, box] = [null, null];
      if (start && event.type === "pointerup" && Math.hypot(to[0] - start[0], to[1] - start[1]) > 8) zoomTo(chart, start, to);
    };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("pointerleave", () => hideTip(chart));
    svg.addEventListener("dblclick", () => whole(chart));
    svg.addEventListener("blur", () => hideTip(chart));
    svg.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (step) pick(chart, Math.max(Math.min(chart.picked + step, seenOf(chart).length - 1), 0));
      if (key === "Escape") whole(chart);
    });
    chart.whole = document.createElement("button");
    Object.assign(chart.whole, { className: "whole", type: "button", textContent: "Whole chart", hidden: true });
    chart.whole.addEventListener("click", () => whole(chart));
    chart.box.append(chart.whole);
    for (const entry of chart.figure.querySelectorAll(".legend button")) {
      entry.addEventListener("click", () => {
        const isOn = entry.getAttribute("aria-pressed") === "true";
        entry.setAttribute("aria-pressed", String(!isOn));
        for (const series of list(entry.dataset.series).map(Number)) chart.hidden[isOn ? "add" : "delete"](series);
        draw(chart);
      });
    }
  }

  // Redraws a chart for a narrow page.
  function fit(chart) {
    const room = chart.box.clientWidth;
    const width = room > 0 && room < 560 && chart.kind !== "map" ? Math.max(room, 340) : WIDTH;
    chart.box.classList.toggle("fits", width < WIDTH);
    if (width === chart.width) return;
    chart.width = width;
    draw(chart);
  }

  const charts = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector(".chart svg")).map(chartOf);
  charts.forEach(listen);
  charts.forEach(fit);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach(fit), 200);
  });
  for (const control of [base, axes, published]) {
    control.addEventListener("change", () => {
      for (const chart of charts) {
        chart.zoom = {};
        draw(chart);
      }
    });
  }
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  document.documentElement.dataset.drawn = "yes";
})();
