/**
 * Runs the tests: `node test/run.mjs [FILE|FOLDER...] [--name TEXT] [--times] [OPTION...]`. Without
 * files it runs every file of `test/` that ends in `.test.ts`.
 *
 * A file that is named runs in a process of its own. Otherwise about thirty files share one, unless
 * their names end in `.alone.test.ts`: see `support/together.mjs`. Their hosts then use bundled
 * modules: see `support/bundle.mjs`. The programs that tests start run `dist/`, which is rebuilt
 * first if sources have changed. If files are named, only those that start a program rebuild it.
 *
 * `--name TEXT` runs the tests whose names contain this text, and loads only the files that contain
 * it. `--times` prints how long each file took, each in a process of its own. Other options are
 * passed to Node's runner (`--test-only`, ...).
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { together } from "./support/together.mjs";

if (Number.parseInt(process.versions.node, 10) < 24) {
  console.error(
    `The tests need Node 24.9 or later and this is Node ${process.versions.node}: start them with npm run test:unit`,
  );
  process.exit(1);
}

// Imported here, because older versions of Node cannot load them and have to get the error above.
const { bundle } = await import("./support/bundle.mjs");
const { freshen } = await import("../config/build/fresh.mjs");

const root = fileURLToPath(new URL("..", import.meta.url));
const { named, name, times, options } = parse(process.argv.slice(2));
const files = withName(named.length > 0 ? named.flatMap(testFiles) : testFiles("test"));
const mayShare = name === undefined && !times;
const [grouped, single] = partition(files, (file) => mayShare && !named.includes(file));
const groups = together(grouped.map((file) => resolve(root, file)));

const areNamed = files.every((file) => named.includes(file));
// The test of the package needs the declarations, too.
if (!areNamed) freshen({ declarations: files.some((file) => file.includes("contract/package")) });
const hook = areNamed ? undefined : await bundle();

/** A folder for things that tests make once per run. Programs of other users read it. */
const folder = mkdtempSync(join(tmpdir(), "modhost-run-"));
chmodSync(folder, 0o755);

const reporter = process.stdout.isTTY ? "spec" : support("reporter.mjs");
const runner = spawn(
  process.execPath,
  [
    "--conditions=source",
    // In MiB. A larger young generation saves about 5 % of the processor time of the tests.
    "--max-semi-space-size=32",
    // There are more processes than cores, so a garbage collection on several threads only costs
    // more. This saves another 4 %.
    "--single-threaded-gc",
    `--require=${support("unhooked.cjs")}`,
    `--require=${support("time_limit.cjs")}`,
    ...(hook === undefined ? [] : [`--require=${hook}`]),
    "--test",
    // A test that hangs fails instead of blocking the run. The timeout is long enough for a busy
    // machine. Files that share a process share it, too.
    "--test-timeout=900000",
    // A test file waits for half of its time: for a network, a disk or a program. With only two
    // more processes than cores, two cores were idle for a tenth of the run.
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
    // Each file and each program that it starts has a process of its own: all of them share one
    // compile cache. Loading modules takes long on a busy machine: only tests of that timeout use a
    // shorter one.
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
  if (signal !== null) console.error(`The test runner was ended by ${signal}`);
  process.exitCode = code ?? 1;
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

/** Returns the test files in a folder, or the file that is named. */
function testFiles(path) {
  if (!statSync(resolve(root, path)).isDirectory()) return [path];
  const names = readdirSync(resolve(root, path), { recursive: true });
  return names
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(path, file))
    .sort();
}

/** Returns the files that contain the name, or all of them if the name is assembled at run time. */
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
