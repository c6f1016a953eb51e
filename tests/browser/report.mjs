// Opens a report in Chromium and fails on the first thing that is not as it must be.
//
//     node report.mjs BROWSER REPORT.html SCREENSHOTS
//
// Prints what it saw, a line each. Times are printed and never judged.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PATIENCE_MS, cutOff, drawn, launch, rulesBroken } from "./browser.mjs";

const [browserPath, report, screenshots] = process.argv.slice(2);
const WIDTHS = [390, 800, 1280];
const SCHEMES = ["light", "dark"];
// WCAG 2.1, 1.4.3.
const LEAST_CONTRAST = 4.5;

async function opened(browser, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const troubles = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) troubles.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => troubles.push(`error: ${error}`));
  page.on("dialog", (dialog) => { troubles.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  const url = pathToFileURL(report).href;
  page.on("request", (request) => {
    const asked = request.url();
    if (asked !== url && !/^(data|blob):/.test(asked)) troubles.push(`request: ${asked}`);
  });
  const start = performance.now();
  await page.goto(url, { waitUntil: "domcontentloaded" });
  const opened = performance.now() - start;
  await drawn(page);
  return { context, page, troubles, opened, all: performance.now() - start };
}

// Where there is no script each chart is a picture.
async function withoutScript(browser, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled: false });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  await page.goto(pathToFileURL(report).href);
  const pictures = await page.evaluate(() => [...document.querySelectorAll("figure")].map((figure) => {
    if (figure.matches(".published")) return null;
    const picture = figure.querySelector(".chart > svg");
    const { width, height } = picture?.getBoundingClientRect() ?? {};
    const marks = picture?.querySelectorAll("path, polygon, rect").length ?? 0;
    return { id: figure.id, width, height, marks, words: picture?.querySelectorAll("text").length ?? 0 };
  }).filter(Boolean));
  assert.ok(pictures.length > 0);
  for (const { id, width: wide, height, marks, words } of pictures) {
    assert.ok(wide > 200 && height > 40 && marks > 0 && words > 0, `${id} has no picture`);
  }
  // What is wider than a phone is scrolled in its own box.
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `${width} px: pictures reach ${over} px beyond`);
  assert.ok(await page.isVisible("#controls noscript"), "nobody says why the controls do nothing");
  await page.screenshot({ path: join(screenshots, `report-${width}-${colorScheme}-without-script.png`), fullPage: true });
  await context.close();
}

// What each chart draws: its marks, its ticks, and how many published lines are seen.
const charts = async (page) => {
  await drawn(page);
  return page.evaluate(() => Object.fromEntries([...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector(".chart > svg");
    const seen = [...svg.querySelectorAll(".plot path")].filter((path) => path.getAttribute("d") && !path.closest("[style*=none]"));
    const text = seen.map((path) => path.getAttribute("d"));
    const ticks = [...svg.querySelectorAll(".tick")].map((tick) => tick.textContent).sort();
    const old = new Set(svg.dataset.published.split(" "));
    const published = new Set(seen.map((path) => path.dataset.series).filter((series) => old.has(series))).size;
    return [figure.id, { marks: seen.length, published, ticks: ticks.join(" "), text: `${text.join(" ")} ${ticks.join(" ")}` }];
  })));
};

async function isWhole(page, width) {
  const wide = await page.evaluate(() => {
    const over = document.documentElement.scrollWidth - innerWidth;
    const beyond = [...document.querySelectorAll("body *")]
      .filter((element) => !element.closest("pre, .scroll, svg") && element.getBoundingClientRect().right > innerWidth + 1)
      .map((element) => `${element.tagName}.${element.className}`);
    return { over, beyond };
  });
  assert.ok(wide.over <= 0 && wide.beyond.length === 0, `${width} px: ${JSON.stringify(wide)}`);
  for (const [id, { marks }] of Object.entries(await charts(page))) {
    assert.ok(marks > 0, `${id} has no marks at ${width} px`);
  }
  // Four lines or more are a wall of text.
  const walls = await page.evaluate(() => [...document.querySelectorAll("main p, header p")].filter((paragraph) => {
    const { height } = paragraph.getBoundingClientRect();
    return innerWidth >= 1280 && height > 3.5 * parseFloat(getComputedStyle(paragraph).lineHeight);
  }).map((paragraph) => paragraph.textContent));
  assert.deepEqual(walls, [], `more than three lines at ${width} px`);
  assert.deepEqual(await cutOff(page), [], `cut off at ${width} px`);
  await isApart(page, `${width} px`);
}

