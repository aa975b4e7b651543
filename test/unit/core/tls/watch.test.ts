/** When files of certificates are read, and when the expiry of certificates causes a warning. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ExpiryWarnings } from "#core/tls/expiry.ts";
import type { Refreshed } from "#core/tls/index.ts";
import { CertificateWatch } from "#core/tls/watch.ts";

const PATIENCE_MS = 60_000;
const DAY_MS = 86_400_000;

async function until(what: string, holds: () => boolean): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    assert.ok(Date.now() < end, `not within a minute: ${what}`);
    await pause(10);
  }
}

describe("the watch of certificate files", () => {
  test("reads a file that cannot be used several times, then warns once, and tries again when the file changes", async () => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-watch-"));
    const file = join(folder, "a.crt");
    await writeFile(file, "half");
    let looks = 0;
    let refreshed: Refreshed = { changed: [], failed: [{ name: "a.test", error: new Error("it is half") }] };
    const warnings: unknown[][] = [];
    const swapped: string[] = [];
    const watch = new CertificateWatch({
      look: async () => {
        looks += 1;
        return refreshed;
      },
      swap: async (names) => void swapped.push(...names),
      warn: (...words) => void warnings.push(words),
      retries: [5, 5],
      poll: 50,
    });
    try {
      watch.follow([file]);
      await until("the warning", () => warnings.length > 0);
      assert.equal(looks, 3);
      await pause(300);
      assert.equal(looks, 3, "files that have not changed are not read again");
      assert.match(String(warnings[0]), /previous certificate stays in use.*it is half/);
      refreshed = { changed: ["a.test"], failed: [] };
      await writeFile(file, "whole");
      await until("the swap", () => swapped.length > 0);
      assert.deepEqual([swapped, warnings.length], [["a.test"], 1]);
    } finally {
      watch.close();
      await rm(folder, { recursive: true });
    }
  });
});

describe("the expiry of a certificate", () => {
  const made = (days: number, left: number) => {
    const validTo = new Date(left * DAY_MS);
    return { fingerprint: `${days}`, validTo, validFrom: new Date(validTo.getTime() - days * DAY_MS) };
  };
  const said = (days: number, moments: readonly number[]) => {
    const lines: string[] = [];
    const warnings = new ExpiryWarnings((text, _served, within) => void lines.push(`${text} ${within}`));
    for (const left of moments) warnings.look(new Map([["a.test", made(days, 0)]]), -left * DAY_MS);
    return lines.map((line) => line.replace(/.* (\d+ days|a day)$/, "$1").replace(/.*has expired.*/, "expired"));
  };

  test("causes a warning 30, 14, 7 and 1 days before, once each, and after it", () => {
    const hours = Array.from({ length: 24 * 41 }, (_, hour) => 40 - hour / 24);
    assert.deepEqual(said(365, hours), ["30 days", "14 days", "7 days", "a day", "expired"]);
  });

  test("causes only the warning of the nearest threshold if it is close at the start", () => {
    assert.deepEqual(said(365, [5, 4, 3]), ["7 days"]);
  });

  test("causes no warning before a third of the lifetime is left, because renewals happen then", () => {
    assert.deepEqual(said(6, [6, 3, 1.5, 0.5]), ["7 days", "a day"]);
    assert.deepEqual(said(90, [31, 29, 20, 13]), ["30 days", "14 days"]);
  });

  test("causes new warnings for a new certificate", () => {
    const lines: unknown[] = [];
    const warnings = new ExpiryWarnings((text) => void lines.push(text));
    warnings.look(new Map([["a.test", made(365, 0)]]), -5 * DAY_MS);
    warnings.look(new Map([["a.test", made(366, 0)]]), -5 * DAY_MS);
    assert.equal(lines.length, 2);
  });
});
