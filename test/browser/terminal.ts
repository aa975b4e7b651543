/**
 * Takes a picture of the terminal in which a server runs: the output is real, and a browser draws
 * it.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { escape_html } from "#core/net/http.ts";
import { launcher } from "#test/support/launchers.ts";

const MODULE = "mod_hello.js";
const source = (greeting: string) => `export default (module) => {
  module.depends("http");
  module.provides("http", {
    route: { "GET /": () => ({ body: "${greeting}", headers: { content_type: "text/plain" } }) },
  });
};
`;

/**
 * Writes `terminal.png`: a server with a folder and a module, which is saved once correctly and
 * once with an error.
 */
export async function takeTerminal(browser: Browser, images: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "demo-"));
  try {
    await mkdir(join(folder, "site"));
    await writeFile(join(folder, "site/index.html"), "<h1>My site</h1>");
    await writeFile(join(folder, MODULE), source("Hello, world!"));
    const shown = await played(folder);
    assert.match(shown, /modhost serves.*GET.*reload hello.*done.*reload hello.*failed/s);
    const tab = await browser.newPage({ viewport: { width: 900, height: 600 } });
    await tab.setContent(drawn(shown));
    await tab.locator("pre").screenshot({ path: join(images, "terminal.png") });
    await tab.close();
    console.log("terminal: modhost run --watch looks as it should; docs/images/terminal.png");
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Resolves to everything that the terminal has received. */
async function played(folder: string): Promise<string> {
  const words = [process.execPath, launcher, "run", "--watch", `./${MODULE}`, "./site"].join(" ");
  // `script` gives the program a terminal. No `modhost` of another installation is in the path.
  const child = spawn("script", ["-qfec", `stty cols 100 rows 50; exec ${words}`, "/dev/null"], {
    cwd: folder,
    env: { ...process.env, TERM: "xterm-256color", MODHOST_HTTP_PORTS: "5280", MODHOST_HTTPS_PORTS: "5281" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let shown = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
  });
  const until = async (pattern: RegExp, from = 0) => {
    while (!pattern.test(shown.slice(from))) {
      assert.equal(child.exitCode, null, shown);
      await wait(50);
    }
    return shown.length;
  };
  const ask = async (...paths: string[]) => {
    for (const path of paths) await (await fetch(`http://localhost:5280${path}`)).text();
  };
  try {
    await until(/Ctrl\+C/);
    await wait(1000);
    await ask("/site/", "/hello/", "/hello/nowhere");
    let at = await until(/nowhere/);
    await writeFile(join(folder, MODULE), source("Hello, everybody!"));
    at = await until(/reload hello/, at);
    await ask("/hello/");
    await writeFile(join(folder, MODULE), source("Hello!").replace("});", "}"));
    await until(/failed.*stays in force\./s, at);
    await wait(300);
  } finally {
    child.stdin.end("\x03");
    if (child.exitCode === null) await once(child, "exit");
  }
  return `$ npx modhost run --watch ./${MODULE} ./site\r\n${shown.replace(/\^C.*$/s, "").replaceAll(folder, "/home/ada/demo")}`;
}

const COLORS: Readonly<Record<string, string>> = {
  1: "font-weight: 600",
  2: "opacity: .6",
  31: "color: #ff7b72",
  32: "color: #7ee787",
  33: "color: #f0b34e",
  36: "color: #79c0ff",
};

/** An escape sequence that sets colours and weight. */
const SGR = new RegExp(`${String.fromCharCode(27)}\\[([\\d;]*)m`);

/** Returns a page with a text in the colours of a terminal. */
function drawn(text: string): string {
  let styles: string[] = [];
  const pieces = text.replaceAll("\r", "").split(SGR);
  const body = pieces.map((piece, at) => {
    if (at % 2 === 0) return `<span style="${styles.join("; ")}">${escape_html(piece)}</span>`;
    for (const code of piece.split(";")) {
      const style = COLORS[code];
      if (style !== undefined) styles = [...styles, style];
      else if (code === "22") styles = styles.filter((each) => each !== COLORS[1] && each !== COLORS[2]);
      else if (code === "39") styles = styles.filter((each) => !each.startsWith("color"));
      else styles = [];
    }
    return "";
  });
  return `<style>body { margin: 0 } pre { display: inline-block; margin: 0; padding: 1.25rem 1.5rem; background: #14171b;
    color: #e4e7eb; font: 13px/1.5 ui-monospace, monospace }</style><pre>${body.join("")}</pre>`;
}