// No texts lie on each other.
async function isApart(page, where) {
  const touching = await page.evaluate(() => [...document.querySelectorAll(".chart > svg")].flatMap((chart) => {
    const texts = [...chart.querySelectorAll("text")].map((text) => ({ text, box: text.getBoundingClientRect() })).filter(({ box }) => box.width > 0);
    const touch = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
      && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 0.45 * one.height;
    return texts.flatMap((one, k) => texts.slice(k + 1).filter((other) => touch(one.box, other.box))
      .map((other) => `${chart.closest("figure").id}: ${one.text.textContent} and ${other.text.textContent}`));
  }));
  assert.deepEqual(touching, [], `on each other: ${where}`);
}

async function isAccessible(page, scheme) {
  const found = await page.evaluate(() => {
    const luminance = (colour) => {
      const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => {
        const share = part / 255;
        return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (!/^rgba\(.*, 0\)$/.test(colour)) return colour;
      }
      return "rgb(255, 255, 255)";
    };
    const cellBehind = (text) => {
      const box = text.getBoundingClientRect();
      const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
      const isBelow = (cell) => {
        const { left, right, top, bottom } = cell.getBoundingClientRect();
        return left <= x && x <= right && top <= y && y <= bottom;
      };
      return getComputedStyle([...text.closest("svg").querySelectorAll("[data-said]")].find(isBelow)).fill;
    };
    const contrast = (fore, back) => {
      const [low, high] = [luminance(fore), luminance(back)].sort((one, other) => one - other);
      return (high + 0.05) / (low + 0.05);
    };
    const faint = [...document.querySelectorAll("h1, h2, h3, p, a, li span, button, dt, dd, th, td, summary, label, svg text")]
      .filter((element) => element.textContent.trim() && element.getClientRects().length)
      .map((element) => {
        const style = getComputedStyle(element);
        const fore = element instanceof SVGElement ? style.fill : style.color;
        // The value of a map's cell stands on the cell.
        const back = element.matches(".cell") ? cellBehind(element) : behind(element);
        return { what: `${element.tagName}: ${element.textContent.slice(0, 30)}`, ratio: contrast(fore, back) };
      });
    const figures = [...document.querySelectorAll("figure")].map((figure) => {
      const chart = figure.querySelector(".chart > svg");
      const words = document.getElementById(chart.getAttribute("aria-describedby"))?.textContent.trim() ?? "";
      return {
        id: figure.id, role: chart.getAttribute("role"), name: chart.getAttribute("aria-label"), words,
        numbers: figure.querySelectorAll("tbody td").length, note: figure.querySelectorAll(".note:not([aria-live])").length,
      };
    });
    return { faint, figures };
  });
  for (const { what, ratio } of found.faint) assert.ok(ratio >= LEAST_CONTRAST, `${scheme}: ${ratio.toFixed(2)} for ${what}`);
  for (const figure of found.figures) {
    assert.ok(figure.role === "img" && figure.name && figure.words, `${figure.id} has no words`);
    assert.ok(figure.numbers > 0 || figure.note > 0, `${figure.id} has neither table nor a word why`);
  }
  assert.deepEqual(await rulesBroken(page), [], `${scheme}: axe-core`);
}

async function keyboard(page) {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip", "the way past header and contents is first");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "charts", "it leads to the charts");
  const reached = new Set();
  for (let step = 0; step < 40; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id));
  }
  for (const id of ["base", "axes", "published"]) assert.ok(reached.has(id), `Tab does not reach ${id}`);
  await page.focus("#published");
  await page.keyboard.press("Space");
  assert.equal(await page.isChecked("#published"), true, "Space does not switch");
  await page.keyboard.press("Space");
}

function changed(before, after, what, of) {
  const differ = Object.keys(before).filter((id) => before[id].text !== after[id].text);
  console.log(`${what} changes: ${differ.join(", ")}`);
  assert.ok(differ.length > 0, `${what} changes nothing`);
  for (const id of of.filter((id) => id in before)) assert.ok(differ.includes(id), `${what} does not change ${id}`);
}

