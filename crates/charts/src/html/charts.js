"use strict";
// The page is drawn before this runs. It shows values under the pointer, zooms, and switches axes, base and
// series, by what told.rs has written beside each chart: the places of its shapes on linear and logarithmic axes,
// the ends and ticks of its axes for each state of the controls, the words of its values. Here places are only
// moved to the page; no value is computed, rounded or written.
(() => {
  const byId = (id) => document.getElementById(id);
  const [base, axes, published, tip] = ["base", "axes", "published", "tip"].map(byId);
  const [MARGIN, GAP, LETTER, MOST_UP, MOST_ACROSS] = document.querySelector("main").dataset.page.split(" ").map(Number);
  const NEAR = 40;
  // Pixels of the page for one of a chart: its letters are to be read.
  const SCALE = 1.25;
  // Lines of names beside a chart, in its pixels.
  const LINE = 11;
  const isPublished = () => Boolean(published?.checked);

  // --- Axes ----------------------------------------------------------------------------------------------

  const list = (text, between = " ") => (text ? text.split(between) : []);
  const numbers = (text) => text.split(",").map(Number);
  const ladder = (text) => list(text, "\n").map((rung) => rung.split("\t").map((tick) => {
    const [, at, label] = tick.match(/^(\S+) (.*)$/);
    return { at: Number(at), label };
  }));

  // `of` says which of the four numbers of a place lies on the ruler.
  function rulerOf({ dataset: { of, ends, title, ticks, finer } }) {
    const whole = ladder(ticks);
    return { of: Number(of), ends: numbers(ends), title, whole, rungs: [...whole, ...ladder(finer)] };
  }

  const clamped = (share) => Math.min(Math.max(share, 0), 1);
  const isWithin = ([low, high]) => ({ at }) => at >= low - (high - low) * 1e-6 && at <= high + (high - low) * 1e-6;

  const spread = (places, of) => places.map((place) => place[of]).filter(Number.isFinite)
    .reduce(([low, high], at) => [Math.min(low, at), Math.max(high, at)], [Infinity, -Infinity]);

  // The ends for all places are those of the ruler. Those for a part leave a twentieth of it free on either side.
  function endsFor({ of, ends }, part, all) {
    const [low, high] = spread(part, of);
    if (low > high || [low, high].join() === spread(all, of).join()) return ends;
    const free = (high > low ? high - low : ends[1] - ends[0]) / 20;
    return [Math.max(low - free, ends[0]), Math.min(high + free, ends[1])];
  }

  // The ruler between those ends: where a place lies, and the finest ticks that fit. Where fewer than two of the
  // finest are seen, values that are there are the ticks.
  function between(ruler, ends, values, fits) {
    const [low, high] = ends;
    const position = (at) => (at - low) / (high - low);
    const rungs = ends === ruler.ends ? ruler.whole : ruler.rungs;
    const seen = (rung) => rung.filter(isWithin(ends));
    let ticks = rungs.map(seen).findLast((rung) => fits(rung, position)) ?? [];
    if (ticks.length < 2 && ends !== ruler.ends) {
      ticks = [...ticks, ...seen(values)].sort((one, other) => one.at - other.at)
        .reduce((kept, tick) => (fits([...kept, tick], position) ? [...kept, tick] : kept), []);
    }
    return { ...ruler, low, high, position, ticks };
  }

  // --- Charts --------------------------------------------------------------------------------------------

  function shapesOf(group) {
    return [...group.querySelectorAll("[data-part]")].map((element) => {
      const { part, series, corners, places, words } = element.dataset;
      return {
        element, part, series: series === undefined ? null : Number(series), corners: list(corners).map(numbers),
        isStamp: part === "points", isFilled: element.getAttribute("fill") !== "none",
        paths: list(places, ";").map((path) => path.split(" ").map(numbers)), words: list(words, "\n").map((line) => line.split("\t")),
      };
    });
  }

  function chartOf(figure) {
    const box = figure.querySelector(".chart");
    const svg = box.querySelector("svg");
    const { dataset } = svg;
    const [left, top, right, bottom] = dataset.plot.split(" ").map(Number);
    const full = svg.viewBox.baseVal.width;
    return {
      figure, box, svg, kind: dataset.kind, isTurned: dataset.kind === "names", names: dataset.names.split("\n"),
      groups: Object.fromEntries([...svg.querySelectorAll("[data-base]")].map((group) => [group.dataset.base, { group, shapes: null }])),
      rulers: [...svg.querySelectorAll(".ruler")].map(rulerOf),
      published: new Set(list(dataset.published).map(Number)), named: new Set(list(dataset.named).map(Number)), hidden: new Set(), zoom: {}, full, width: full,
      left, top, right, bottom, beside: full - right, drawn: null, seen: null, picked: -1,
      note: figure.querySelector(".note[aria-live]"), plot: svg.querySelector(".plot"), whole: figure.querySelector(".whole"),
    };
  }

  const isShown = (chart, series) => !chart.hidden.has(series) && (isPublished() || !chart.published.has(series));

  // The shapes by the base that is chosen, those that are shown, and what Rust has told of the axes.
  function present(chart) {
    const name = chart.groups[base.value] ? base.value : "absolute";
    const chosen = chart.groups[name];
    chosen.shapes ??= shapesOf(chosen.group);
    const { on, off } = chosen.group.dataset;
    const [, x, y, note] = (isPublished() ? on : off ?? on).split("\n")[axes.selectedIndex].match(/^(\d+) (\d+) (.*)$/);
    const shown = chosen.shapes.filter(({ series }) => series !== null && isShown(chart, series));
    return { ...chosen, isRelative: name !== "absolute", shown, x: chart.rulers[x], y: chart.rulers[y], note };
  }

  // The values that are shown: the place of each, and words for the value with its interval and for where it is.
  const valuesOf = (shown) => shown.filter(({ words }) => words.length > 0)
    .flatMap(({ series, paths, words }) => paths.flat().map((place, k) => ({ series, place, words: words[k] })));

  function axesOf(chart, { shapes, shown, x, y }) {
    const placesOf = (some) => some.flatMap(({ paths }) => paths.flat());
    const all = placesOf(shapes.filter(({ series }) => series !== null && (isPublished() || !chart.published.has(series))));
    const places = placesOf(shown);
    const xEnds = chart.zoom.x ?? endsFor(x, places, all);
    const inside = chart.zoom.x ? places.filter((place) => isWithin(xEnds)({ at: place[x.of] })) : places;
    const yEnds = chart.zoom.y ?? endsFor(y, inside, all);
    const values = valuesOf(shown).filter(({ place }) => isWithin(xEnds)({ at: place[x.of] }) && isWithin(yEnds)({ at: place[y.of] }));
    // Not more than so many ticks, none of which touches the one before it.
    const few = (most, room, size) => (ticks, position) => ticks.length <= most && !ticks.some((tick, k) => k > 0
      && (position(tick.at) - position(ticks[k - 1].at)) * room() < size(tick.label + ticks[k - 1].label) + GAP);
    const across = few(MOST_ACROSS, () => chart.right - chart.left, (labels) => labels.length * LETTER / 2);
    const up = few(MOST_UP, () => chart.bottom - chart.top, () => LETTER);
    const along = (ruler, ends, word, fits) => between(ruler, ends, values.map(({ place, words }) => ({ at: place[ruler.of], label: words[word].split(" (")[0] })), fits);
    if (chart.isTurned) return { x: along(x, xEnds, 1, () => true), y: along(y, yEnds, 0, across) };
    const upright = along(y, yEnds, 0, up);
    chart.left = MARGIN + Math.max(...upright.ticks.map(({ label }) => label.length), 0) * LETTER + GAP;
    return { x: along(x, xEnds, 1, across), y: upright };
  }

  const pixels = (value) => Math.round(Math.min(Math.max(value, -1e5), 1e5) * 10) / 10;

  function placeOf(chart, { x, y }, place, within) {
    const shares = [within(x.position(place[x.of])), within(y.position(place[y.of]))];
    const [across, up] = chart.isTurned ? [shares[1], 1 - shares[0]] : shares;
    return [chart.left + across * (chart.right - chart.left), chart.bottom - up * (chart.bottom - chart.top)];
  }

  const isZoomed = ({ zoom }) => Boolean(zoom.x || zoom.y);

  function drawShape(chart, { element, part, series, corners, isStamp, isFilled, paths }, drawn, isHere) {
    const { x, y } = drawn;
    const isSeen = (place) => !Number.isNaN(place[x.of]) && !Number.isNaN(place[y.of]) && (part !== "mark" || isWithin([x.low, x.high])({ at: place[x.of] }));
    let d = "";
    for (const path of isHere ? paths : []) {
      const places = path.filter(isSeen).map((place) => placeOf(chart, drawn, place, series !== null && isZoomed(chart) ? Number : clamped));
      const all = corners.length && places.length ? corners.map(([dx, dy]) => [places[0][0] + dx, places[0][1] + dy]) : places;
      if (all.length === 0) continue;
      d += all.map(([left, top], k) => `${k ? "L" : "M"}${pixels(left)},${pixels(top)}`).join("");
      d += isFilled ? "Z" : isStamp && corners.length === 0 ? "h0" : "";
    }
    element.setAttribute("d", d);
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
        const [from, to] = numbers(text.dataset.x).slice(x.of);
        const isSeen = to >= x.low && from <= x.high;
        const [wide, room] = [text.textContent.length * 5.7, chart.right - chart.left];
        const middle = (clamped(x.position(from)) + clamped(x.position(to))) / 2 * room;
        return { text, from, isSeen, wide, middle: chart.left + Math.max(Math.min(middle, room - wide / 2), wide / 2) };
      }).sort((one, other) => one.middle - other.middle);
      const rows = [...new Set(labels.map(({ text }) => text.getAttribute("y")))].sort((one, other) => other - one);
      const taken = {};
      for (const { text, from, isSeen, wide, middle } of labels) {
        const row = isSeen && rows.find((at) => (taken[at] ?? -Infinity) + GAP <= middle - wide / 2);
        text.style.display = row ? "" : "none";
        if (!row) continue;
        taken[row] = middle + wide / 2;
        text.setAttribute("x", pixels(middle));
        text.setAttribute("y", row);
        const at = chart.left + x.position(from) * (chart.right - chart.left);
        if (kind === "mark") leaders += `M${pixels(at)},${Number(row) + 1.6}L${pixels(at)},${chart.top}`;
      }
    }
    chart.svg.querySelector(".leaders").setAttribute("d", leaders);
  }

  function drawFrame({ svg, isTurned, width, left, right, top, bottom }, { x, y }) {
    const [across, up] = isTurned ? [y, x] : [x, y];
    for (const tick of svg.querySelectorAll(isTurned ? ".tick[text-anchor=middle]" : ".tick")) tick.remove();
    let [grid, frame] = ["", `M${left},${top}L${left},${bottom}L${right},${bottom}`];
    const write = (at, label, x, y, anchor) => element(svg, "text", { class: "tick", x, y: pixels(y), "text-anchor": anchor, "data-at": at }, label);
    for (const { at, label } of across.ticks) {
      const place = pixels(left + across.position(at) * (right - left));
      grid += `M${place},${top}L${place},${bottom}`;
      frame += `M${place},${bottom}L${place},${bottom + 4}`;
      // The first and the last stay on the page.
      const half = label.length * LETTER / 2;
      write(at, label, pixels(Math.max(Math.min(place, width - half), half)), bottom + 17.6, "middle");
    }
    for (const { at, label } of up.ticks) {
      const share = up.position(at);
      const place = pixels(bottom - (isTurned ? 1 - share : share) * (bottom - top));
      frame += `M${left - 4},${place}L${left},${place}`;
      if (isTurned) continue;
      grid += `M${left},${place}L${right},${place}`;
      write(at, label, left - GAP, place + 3.6, "end");
    }
    svg.querySelector(".grid").setAttribute("d", grid);
    svg.querySelector(".frame").setAttribute("d", frame);
    const upright = svg.querySelector("text.upright");
    if (!isTurned && upright) upright.textContent = y.title;
    const title = svg.querySelector("text.across");
    title.textContent = across.title;
    title.setAttribute("x", (left + right) / 2);
  }

  // The names of these lines at their right ends, none on another.
  function drawNames(chart, drawn, lines) {
    for (const text of chart.svg.querySelectorAll("text.name")) text.remove();
    const ends = lines.map(({ series, paths }) => ({ series, end: placeOf(chart, drawn, paths[0].at(-1), clamped) }))
      .filter(({ end }) => end.every(Number.isFinite)).sort((one, other) => one.end[1] - other.end[1]);
    const step = Math.min(LINE, (chart.bottom - chart.top) / Math.max(ends.length, 1));
    let at = -Infinity;
    const rows = ends.map(({ end }) => (at = Math.max(end[1], at + step)));
    const beyond = Math.max(0, (rows.at(-1) ?? 0) - chart.bottom);
    for (let k = rows.length - 1, most = chart.bottom; k >= 0 && beyond > 0; k -= 1, most -= step) rows[k] = Math.min(rows[k], most);
    ends.forEach(({ series }, k) => {
      const x = chart.right + GAP;
      element(chart.svg, "text", { class: "name", x: pixels(x), y: pixels(rows[k] + 3.6) }, chart.names[series]);
    });
  }

  function draw(chart) {
    if (chart.kind === "map") return;
    const now = present(chart);
    const isNarrow = chart.isTurned && chart.width < chart.full;
    const named = chart.isTurned ? [] : now.shown.filter(({ part, series }) => part === "line" && chart.named.has(series));
    const longest = Math.max(0, ...named.map(({ series }) => chart.names[series].length));
    chart.right = chart.width - (longest ? MARGIN + GAP + longest * LETTER : isNarrow ? MARGIN + GAP : chart.beside);
    const drawn = axesOf(chart, now);
    chart.svg.setAttribute("viewBox", `0 0 ${chart.width} ${chart.svg.viewBox.baseVal.height}`);
    for (const value of chart.svg.querySelectorAll("text.value")) value.style.display = isNarrow || now.isRelative ? "none" : "";
    const box = [chart.left, chart.top, chart.right - chart.left, chart.bottom - chart.top];
    ["x", "y", "width", "height"].forEach((name, k) => chart.plot.setAttribute(name, pixels(box[k])));
    chart.plot.setAttribute("viewBox", box.map(pixels).join(" "));
    for (const { group } of Object.values(chart.groups)) group.style.display = group === now.group ? "" : "none";
    // Marks and regions are those of the chart as measured.
    for (const shape of now.shapes) drawShape(chart, shape, drawn, shape.series === null || now.shown.includes(shape));
    drawFrame(chart, drawn);
    drawNames(chart, drawn, named);
    if (!chart.isTurned) drawLabels(chart, drawn);
    Object.assign(chart, { drawn, seen: null, picked: -1 });
    chart.box.classList.toggle("zoomed", isZoomed(chart));
    chart.whole.hidden = !isZoomed(chart);
    const isAlone = base.value !== "absolute" && !now.isRelative;
    chart.note.textContent = [now.note, isAlone ? "As measured: this chart has nothing to be relative to." : ""].join(" ").trim();
  }

  // --- Pointing ------------------------------------------------------------------------------------------

  // All values that are drawn, by x: place and text.
  function seenOf(chart) {
    if (chart.kind === "map") return [];
    if (chart.seen) return chart.seen;
    const now = present(chart);
    chart.drawn ??= axesOf(chart, now);
    const of = ({ series, place, words: [value, where] }) => (
      { place: placeOf(chart, chart.drawn, place, Number), words: `${chart.names[series]}: ${value} at ${where}` });
    const within = ({ place: [left, top] }) => left >= chart.left - 1 && left <= chart.right + 1 && top >= chart.top - 1 && top <= chart.bottom + 1;
    chart.seen = valuesOf(now.shown).map(of).filter(within).sort((one, other) => one.place[0] - other.place[0]);
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
    const part = ({ low, high }, shares) => shares.map((share) => low + clamped(share) * (high - low)).sort((one, other) => one - other);
    const along = chart.isTurned ? "y" : "x";
    const across = [left, right].map((at) => (at - chart.left) / (chart.right - chart.left));
    const up = [top, bottom].map((at) => (chart.bottom - at) / (chart.bottom - chart.top));
    if (Math.abs(right - left) > 8) chart.zoom[along] = part(chart.drawn[along], across);
    if (Math.abs(bottom - top) > 24 && !chart.isTurned) chart.zoom.y = part(chart.drawn.y, up);
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
      const isFlat = chart.isTurned || Math.abs(top - from[1]) <= 24;
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
    chart.whole.addEventListener("click", () => whole(chart));
    for (const button of chart.figure.querySelectorAll(".save")) {
      button.hidden = false;
      const isSvg = button.matches(".svg");
      button.addEventListener("click", () => (isSvg ? save(`${chart.figure.id}.svg`, "image/svg+xml", svgOf(chart)) : save(`${chart.figure.id}.csv`, "text/csv", csvOf(chart))));
    }
    for (const entry of chart.figure.querySelectorAll(".legend button")) {
      entry.addEventListener("click", () => {
        const isOn = entry.getAttribute("aria-pressed") === "true";
        entry.setAttribute("aria-pressed", String(!isOn));
        for (const series of list(entry.dataset.series).map(Number)) chart.hidden[isOn ? "add" : "delete"](series);
        draw(chart);
      });
    }
  }

  // Redraws a chart for a narrow page. Names and their values need all of its width.
  function fit(chart) {
    const room = chart.box.clientWidth;
    const least = Math.min(340, chart.full);
    const fitting = chart.isTurned ? (room < 560 ? room : chart.full) : room / SCALE;
    const width = room > 0 && chart.kind !== "map" ? Math.min(Math.max(fitting, least), chart.full) : chart.full;
    chart.box.classList.toggle("fits", width < chart.full);
    if (width === chart.width) return;
    chart.width = width;
    draw(chart);
  }

  // --- Taking a picture or its data away -----------------------------------------------------------------

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const STYLES = ["fill", "stroke", "color", "opacity", "font-size", "font-family", "stroke-width", "paint-order"];

  // A copy of a drawing with the page's style written into it, and without what is hidden.
  function styled(svg) {
    const [own, copy] = [svg, svg.cloneNode(true)].map((from) => [from, ...from.querySelectorAll("*")]);
    own.forEach((from, k) => {
      const style = getComputedStyle(from);
      if (style.display === "none" || from.matches("metadata")) return copy[k].setAttribute("data-gone", "");
      const told = from.matches("text, path, circle, rect") ? STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";") : "";
      for (const { name } of [...copy[k].attributes]) if (/^(data-|class|style|tabindex|aria-|role)/.test(name)) copy[k].removeAttribute(name);
      if (told) copy[k].setAttribute("style", told);
    });
    copy[0].querySelectorAll("[data-gone]").forEach((gone) => gone.remove());
    return copy[0];
  }

  // The chart as it is seen, by itself, with its legend below.
  function svgOf(chart) {
    const { svg } = chart;
    const { width, height } = svg.viewBox.baseVal;
    hideTip(chart);
    const picture = styled(svg);
    const ink = getComputedStyle(chart.figure);
    let [x, y] = [MARGIN, height + LINE];
    for (const entry of chart.figure.querySelectorAll(".legend > :not([aria-pressed=false])")) {
      const name = entry.textContent.trim();
      const wide = 28 + name.length * LETTER;
      if (x > MARGIN && x + wide > width) [x, y] = [MARGIN, y + 1.5 * LINE];
      const item = element(picture, "g", { transform: `translate(${x},${y - 6})` });
      item.append(...styled(entry.querySelector("svg")).children);
      element(item, "text", { x: 28, y: 9.6, "font-size": "10px", "font-family": ink.fontFamily, fill: ink.color }, name);
      x += wide + 2 * GAP;
    }
    const whole = x > MARGIN ? y + 1.5 * LINE : height;
    const paper = element(picture, "rect", { width, height: whole, fill: getComputedStyle(document.body).backgroundColor });
    picture.prepend(element(picture, "title", {}, svg.getAttribute("aria-label")), paper);
    for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height: whole, viewBox: `0 0 ${width} ${whole}` })) picture.setAttribute(name, value);
    return new XMLSerializer().serializeToString(picture);
  }

  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (rows) => rows.map((row) => `${row.map(String).map(quoted).join(",")}\n`).join("");

  // The values that are shown as numbers, with their intervals: of a map the cells of its table.
  function csvOf(chart) {
    if (chart.kind === "map") {
      return csv([...chart.figure.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent)));
    }
    const { shown } = present(chart);
    const ends = new Map();
    for (const { series, part, paths } of shown) {
      if (!["band", "whisker"].includes(part)) continue;
      for (const [x, y] of paths.flat()) {
        const key = `${series} ${x}`;
        const [low, high] = ends.get(key) ?? [Infinity, -Infinity];
        ends.set(key, [Math.min(low, y), Math.max(high, y)]);
      }
    }
    const { x: across, y: up } = chart.svg.dataset;
    const rows = valuesOf(shown).map(({ series, place: [x, y], words: [, where] }) => (
      [chart.names[series], chart.isTurned ? where : x, y, ...(ends.get(`${series} ${x}`) ?? ["", ""])]));
    return csv([["series", across, up, "low", "high"], ...rows]);
  }

  const charts = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector(".chart svg")).map(chartOf);
  charts.forEach(listen);
  charts.forEach(fit);
  charts.filter(({ named, published: switched }) => named.size > (isPublished() ? 0 : switched.size)).forEach(draw);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach(fit), 200);
  });
  // What is there for its published series alone has no size until it is shown.
  published?.addEventListener("change", () => {
    document.documentElement.dataset.published = isPublished() ? "yes" : "";
    charts.forEach(fit);
  });
  for (const control of [base, axes, published]) control?.addEventListener("change", () => charts.forEach(whole));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  document.documentElement.dataset.drawn = "yes";
})();
