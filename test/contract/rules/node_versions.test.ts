/**
 * The repository runs on one version of Node.js, and its code also runs on the oldest version that
 * users may have.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const host = JSON.parse(read("package.json"));
const clone = JSON.parse(read("config/build/node/package.json"));
const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(host.engines.node) ?? [];

/** Whether a version is at least the oldest supported one. */
function isSupported(version: string): boolean {
  const [first, second] = version.replace(/^v/, "").split(".").map(Number) as [number, number];
  return first > Number(major) || (first === Number(major) && second >= Number(minor));
}

test("the launcher accepts the oldest version that the package supports", () => {
  assert.match(read("core/cli/launch.mjs"), new RegExp(`needed = \\[${major}, ${minor}\\]`));
});

test("types and bundles are those of the oldest version, so that newer functions are noticed", () => {
  assert.match(host.devDependencies["@types/node"], new RegExp(`^\\^${major}\\.`));
  for (const path of ["config/build/parts.mjs", "test/support/bundle.mjs"])
    assert.match(read(path), new RegExp(`target: "node${major}"`), path);
});

test("the packages of Node.js in a clone are of one major version, which is supported", () => {
  const versions = Object.values(clone.optionalDependencies) as string[];
  assert.equal(versions.length, 4);
  for (const version of versions) {
    assert.ok(isSupported(version), version);
    assert.equal(version.split(".")[0], clone.version.split(".")[0]);
  }
});

test("the documentation names the version of a clone", () => {
  const [newest] = clone.version.split(".");
  for (const path of ["README.md", "CONTRIBUTING.md", "docs/guides/first-hour.md", "docs/contributing/tests.md"])
    assert.match(read(path), new RegExp(`Node\\.js ${newest}\\b`), path);
  assert.match(read("config/deploy/Dockerfile"), new RegExp(`^ARG NODE=node:${newest}-`, "m"));
});

test("this version of Node.js is supported", () => {
  assert.ok(isSupported(process.version), process.version);
});
