/**
 * A hostile program tries to escape from the sandbox, with every combination of layers that this
 * machine has. `test/support/sandbox/hostile.mjs` lists the attempts.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sandboxLayers, sandboxUnavailable } from "#core/sandbox/index.ts";
import type { Report, Setting } from "../../../support/sandbox/host.ts";

const program = fileURLToPath(new URL("../../../support/sandbox/host.ts", import.meta.url));
const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;
const words = [process.execPath, "--no-warnings", "--conditions=source", program] as const;

/** Starts the host of the hostile program as this user, or as an ordinary one. */
async function run(setting: Setting, who: "this" | "nobody" | "bare" = "this"): Promise<Report> {
  const [file = "", ...args] = [...(who === "bare" ? bare : []), ...words];
  const user = who === "nobody" && isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const { stdout } = await promisify(execFile)(file, [...args, JSON.stringify(setting)], {
    ...user,
    cwd: "/",
    env: { PATH: process.env.PATH },
    maxBuffer: 10e6,
  });
  return JSON.parse(stdout);
}

/** Why the program cannot run as an ordinary user; false if it can. */
function withoutNobody(): string | false {
  if (!isRoot) return false;
  const { status } = spawnSync(words[0], ["--eval", `require("fs").readFileSync(${JSON.stringify(program)})`], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: "/",
  });
  return status !== 0 && "an ordinary user cannot read Node or the source tree here";
}

const layer = (name: string) => sandboxLayers().find((each) => each.name === name);
const missing = (name: string): string | false => (layer(name)?.works ? false : `${name}: ${layer(name)?.detail}`);
/** Runs a command where no namespaces can be made, as in many containers. */
const bare = [
  "unshare",
  "--user",
  "--map-root-user",
  "sh",
  "-c",
  'for kind in user mnt pid net; do echo 0 > /proc/sys/user/max_"$kind"_namespaces || exit 1; done; exec "$0" "$@"',
] as const;
const noBare =
  spawnSync(bare[0], [...bare.slice(1), "true"], { cwd: "/" }).status !== 0 &&
  "unshare cannot make a user namespace here";

const unavailable = sandboxUnavailable() ?? false;
const noNative = process.arch !== "x64" && "the attempts know the system calls of x86-64 only";
const noNobody = unavailable === false && withoutNobody();

/** Names of the attempts that got something, or of legitimate uses that did not. */
function wrong({ outcomes, allowed }: Report): readonly string[] {
  return Object.entries(outcomes)
    .filter(([name, outcome]) => outcome.startsWith("got") !== allowed.includes(name))
    .map(([name, outcome]) => `${name}: ${outcome}`);
}

function assertContained(report: Report, attempts: number): void {
  assert.equal(report.code, 0, report.stderr);
  assert.deepEqual(wrong(report), []);
  assert.deepEqual(report.changed, []);
  assert.equal(report.stderr, "");
  const count = Object.keys(report.outcomes).length - report.allowed.length;
  assert.ok(count >= attempts, `${count} attempts`);
  assert.equal(report.outcomes["has only its own environment"], 'got {"ONLY":"this"}');
}

describe("a hostile program", { skip: unavailable, concurrency: 2 }, () => {
  test("succeeds with most attempts outside of a sandbox", { skip: noNative || noNobody }, async () => {
    const report = await run({ namespaces: "off", user: "same", isNative: true, isControl: true }, "nobody");
    const got = Object.values(report.outcomes).filter((outcome) => outcome.startsWith("got")).length;
    assert.ok(got >= 100, `${got} attempts succeeded`);
    assert.ok(report.changed.length >= 6, report.changed.join());
  });

  for (const abi of [1, 2, 3, 4, 5, undefined]) {
    const rules = abi === undefined ? "all rules of this kernel" : `rules of ABI ${abi}`;
    test(`gets nothing by native code under Landlock and seccomp, with ${rules}`, { skip: noNative }, async () => {
      const landlockAbi = abi !== undefined && { landlockAbi: abi };
      assertContained(await run({ namespaces: "off", user: "same", isNative: true, ...landlockAbi }), 150);
    });
  }

  test("gets nothing by native code as an ordinary user, with rules of ABI 1", {
    skip: noNative || noNobody,
  }, async () => {
    const setting = { namespaces: "off", user: "same", isNative: true, landlockAbi: 1 } as const;
    assertContained(await run(setting, "nobody"), 150);
  });

  test("gets nothing by native code as a user of its own", { skip: noNative || missing("user") }, async () => {
    const report = await run({ namespaces: "off", user: "own", isNative: true, landlockAbi: 1 });
    assert.ok(report.layers.includes("user"));
    assertContained(report, 150);
  });

  for (const who of ["this", "nobody"] as const) {
    const skip = noNative || missing("namespaces") || (who === "nobody" && noNobody);
    test(`gets nothing by native code in namespaces, started as ${who} user`, { skip }, async () => {
      const report = await run({ namespaces: "required", user: "own", isNative: true, landlockAbi: 1 }, who);
      assert.ok(report.layers.includes("namespaces"));
      assertContained(report, 150);
    });
  }

  test("gets nothing by native code where no namespaces can be made", { skip: noNative || noBare }, async () => {
    const report = await run({ namespaces: "auto", user: "own", isNative: true, landlockAbi: 1 }, "bare");
    assert.deepEqual(report.layers, ["landlock", "seccomp", "limits"]);
    assertContained(report, 150);
  });

  test("gets nothing by JavaScript, where Node's permissions refuse first", async () => {
    const report = await run({ namespaces: "off", user: "same", isNative: false });
    assertContained(report, 50);
    const denied = Object.values(report.outcomes).filter((outcome) => outcome === "refused ERR_ACCESS_DENIED").length;
    assert.ok(denied >= 40, `${denied} attempts were refused by Node`);
  });

  test("gets nothing by JavaScript in namespaces as an ordinary user", {
    skip: missing("namespaces") || noNobody,
  }, async () => {
    assertContained(await run({ namespaces: "required", user: "own", isNative: false }, "nobody"), 50);
  });

  test("is ended by a system call of the x32 ABI", { skip: noNative }, async () => {
    const report = await run({ namespaces: "off", user: "same", isNative: true, isX32: true });
    assert.equal(report.signal, "SIGSYS");
  });
});
