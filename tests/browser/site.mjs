// Opens the documentation site in Chromium, at the width of a phone and of a desktop, and fails on what is not as it must be.
//
//     node site.mjs BROWSER SITE [SCREENSHOTS]
//
// It fails after all pages, with all that it found. No server: the browser gets the files of SITE, and nothing else.

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./browser.mjs";

const [browserPath, site, screenshots] = process.argv.slice(2);
const ORIGIN = "http://site.test/";
// Only a hang lasts so long for one step, on however busy a machine.
const PATIENCE_MS = 30_000;
const WIDTHS = [390, 1280];
const LEAST_TEXT_PX = 14;
// Where a word to search for must be found.
const SEARCHED = { word: "futex", least: 3 };

const files = readdirSync(site, { recursive: true });
// toc.html is the list of pages for browsers without script. Reports have a test of their own.
const pages = files.filter((file) => file.endsWith(".html") && !/^(api|gallery)\/|^toc\.html$/.test(file)).sort();
const reports = files.filter((file) => /^gallery\/.*\.html$/.test(file)).sort();

const troubles = [];
let where = "";
const shoot = (page, name) => screenshots && page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
const trouble = (what) => troubles.push(`${where}: ${what}`);

async function opened(browser, width) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, hasTouch: width < 600 });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.route("**/*", (route) => {
    const url = new URL(route.request().url());
    const file = join(site, decodeURIComponent(url.pathname));
    if (url.origin === new URL(ORIGIN).origin && existsSync(file) && statSync(file).isFile()) return route.fulfill({ path: file });
    trouble(`request: ${url}`);
    return route.abort();
  });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error") trouble(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => trouble(`error: ${error}`));
  return page;
}

async function go(page, width, path) {
  where = `${path} at ${width} px`;
  await page.goto(ORIGIN + path, { waitUntil: "load" });
}

// What a page of the book has that cannot be read.
const unreadable = (page) => page.evaluate((least) => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
  const found = [];
  const name = (element) => `${element.tagName.toLowerCase()}.${element.className}: ${element.textContent.trim().replace(/\s+/g, " ").slice(0, 60)}`;
  // The column of text may scroll by its style, which hides that it is too wide.
  for (const column of [document.documentElement, ...document.querySelectorAll(".content, main")]) {
    const over = column.scrollWidth - column.clientWidth;
    if (over > 0) found.push(`${name(column).split(":")[0]} is ${over} px wider than what is seen of it`);
  }
  const boxes = "pre, .table-wrapper, .sidebar, svg";
  for (const element of document.querySelectorAll("body *")) {
    if (element.parentElement.closest(boxes)) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > innerWidth + 1 && !element.matches(".sidebar")) found.push(`beyond the edge: ${name(element)}`);
  }
  for (const box of document.querySelectorAll("pre > code, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth + 1 && !/auto|scroll/.test(getComputedStyle(box).overflowX)) found.push(`cut off: ${name(box)}`);
  }
  const texts = document.createTreeWalker(document.querySelector(".content"), NodeFilter.SHOW_TEXT);
  const small = new Set();
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const parent = text.parentElement;
    const size = parseFloat(getComputedStyle(parent).fontSize);
    if (text.data.trim() && parent.getClientRects().length > 0 && size < least - 0.01) small.add(`${size} px: ${name(parent)}`);
  }
  found.push(...small);
  for (const image of document.images) {
    if (!image.complete || image.naturalWidth === 0) found.push(`no picture: ${image.src}`);
  }
  if (document.querySelectorAll("main h1").length === 0) found.push("no heading");
  return found;
}, LEAST_TEXT_PX);

async function searches(page, width) {
  await go(page, width, "index.html");
  await page.click("#mdbook-search-toggle");
  // Keys that come before the index are lost.
  await page.waitForSelector("#mdbook-searchbar-outer:not(.searching)");
  await page.locator("#mdbook-searchbar").pressSequentially(SEARCHED.word);
  const results = page.locator("#mdbook-searchresults > li a");
  await results.nth(SEARCHED.least - 1).waitFor();
  await shoot(page, `search-${width}`);
  await results.first().click();
  // The page of the result marks the word.
  await page.locator("main mark").first().waitFor();
}

// From the contents to a page, as a reader does.
async function menu(page, width) {
  await go(page, width, "index.html");
  const link = page.locator(".sidebar a", { hasText: "Glossary" });
  if (!await link.isVisible()) await page.click("#mdbook-sidebar-toggle");
  await link.click({ trial: true });
  await shoot(page, `menu-${width}`);
  await link.click();
  await page.waitForURL(/glossary/);
}

async function gallery(page, width) {
  await go(page, width, "gallery.html");
  const links = await page.$$eval("main a > img", (images) => images.map((image) => image.parentElement.getAttribute("href")));
  for (const report of reports) if (!links.includes(report)) trouble(`no picture leads to ${report}`);
  for (const report of links) {
    await go(page, width, "gallery.html");
    where = `${report} at ${width} px`;
    await page.click(`main a[href="${report}"] > img`);
    await page.waitForSelector("html[data-drawn=yes]");
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) trouble(`${over} px too wide`);
  }
}

async function api(page, width) {
  await go(page, width, "api/index.html");
  await page.waitForURL(/api\.html/);
  await page.click('main a:text-is("threadclock")');
  await page.waitForURL(/api\/threadclock\/index\.html/);
  await page.locator("h1", { hasText: "threadclock" }).waitFor();
}

const browser = await launch(browserPath);
try {
  for (const width of WIDTHS) {
    const start = performance.now();
    const page = await opened(browser, width);
    for (const path of pages) {
      await go(page, width, path);
      (await unreadable(page)).forEach(trouble);
      await shoot(page, `${path.replaceAll("/", "-").replace(".html", "")}-${width}`);
    }
    for (const step of [searches, menu, gallery, api]) {
      await step(page, width).catch((error) => trouble(`${step.name}: ${error.message.split("\n", 3).join(" ")}`));
    }
    await page.context().close();
    console.log(`${width} px: ${pages.length} pages and ${reports.length} reports in ${((performance.now() - start) / 1000).toFixed(0)} s`);
  }
} finally {
  await browser.close();
}
if (troubles.length > 0) {
  console.error(troubles.join("\n"));
  process.exitCode = 1;
}
