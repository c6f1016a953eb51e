// How the tests start Chromium.

import { chromium } from "playwright-core";

// Only a hang lasts so long, on however busy a machine.
export const PATIENCE_MS = 300_000;

// The sandbox needs privileges that a test does not have; the rest keeps the browser itself off the network.
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];

export const launch = (executablePath) => chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE_MS });
