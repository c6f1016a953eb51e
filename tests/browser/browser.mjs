// How the tests start Chromium, and what all of them ask of a report.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

// Only a hang lasts so long, on however busy a machine.
export const PATIENCE_MS = 300_000;

// The sandbox needs privileges that a test does not have; the rest keeps the browser itself off the network.
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];

export const launch = (executablePath) => chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE_MS });

// Until the script of a report has run.
export const drawn = (page) => page.waitForSelector("html[data-drawn=yes]");

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

// The rules of axe-core that a page breaks, with where; folded parts are unfolded for that.
export async function rulesBroken(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    folded.forEach((details) => { details.open = false; });
    return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).slice(0, 3).join(" | ")}`);
  });
}

// Text that is cut off at the edge of its chart; what is scrolled in its own box is not.
export const cutOff = (page) => page.evaluate(() => [...document.querySelectorAll(".chart > svg")].flatMap((chart) => {
  const box = chart.getBoundingClientRect();
  return [...chart.querySelectorAll("text")].filter((text) => {
    const own = text.getBoundingClientRect();
    return own.width > 0 && text.textContent && (own.left < box.left - 2 || own.right > box.right + 2);
  }).map((text) => `${chart.closest("figure").id}: ${text.textContent}`);
}));