async function toggles(page) {
  const asFirst = await charts(page);
  const history = page.locator("#history");
  assert.equal(await history.isVisible(), false, "nobody has asked for the years");
  await page.check("#published");
  assert.equal(await history.isVisible(), true);
  const beside = await charts(page);
  changed(asFirst, beside, "published on", ["ring-cost", "ring-cpu", "cost-by-array"]);
  const count = ({ history: _, ...all }) => Object.values(all).reduce((sum, chart) => sum + chart.published, 0);
  assert.equal(count(asFirst), 0, "none is drawn before");
  assert.ok(count(beside) >= 9, "the machines of 1992 come");
  const names = await page.$$eval("#ring-cost text.name", (all) => all.map((text) => text.textContent));
  assert.equal(names.filter((name) => name.endsWith("1992")).length, 9, "each has its name at its line");
  await isApart(page, "with published machines");
  await page.screenshot({ path: join(screenshots, "report-published.png"), fullPage: true });
  await page.uncheck("#published");
  await page.selectOption("#axes", "log");
  const log = await charts(page);
  await page.selectOption("#axes", "linear");
  changed(log, await charts(page), "axes", ["ring-cost", "ring-cpu", "cost-by-array", "response-late"]);
  const linear = await charts(page);
  for (const value of await page.$$eval("#base option", (options) => options.map((option) => option.value).slice(1))) {
    await page.selectOption("#base", value);
    changed(linear, await charts(page), value, value === "own" ? ["ring-cost", "ring-cpu"] : []);
  }
  await page.selectOption("#base", "absolute");
  await page.selectOption("#axes", "fitting");
  const back = await charts(page);
  for (const id of Object.keys(asFirst)) {
    assert.equal(back[id].ticks, asFirst[id].ticks, `${id} does not come back`);
    // The script draws what the program drew, to a tenth of a pixel.
    const [numbers, first] = [back[id].text, asFirst[id].text].map((text) => text.match(/-?[\d.]+/g).map(Number));
    assert.equal(numbers.length, first.length, `${id} has other shapes`);
    const far = numbers.findIndex((number, place) => Math.abs(number - first[place]) > 0.25);
    assert.equal(far, -1, `${id} is drawn elsewhere: ${first[far]}, then ${numbers[far]}`);
  }
}

const tip = async (page) => ((await page.isVisible("#tip")) ? page.textContent("#tip") : "");

// Pointing at a value reads it, by mouse and by keys.
async function reads(page) {
  const chart = page.locator("#ring-cost .chart > svg");
  await chart.scrollIntoViewIfNeeded();
  const at = await page.evaluate(() => {
    const svg = document.querySelector("#ring-cost .chart > svg");
    const [, x, y] = svg.querySelector("[data-part=points][d^=M]").getAttribute("d").match(/^M([\d.]+),([\d.]+)/).map(Number);
    const place = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
    return { x: place.x, y: place.y };
  });
  await page.mouse.move(at.x, at.y);
  const said = await tip(page);
  console.log(`pointing reads: ${said}`);
  assert.match(said, /pipe: [\d.]+ .s( \([-\d.]+ .s to [\d.]+ .s\))? at 2$/);
  const rows = await page.$$eval("#ring-cost tbody tr", (all) => all.map((row) => row.textContent));
  const value = said.match(/: ([\d.]+) /)[1];
  assert.ok(rows.some((row) => row.includes(value)), `${value} is in no row of the table`);
  await page.mouse.move(0, 0);
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await tip(page), "", "arrows read nothing");
  const cell = page.locator("[data-said]").first();
  if (await cell.count()) {
    await cell.scrollIntoViewIfNeeded();
    await cell.hover();
    assert.equal(await tip(page), await cell.getAttribute("data-said"));
  }
  await page.mouse.move(0, 0);
}

// Every tick of a chart has the label that the program wrote for its place, and stands there: between two points of
// its first series, whose places the program wrote too. Gives the labels of x and y.
const ticks = (page, id) => page.evaluate((id) => {
  const svg = document.querySelector(`#${id} .chart > svg`);
  const group = svg.querySelector(`[data-base=${document.getElementById("base").value}]`) ?? svg.querySelector("[data-base=absolute]");
  const { on, off } = group.dataset;
  const view = (document.getElementById("published").checked ? on : off ?? on).split("\n")[document.getElementById("axes").selectedIndex].split(" ");
  const rulers = [0, 1].map((axis) => svg.querySelectorAll(".ruler")[view[axis]].dataset);
  const placesOf = ({ dataset }) => dataset.places.split(/[; ]/).map((place) => place.split(",").map(Number));
  const first = group.querySelector("[data-part=points][d^=M]");
  const points = [...first.getAttribute("d").matchAll(/M(-?[\d.]+),(-?[\d.]+)h0/g)].map((match) => match.slice(1).map(Number));
  return rulers.map(({ of, ticks, finer }, axis) => {
    const known = new Map();
    const add = (at, label) => known.set(at, [...known.get(at) ?? [], label]);
    for (const tick of `${ticks}\n${finer}`.split(/[\n\t]/)) if (tick) add(Number(tick.match(/^\S+/)), tick.replace(/^\S+ /, ""));
    for (const shape of group.querySelectorAll("[data-words]")) {
      const places = placesOf(shape);
      shape.dataset.words.split("\n").forEach((line, k) => add(places[k][of], line.split("\t")[1 - axis].split(" (")[0]));
    }
    const places = placesOf(first).map((place) => place[of]);
    const [from, to] = [Math.min(...places), Math.max(...places)].map((at) => places.indexOf(at));
    // Pixels are written to a tenth, and far beyond the chart they are cut.
    const isCut = [from, to].some((point) => Math.abs(points[point][axis]) > 90_000) || from === to;
    return [...svg.querySelectorAll(`.tick[text-anchor=${axis === 0 ? "middle" : "end"}]`)].map((tick) => {
      const at = Number(tick.dataset.at);
      const share = (at - places[from]) / (places[to] - places[from]);
      const pixel = points[from][axis] + share * (points[to][axis] - points[from][axis]);
      const off = Number(tick.getAttribute(axis === 0 ? "x" : "y")) - (axis === 0 ? 0 : 3.6) - pixel;
      const isThere = isCut || Math.abs(off) < 0.3 + 0.1 * Math.abs(share);
      return { label: tick.textContent, isKnown: (known.get(at) ?? []).includes(tick.textContent), off, isThere };
    });
  });
}, id);

