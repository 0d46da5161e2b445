// Makes docs/page.png, with which the README opens, of a page: its verdict, its timeline zoomed to a stall, and the
// parts of that stall.
//
//   jitterscope report RUN --html page.html
//   node web/browser/picture.mjs page.html STALL docs/page.png

import { resolve } from "node:path";
import { chromium } from "playwright-core";

const [page_of, stall, out] = process.argv.slice(2);
if (out === undefined) {
  console.error("usage: picture.mjs PAGE.html STALL OUT.png");
  process.exit(2);
}
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1220, height: 1400 }, deviceScaleFactor: 1.5, colorScheme: "light" });
  await page.goto(`file://${resolve(page_of)}#stall=${stall}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
  // What is drawn then stands at the top of the window, as the address wants it.
  await page.waitForTimeout(500);
  await page.evaluate(() => scrollTo(0, 0));
  const box = (selector) => page.locator(selector).first().boundingBox();
  const [verdict, told, panel] = [await box("#verdict"), await box("#timeline .now"), await box(".panel")];
  if (!(await page.locator(".panel").textContent()).includes(`Stall ${stall}`)) throw new Error(`the page has no stall ${stall}`);
  const edge = 16;
  const width = panel.x + panel.width - verdict.x + 2 * edge;
  const height = told.y + told.height - verdict.y + edge;
  await page.screenshot({ path: out, clip: { x: verdict.x - edge, y: verdict.y, width, height } });
} finally {
  await browser.close();
}
