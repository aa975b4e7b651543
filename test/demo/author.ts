/**
 * `npm run demo:author`: builds the module of docs/guides/write-a-module.md from nothing. The
 * program of docs/guides/module/embed.md serves, reloads and unloads it. Every file and every curl
 * line comes from these pages, and the response must contain what the line's comment says. Exits
 * with a non-zero code otherwise.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Block, blocksOf } from "#test/contract/docs/blocks.ts";
import { curlLines } from "#test/contract/docs/shell.ts";
import { ended, plain, project, requireCurlAndPorts, untilReady } from "./support.ts";

const guide = ["write-a-module.md", "module/embed.md"].flatMap((page) =>
  blocksOf(page, readFileSync(join(project, "docs/guides", page), "utf8")),
);
const folder = mkdtempSync(join(tmpdir(), "modhost-author-"));
const launcher = join(project, "core/cli/launch.mjs");
const file = "mod_notes.ts";
let steps = 0;
let failures = 0;

function title(text: string): void {
  console.log(`\n# ${text}`);
}

function expect(output: string, wanted: string): void {
  steps += 1;
  if (output.includes(wanted)) return;
  failures += 1;
  console.log(`FAILED: the guide says ${JSON.stringify(wanted)}`);
}

/** Returns the block of the guide with this version of a file. */
function versionOf(name: string, version = 1): Block {
  const found = guide.filter(({ code }) => code.startsWith(`// ${name}\n`))[version - 1];
  if (found === undefined) throw new Error(`The guide has no version ${version} of ${name}`);
  return found;
}

/** Returns the requests that the guide shows between a file and the next file. */
function requestsAfter(block: Block): { line: string; comment: string }[] {
  const rest = guide.slice(guide.indexOf(block) + 1);
  const end = rest.findIndex(({ language }) => language === "ts");
  return rest.slice(0, end).flatMap(({ language, code }) => (language === "sh" ? curlLines(code) : []));
}

function write(name: string, code: string, note: string): void {
  title(note);
  console.log(`$ cat ${name}\n${code.trimEnd()}`);
  writeFileSync(join(folder, name), code);
}

function ask(line: string, comment: string): void {
  // curl writes the status to stderr, so that a comment may expect it.
  const measured = line.replace(/^curl /, 'curl -sS --max-time 10 -w "%{stderr}%{http_code}" ');
  const { stdout, stderr } = spawnSync("sh", ["-c", measured], { cwd: folder, encoding: "utf8" });
  const isPage = /^<!doctype/i.test(stdout);
  // The text that a reader of an error page would see.
  const text = isPage ? (/<main>(.*?)<\/main>/s.exec(stdout)?.[1] ?? stdout).replace(/<[^>]*>/g, " ") : stdout;
  console.log(`$ ${line}\n${text.trim() || `(${stderr})`}${isPage ? ` (${stderr}, a page)` : ""}`);
  expect(`${stderr} ${stdout}`, comment);
}

/** Sends the requests that the guide shows for a file that has just been written. */
function askAll(block: Block): void {
  const requests = requestsAfter(block);
  if (requests.length === 0) throw new Error("The guide has no request for this version");
  for (const { line, comment } of requests) ask(line, comment);
}

/** Starts `modhost run` as a user would, calls `work`, and stops it. */
async function whileRunning(work: () => void): Promise<void> {
  console.log(`\n$ modhost run ./${file} &`);
  const host = spawn(process.execPath, [launcher, "run", `./${file}`], { cwd: folder, stdio: "ignore" });
  try {
    await untilReady(host);
    work();
  } finally {
    const code = await ended(host);
    console.log(`(stopped by SIGTERM, exit code ${code})`);
    expect(`exit code ${code}`, "exit code 0");
  }
}

/** The program of the guide: it takes commands as lines and prints a line for each result. */
class Console {
  readonly process: ChildProcess;
  readonly #waiting: ((line: string) => void)[] = [];

  constructor(name: string) {
    const program = spawn(process.execPath, ["--conditions=source", name], { cwd: folder });
    this.process = program;
    program.stderr.pipe(process.stderr);
    createInterface({ input: program.stdout }).on("line", (line) => {
      // The log is JSON if stdout is not a terminal.
      if (!line.startsWith("{")) this.#waiting.shift()?.(line);
    });
  }

  async type(line: string, wanted: string): Promise<void> {
    const lineOf = new Promise<string>((resolve, reject) => {
      this.#waiting.push(resolve);
      this.process.once("exit", () => reject(new Error(`serve.ts ended before it responded to ${line}`)));
    });
    this.process.stdin?.write(`${line}\n`);
    const response = await lineOf;
    console.log(`> ${line}\n${response}`);
    expect(response, wanted);
  }
}

requireCurlAndPorts();
try {
  // The same result as `npm install modhost`.
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(project, join(folder, "node_modules", "modhost"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');

  title("From nothing: the command line makes a module");
  const made = spawnSync(process.execPath, [launcher, "new", "notes", "--in", "."], { cwd: folder, encoding: "utf8" });
  console.log(`$ modhost new notes --in .\n${made.stdout.trim()}${made.stderr}`);
  expect(made.stdout, file);
  await whileRunning(() => ask(`curl ${plain}/notes/`, "Hello, world!"));

  const first = versionOf(file);
  write(file, first.code, "Replace it with the first version of the guide");
  await whileRunning(() => askAll(first));

  const second = versionOf(file, 2);
  write(file, second.code, "Make it useful");
  const program = versionOf("serve.ts");
  write("serve.ts", program.code, "A program that contains the host");
  console.log("\n$ node --conditions=source serve.ts");
  const running = new Console("serve.ts");
  try {
    await untilReady(running.process);
    askAll(second);

    title("Change it while it runs: its data remains");
    const changed = second.code.replace("entries.map(", "entries.toReversed().map(");
    if (changed === second.code) throw new Error("The guide's module no longer has the line to change");
    writeFileSync(join(folder, file), changed);
    console.log(`$ sed -i 's/entries.map(/entries.toReversed().map(/' ${file}`);
    await running.type("reload notes", "done: reload notes");
    ask(`curl ${plain}/notes/`, "Bread\nMilk\n");

    title("A syntax error in the file: it is reported, and the old code keeps running");
    writeFileSync(join(folder, file), changed.replace("let entries", "let let entries"));
    console.log(`$ sed -i 's/let entries/let let entries/' ${file}`);
    await running.type("reload notes", `${file}:`);
    ask(`curl ${plain}/notes/`, "Bread\nMilk\n");

    title("Unload it, and load it again");
    await running.type("unload notes", "done: unload notes");
    ask(`curl ${plain}/notes/`, "404");
    writeFileSync(join(folder, file), first.code);
    await running.type(`load ./${file}`, `done: load ./${file}`);
    ask(`curl ${plain}/notes/`, "Nothing yet");
  } finally {
    running.process.stdin?.end();
    if (running.process.exitCode === null) await new Promise((resolve) => running.process.once("exit", resolve));
    console.log(`(its input ended, exit code ${running.process.exitCode})`);
    expect(`exit code ${running.process.exitCode}`, "exit code 0");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${steps} responses, ${failures} of them not as the guide says`);
process.exitCode = failures === 0 ? 0 : 1;
