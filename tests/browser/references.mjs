// Opens reports of fixed runs in Chromium and holds what they show against what is stored: a chart that goes wrong is
// noticed.
//
//     node references.mjs BROWSER REFERENCES SCREENSHOTS REPORT.html...
//
// REFERENCES has a file NAME.json for each report NAME.html. With UPDATE_SNAPSHOTS=1 they are written anew. A report
// live-NAME.html is of what is measured now: it is looked at, and held against nothing.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { PATIENCE_MS, cutOff, drawn, launch, rulesBroken } from "./browser.mjs";

const [browserPath, references, screenshots, ...reports] = process.argv.slice(2);
const WIDTHS = [390, 1280];
const HEIGHT = 800;

// The sentence, tiles, headings, and of each chart its axes, its series, and how many marks of which kind it draws.
const structure = (page) => page.evaluate(() => {
  const texts = (where, what) => [...where.querySelectorAll(what)].map((element) => element.textContent.trim().replace(/\s+/g, " "));
  const chart = (figure) => {
    const svg = figure.querySelector(".chart > svg");
    const marks = {};
    for (const path of svg.querySelectorAll("[data-base=absolute] path")) {
      const drawn = (path.getAttribute("d") ?? "").split("M").length - 1;
      if (drawn > 0) marks[path.dataset.part ?? "cell"] = (marks[path.dataset.part ?? "cell"] ?? 0) + drawn;
    }
    return {
      heading: texts(figure, "h2")[0], words: texts(figure, ".words p"), axes: texts(svg, ".upright, .across"), series: svg.dataset.names.split("\n"),
      labels: texts(svg, ".mark, .region"), marks, ticks: texts(svg, ".tick"), rows: figure.querySelectorAll("tbody tr").length,
    };
  };
  return {
    title: document.title, lead: texts(document, ".lead"), tiles: texts(document, ".tile"), contents: texts(document, "nav a"),
    headings: [...document.querySelectorAll("h1, h2, h3")].map((heading) => `${heading.localName}: ${heading.textContent.trim()}`),
    charts: Object.fromEntries([...document.querySelectorAll("figure")].map((figure) => [figure.id, chart(figure)])),
  };
});

// Headings go down by one level at a time.
function inOrder(headings) {
  const levels = headings.map((heading) => Number(heading[1]));
  levels.forEach((level, k) => assert.ok(level <= (levels[k - 1] ?? 0) + 1, `${headings[k]} skips a level`));
}

// The sentence, all tiles, and the first pictures with their axes are seen without scrolling; of a list of names that is
// longer than a screen the beginning.
const beyond = (page) => page.evaluate(() => [...document.querySelectorAll(".lead, .tile, .first .chart")].filter((element) => {
  const { top, bottom, height } = element.getBoundingClientRect();
  return Math.min(bottom, height > innerHeight / 2 ? top + innerHeight / 3 : bottom) > innerHeight + 1;
}).map((element) => `${element.className}: ${element.textContent.trim().slice(0, 40)}`));

// What a bar of a tile stands for is written at both of its ends.
const withoutScale = (page) => page.evaluate(() => [...document.querySelectorAll(".tile")].filter((tile) => tile.querySelector("svg")
  && tile.querySelectorAll(".bar > span").length !== 2).map((tile) => tile.textContent.trim()));

// A page with a figure has it in its first picture, not how the samples scatter.
const firstPicture = (page) => page.evaluate(() => document.querySelector("figure")?.id);

function asStored(name, found) {
  const file = join(references, `${name}.json`);
  if (process.env.UPDATE_SNAPSHOTS) writeFileSync(file, `${JSON.stringify(found, null, 1)}\n`);
  assert.deepEqual(found, JSON.parse(readFileSync(file, "utf8")), `${name} is not as stored: UPDATE_SNAPSHOTS=1 stores it anew`);
}

async function opened(browser, report, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: HEIGHT }, colorScheme });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const start = performance.now();
  await page.goto(pathToFileURL(report).href, { waitUntil: "domcontentloaded" });
  await drawn(page);
  return { context, page, ms: performance.now() - start };
}

const browser = await launch(browserPath);
try {
  for (const report of reports) {
    const name = basename(report, ".html");
    for (const width of WIDTHS) {
      for (const scheme of ["light", "dark"]) {
        const { context, page, ms } = await opened(browser, report, width, scheme);
        console.log(`${name} at ${width} px, ${scheme}: drawn after ${ms.toFixed(0)} ms`);
        await page.screenshot({ path: join(screenshots, `${name}-${width}-${scheme}.png`) });
        assert.deepEqual(await rulesBroken(page), [], `${name} at ${width} px, ${scheme}: axe-core`);
        assert.deepEqual(await cutOff(page), [], `${name}: cut off at ${width} px`);
        if (width === 1280 && scheme === "light") {
          assert.deepEqual(await beyond(page), [], `${name}: below the first screen`);
          assert.deepEqual(await withoutScale(page), [], `${name}: a bar without a scale`);
          assert.notEqual(await firstPicture(page), "rounds", `${name}: samples before figures`);
          const found = await structure(page);
          inOrder(found.headings);
          assert.ok(Object.keys(found.charts).length > 0, `${name}: no chart`);
          if (!name.startsWith("live-")) asStored(name, found);
        }
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
}
