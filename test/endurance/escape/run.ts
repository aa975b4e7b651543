/**
 * `npm run test:escape -- [--only TEXT]`: hostile programs and modules try to escape, with every
 * combination of users and layers of the sandbox. `--only` selects combinations by a part of their
 * titles. The table shows for each kind of attempts what refused how many of them.
 */
import { parseArgs } from "node:util";
import { sandboxLayers } from "#core/sandbox/index.ts";
import {
  missing,
  noBare,
  noNative,
  noNobody,
  runHostile,
  runModules,
  unavailable,
  type Who,
  wrong,
} from "#test/support/sandbox/combinations.ts";
import { refuserOf } from "#test/support/sandbox/refusers.ts";

/** One run of all attempts of a program or of a server. */
interface Combination {
  readonly title: string;
  /** Why it cannot run here; false if it can. */
  readonly skip: string | false;
  run(): Promise<Result>;
}

interface Result {
  readonly layers: readonly string[];
  /** The kind and the refuser of each attempt. */
  readonly attempts: readonly { readonly kind: string; readonly refusedBy: string }[];
  readonly faults: readonly string[];
}

/** Minimum number of attempts by native code, and by JavaScript. */
const ATTEMPTS = { native: 150, script: 50, modules: 150 };

const users: readonly { readonly who: Who; readonly title: string; readonly skip: string | false }[] = [
  { who: "this", title: process.getuid?.() === 0 ? "as root" : "as an ordinary user", skip: false },
  { who: "nobody", title: "as nobody", skip: noNobody },
  { who: "bare", title: "where no namespaces can be made", skip: noBare },
];

function combinations(): Combination[] {
  return users.flatMap(({ who, title, skip: noUser }) => {
    const namespaces = who === "bare" ? (["off"] as const) : (["off", "required"] as const);
    return namespaces.flatMap((mode) => {
      const skip = noUser || (mode === "required" && missing("namespaces"));
      const where = who === "bare" ? title : `${title}, ${mode === "off" ? "without" : "with"} namespaces`;
      const modules: Combination = { title: `modules, ${where}`, skip, run: () => ofModules(mode, who) };
      const owners = who === "this" && missing("user") === false ? (["same", "own"] as const) : (["same"] as const);
      const programs = owners.flatMap((user) => {
        const owner = user === "own" ? ", a user of its own" : "";
        const script: Combination = {
          title: `JavaScript, ${where}${owner}`,
          skip,
          run: () => ofProgram({ namespaces: mode, user, isNative: false }, who, ATTEMPTS.script),
        };
        const native = [1, 2, 3, 4, 5, undefined].map((abi): Combination => {
          const setting = { namespaces: mode, user, isNative: true, ...(abi !== undefined && { landlockAbi: abi }) };
          return {
            title: `native code, ${where}${owner}, ${abi === undefined ? "all of Landlock" : `Landlock ABI ${abi}`}`,
            skip: skip || noNative,
            run: () => ofProgram(setting, who, ATTEMPTS.native),
          };
        });
        return [script, ...native];
      });
      return [modules, ...programs];
    });
  });
}

async function ofProgram(setting: Parameters<typeof runHostile>[0], who: Who, least: number): Promise<Result> {
  const report = await runHostile(setting, who);
  const { outcomes, allowed, layers, changed, code, stderr } = report;
  const refused = Object.entries(outcomes).filter(([name]) => !allowed.includes(name));
  return {
    layers,
    attempts: refused.map(([, outcome]) => ({
      kind: setting.isNative ? "native code" : "JavaScript",
      refusedBy: refuserOf(outcome.replace(/^refused /, "")),
    })),
    faults: [
      ...wrong(report),
      ...changed.map((what) => `changed: ${what}`),
      ...(refused.length < least ? [`only ${refused.length} attempts`] : []),
      ...(code === 0 ? [] : [`it ended with ${code}: ${stderr}`]),
    ],
  };
}

async function ofModules(namespaces: "off" | "required", who: Who): Promise<Result> {
  const { attempts, changed, layers } = await runModules({ namespaces, messages: true }, who);
  return {
    layers,
    attempts: attempts.map(({ kind, refusedBy }) => ({ kind: `modules: ${kind}`, refusedBy })),
    faults: [
      ...attempts.flatMap(({ name, fault }) => (fault === undefined ? [] : [`${name}: ${fault}`])),
      ...changed.map((what) => `changed: ${what}`),
      ...(attempts.length < ATTEMPTS.modules ? [`only ${attempts.length} attempts`] : []),
    ],
  };
}

function printTable(attempts: Result["attempts"]): void {
  const kinds = Map.groupBy(attempts, ({ kind }) => kind);
  const rows = [...kinds].map(([kind, all]) => {
    const counts = [...Map.groupBy(all, ({ refusedBy }) => refusedBy)].map(([by, each]) => [by, each.length] as const);
    const sorted = counts.sort(([, one], [, other]) => other - one);
    return [kind, String(all.length), sorted.map(([by, count]) => `${by} ${count}`).join(", ")];
  });
  const all = [["KIND", "ATTEMPTS", "REFUSED BY"], ...rows];
  const widths = [0, 1].map((at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  for (const [kind = "", count = "", by = ""] of all)
    console.log(`${kind.padEnd(widths[0] ?? 0)}  ${count.padStart(widths[1] ?? 0)}  ${by}`);
}

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
for (const { name, works, detail } of sandboxLayers()) console.log(`${works ? "yes" : "no "}  ${name}: ${detail}`);
console.log("");
const attempts: Result["attempts"][number][] = [];
let failed = 0;
let skipped = 0;
if (unavailable !== false) {
  console.log(`There is no sandbox here: ${unavailable}`);
  failed += 1;
} else {
  for (const { title, skip, run } of combinations().filter((each) => each.title.includes(values.only))) {
    if (skip !== false) {
      skipped += 1;
      console.log(`skip  ${title}: ${skip}`);
      continue;
    }
    const { layers, attempts: tried, faults } = await run();
    attempts.push(...tried);
    failed += faults.length;
    console.log(`${faults.length === 0 ? "ok  " : "FAIL"}  ${title}: ${tried.length} attempts, ${layers.join(", ")}`);
    for (const fault of faults) console.log(`      ${fault}`);
  }
  console.log("");
  printTable(attempts);
}
console.log(`\n${attempts.length} attempts, ${failed} faults, ${skipped} combinations skipped`);
process.exitCode = failed === 0 && attempts.length > 0 ? 0 : 1;