async function hasTicks(page, id, what) {
  const [x, y] = await ticks(page, id);
  for (const { label, isKnown, off, isThere } of [...x, ...y]) {
    assert.ok(isKnown, `${id}, ${what}: the program wrote no ${label} there`);
    assert.ok(isThere, `${id}, ${what}: ${label} stands ${off.toFixed(1)} px beside its place`);
  }
  assert.ok(x.length > 0 && y.length > 0, `${id}, ${what}: an axis without ticks`);
  console.log(`${id}, ${what}: ${[x, y].map((all) => all.map(({ label }) => label).join(", ")).join(" | ")}`);
}

async function drag(page, id, [left, top], [right, bottom]) {
  const box = await page.locator(`#${id} .chart > svg`).boundingBox();
  await page.mouse.move(box.x + left * box.width, box.y + top * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + right * box.width, box.y + bottom * box.height, { steps: 4 });
  await page.mouse.up();
}

// Dragging over a part of a chart shows that part, and a button all of it again.
async function zooms(page) {
  const plot = page.locator("#ring-cost .chart > svg");
  await plot.scrollIntoViewIfNeeded();
  const before = (await charts(page))["ring-cost"];
  await drag(page, "ring-cost", [0.4, 0.5], [0.7, 0.5]);
  const zoomed = (await charts(page))["ring-cost"];
  assert.notEqual(zoomed.ticks, before.ticks, "a zoom has the same ticks");
  await page.click("#ring-cost .whole");
  assert.equal((await charts(page))["ring-cost"].ticks, before.ticks, "a zoom does not end");
  assert.equal(await page.isVisible("#ring-cost .whole"), false);
  for (const scale of ["linear", "log"]) {
    await page.selectOption("#axes", scale);
    await hasTicks(page, "ring-cost", scale);
    await drag(page, "ring-cost", [0.4, 0.5], [0.7, 0.5]);
    await hasTicks(page, "ring-cost", `${scale}, a part`);
    await isApart(page, `a part of a chart, ${scale}`);
    await page.click("#ring-cost .whole");
    // Around a value, in the end deeper than any rung.
    for (let depth = 1; depth <= 4; depth += 1) {
      const place = await page.evaluate(() => {
        const svg = document.querySelector("#ring-cost .chart > svg");
        const places = svg.querySelector("[data-part=points][d^=M]").getAttribute("d").matchAll(/M(-?[\d.]+),(-?[\d.]+)/g);
        const { width, height } = svg.viewBox.baseVal;
        return [...places][1].slice(1).map((at, axis) => Number(at) / [width, height][axis]);
      });
      await drag(page, "ring-cost", place.map((at) => at - 0.05), place.map((at) => at + 0.05));
      await hasTicks(page, "ring-cost", `${scale}, ${depth} times around a value`);
    }
    await page.focus("#ring-cost .chart > svg");
    await page.keyboard.press("Escape");
    assert.equal(await page.isVisible("#ring-cost .whole"), false, "Escape does not end a zoom");
  }
  await page.selectOption("#axes", "fitting");
}

// What a button saves, as text.
async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") };
}

