/**
 * Reads the statements of `docs/reference/contract.md` and `contract-decisions.md`, and the tests
 * of each.
 */

import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface Statement {
  /**
   * "C" and a number for the specification, "D" and a number for a decision where the specification
   * is silent.
   */
  readonly id: string;
  readonly text: string;
}

export interface Title {
  readonly id: string;
  readonly title: string;
  readonly file: string;
}

const folder = new URL(".", import.meta.url);
const pages = ["contract.md", "contract-decisions.md"];

export const contractFiles: readonly string[] = globSync("*.test.ts", { cwd: fileURLToPath(folder) })
  .sort()
  .map((name) => fileURLToPath(new URL(name, folder)));

/** Reads rows of the tables: `| id | statement |`. */
export async function readStatements(): Promise<Statement[]> {
  const reference = new URL("../../../docs/reference/", import.meta.url);
  const texts = await Promise.all(pages.map((page) => readFile(new URL(page, reference), "utf8")));
  return texts
    .join("\n")
    .split("\n")
    .flatMap((line) => {
      const [id, text] = line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim());
      return id !== undefined && isId(id) ? [{ id, text: text ?? "" }] : [];
    });
}

/** Reads titles in the sources of the tests: `test("C1.1 ...` and `overEach(host, "C1.1 ...`. */
export async function readTitles(): Promise<Title[]> {
  const found = await Promise.all(
    contractFiles.map(async (file) => {
      const source = await readFile(file, "utf8");
      return Array.from(
        source.matchAll(/\b(?:test|overEach)\(\s*(?:\w+,\s*)?"(\S+) ([^"]+)"/g),
        ([, id = "", title = ""]) => ({ id, title, file }),
      );
    }),
  );
  return found.flat().filter(({ id }) => isId(id));
}

export function isId(text: string): boolean {
  return /^(?:C\d+\.\d+|D\d+)$/.test(text);
}

/** Returns a sentence for each difference between the pages and the tests. */
export function disagreements(statements: readonly Statement[], titles: readonly Title[]): string[] {
  const stated = new Map(statements.map((statement) => [statement.id, statement]));
  const tested = new Map(titles.map((title) => [title.id, title]));
  return [
    ...repeated(statements.map(({ id }) => id)).map((id) => `${id} is stated twice`),
    ...repeated(titles.map(({ id }) => id)).map((id) => `${id} is the id of two tests`),
    ...statements.filter(({ id }) => !tested.has(id)).map(({ id }) => `${id} is stated, but no test has it`),
    ...titles.filter(({ id }) => !stated.has(id)).map(({ id, file }) => `${id} is tested in ${file}, but not stated`),
    ...statements.filter(({ text }) => text === "").map(({ id }) => `${id} lacks its statement`),
  ];
}

function repeated(ids: readonly string[]): string[] {
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))];
}
