/**
 * Runs the tests: `node test/run.mjs [FILE|FOLDER...] [--name TEXT] [--times] [OPTION...]`. Without
 * files it takes every `test/**` file that ends in `.test.ts`.
 *
 * Of folders, and without files, about twenty files share a process, unless their names end in
 * `.alone.test.ts`: see `support/together.mjs`. A file that is named has its own. The modules of
 * their hosts are bundled then: see `support/bundle.mjs`.
 * The programs that tests start run `dist/`, which is built again first where sources have changed;
 * for files that are named, only those that start a program see to that.
 *
 * `--name TEXT` runs the tests whose names hold this text, and loads only the files in which it
 * stands. `--times` ends with how long each file took, in a process of its own. Other options are
 * handed to Node's runner (`--test-only`, ...).
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { together } from "./support/together.mjs";

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(`The tests need Node 24, this is ${process.versions.node}: start them with npm run test:unit`);
  process.exit(1);
}

// Older versions of Node, which are told so above, cannot load them.
const { bundle } = await import("./support/bundle.mjs");
const { freshen } = await import("../config/build/fresh.mjs");

const root = fileURLToPath(new URL("..", import.meta.url));
const { named, name, times, options } = parse(process.argv.slice(2));
const files = withName(named.length > 0 ? named.flatMap(testFiles) : testFiles("test"));
const mayShare = name === undefined && !times;
const [grouped, single] = partition(files, (file) => mayShare && !named.includes(file));
const groups = together(grouped.map((file) => resolve(root, file)));

const areNamed = files.every((file) => named.includes(file));
if (!areNamed) freshen();
const hook = areNamed ? undefined : await bundle();

/** For what tests need that is made once; programs of other users read it. */
const folder = mkdtempSync(join(tmpdir(), "modhost-run-"));
chmodSync(folder, 0o755);

const reporter = process.stdout.isTTY ? "spec" : support("reporter.mjs");
const runner = spawn(
  process.execPath,
  [
    "--conditions=source",
    `--require=${support("unhooked.cjs")}`,
    `--require=${support("time_limit.cjs")}`,
    ...(hook === undefined ? [] : [`--require=${hook}`]),
    "--test",
    // A test that hangs fails, instead of holding up the run; one of a busy machine has time, and
    // so have the files that share a process, which have it together.
    "--test-timeout=900000",
    // Half of the time a test file waits, for a network, a disk or a program. With two more than
    // there are cores, two cores had nothing to do for a tenth of the run.
    `--test-concurrency=${availableParallelism() + 4}`,
    ...reportTo(reporter),
    ...(times ? reportTo(support("times.mjs")) : []),
    ...(name === undefined ? [] : [`--test-name-pattern=${RegExp.escape(name)}`]),
    ...options,
    ...groups.files,
    ...single,
  ],
  {
    cwd: root,
    stdio: "inherit",
    // Each file has a process of its own, and so have the programs that it starts: what one has
    // compiled serves all. A busy machine takes its time to load modules: only tests of that bound
    // have a shorter one.
    env: {
      NODE_COMPILE_CACHE: join(root, "node_modules/.cache/tests"),
      MODHOST_LOAD_TIMEOUT: "300",
      TEST_RUN_FOLDER: folder,
      ...(areNamed ? {} : { TEST_DIST_IS_FRESH: "1" }),
      ...process.env,
    },
  },
);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => runner.kill(signal));
runner.on("exit", (code, signal) => {
  groups.remove();
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = signal === null ? (code ?? 1) : 1;
});

function parse(args) {
  const parsed = { named: [], name: undefined, times: false, options: [] };
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at];
    if (argument === "--name") parsed.name = args[(at += 1)];
    else if (argument.startsWith("--name=")) parsed.name = argument.slice("--name=".length);
    else if (argument === "--times") parsed.times = true;
    else parsed[argument.startsWith("-") ? "options" : "named"].push(argument);
  }
  return parsed;
}

/** The test files in a folder, or the one that is named. */
function testFiles(path) {
  if (!statSync(resolve(root, path)).isDirectory()) return [path];
  const names = readdirSync(resolve(root, path), { recursive: true });
  return names
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(path, file))
    .sort();
}

/**
 * The files that hold the name that was asked for; all of them when it is put together while they
 * run.
 */
function withName(all) {
  if (name === undefined) return all;
  const holding = all.filter((file) => read(file).includes(name));
  return holding.length > 0 ? holding : all;
}

function read(file) {
  return readFileSync(resolve(root, file), "utf8");
}

function partition(all, isFirst) {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}

function support(file) {
  return fileURLToPath(new URL(`support/${file}`, import.meta.url));
}

function reportTo(module) {
  return [`--test-reporter=${module}`, "--test-reporter-destination=stdout"];
}