// A picture and its data can be taken away: the drawing that is seen, and the numbers that the table has.
async function saves(page) {
  const picture = await saved(page, "#ring-cost .save.svg");
  assert.equal(picture.name, "ring-cost.svg");
  const seen = (await charts(page))["ring-cost"].ticks;
  const read = await page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    const { documentElement: svg } = parsed;
    const all = (what) => [...svg.querySelectorAll(what)];
    const lines = all("path").filter((path) => /stroke:\s*rgb/.test(path.getAttribute("style"))).length;
    return { name: svg.localName, space: svg.namespaceURI, title: all("title")[0]?.textContent, lines, data: all("metadata").length, texts: all("text").map((one) => one.textContent) };
  }, picture.text);
  assert.equal(`${read.name} ${read.space}`, "svg http://www.w3.org/2000/svg");
  assert.equal(read.title, "Cost of a switch by the size of the ring");
  assert.ok(read.lines > 3 && read.data === 0, JSON.stringify(read));
  for (const tick of seen.split(" ")) assert.ok(read.texts.join(" ").includes(tick), `no ${tick}`);
  const several = await page.$eval("figure:not(.published) .legend", (legend) => ({ id: legend.closest("figure").id, names: [...legend.children].map((entry) => entry.textContent.trim()) }));
  const { text: withLegend } = await saved(page, `#${several.id} .save.svg`);
  for (const name of several.names) assert.ok(withLegend.includes(`>${name}</text>`), `${several.id}: ${name} is not in its picture`);
  const data = await saved(page, "#ring-cost .save.csv");
  assert.equal(data.name, "ring-cost.csv");
  const [head, ...rows] = data.text.trim().split("\n").map((line) => line.split(","));
  assert.deepEqual(head, ["series", "members of the ring", "cost of a switch (ns)", "low", "high"]);
  const listed = await page.$$eval("#ring-cost tbody tr:not(.published)", (all) => all.length);
  const values = rows.filter(([name]) => !name.endsWith("law"));
  assert.equal(values.length, listed, "a row for each of the table");
  for (const [, , value, low, high] of values) assert.ok(low === "" || (Number(low) <= Number(value) && Number(value) <= Number(high)), data.text);
  // Chromium lets a page save ten files in a row: of the others what would be saved is enough.
  const all = await page.evaluate(async () => {
    const texts = {};
    const { createObjectURL } = URL;
    for (const button of document.querySelectorAll("figure:not(.published) .save.csv")) {
      const blob = new Promise((resolve) => { URL.createObjectURL = (made) => { resolve(made); return "#"; }; });
      button.click();
      texts[button.closest("figure").id] = await (await blob).text();
    }
    URL.createObjectURL = createObjectURL;
    return texts;
  });
  for (const [id, text] of Object.entries(all)) assert.ok(text.trim().split("\n").length > 1, `${id}: no data`);
}

// An entry of the legend takes its series away, and brings it back.
async function hides(page) {
  const entry = page.locator("figure:not(.published) .legend button").first();
  const id = await entry.evaluate((button) => button.closest("figure").id);
  const before = (await charts(page))[id];
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "false");
  const without = (await charts(page))[id];
  assert.ok(without.marks < before.marks, "nothing is hidden");
  await entry.press("Enter");
  assert.equal((await charts(page))[id].marks, before.marks, "it does not come back");
}

const browser = await launch(browserPath);
try {
  for (const width of WIDTHS) {
    for (const scheme of SCHEMES) {
      await withoutScript(browser, width, scheme);
      const { context, page, troubles, opened: open, all } = await opened(browser, width, scheme);
      console.log(`${width} px, ${scheme}: open after ${open.toFixed(0)} ms, all charts drawn after ${all.toFixed(0)} ms`);
      const held = await page.$$eval("figure", (all) => all.map((figure) => figure.querySelectorAll(".chart > svg").length));
      assert.ok(held.every((number) => number === 1), "each chart is there once");
      await page.screenshot({ path: join(screenshots, `report-${width}-${scheme}.png`), fullPage: true });
      await isWhole(page, width);
      await isAccessible(page, scheme);
      if (width === 1280 && scheme === "light") {
        await keyboard(page);
        await toggles(page);
        await reads(page);
        await zooms(page);
        await hides(page);
        await saves(page);
        await page.emulateMedia({ media: "print" });
        const cut = await page.$$eval("figure", (all) => all.filter((figure) => getComputedStyle(figure).breakInside !== "avoid").map(({ id }) => id));
        assert.deepEqual(cut, [], "a page may cut these");
        assert.equal(await page.isVisible("#controls"), false, "controls are printed");
        await page.pdf({ path: join(screenshots, "report.pdf") });
      }
      assert.deepEqual(troubles, []);
      await context.close();
    }
  }
} finally {
  await browser.close();
}
