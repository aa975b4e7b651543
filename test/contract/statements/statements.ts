/** The statements of `docs/reference/contract.md` and the titles of the tests that show them. */

import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface Statement {
  /** "C" and a number: the specification; "D" and a number: a decision where it is silent. */
  readonly id: string;
  readonly text: string;
  /** Part of the specification, or where the decision was taken. */
  readonly part: string;
  /** Title of the test, without the id. */
  readonly title: string;
}

export interface Title {
  readonly id: string;
  readonly title: string;
  readonly file: string;
}

const folder = new URL(".", import.meta.url);
const page = new URL("../../../docs/reference/contract.md", import.meta.url);

export const contractFiles: readonly string[] = globSync("*.test.ts", { cwd: fileURLToPath(folder) })
  .sort()
  .map((name) => fileURLToPath(new URL(name, folder)));

/** Rows of the tables: `| id | statement | part | test |`. */
export async function readStatements(): Promise<Statement[]> {
  const lines = (await readFile(page, "utf8")).split("\n");
  return lines.flatMap((line) => {
    const [id, text, part, title] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return id !== undefined && isId(id) ? [{ id, text: text ?? "", part: part ?? "", title: title ?? "" }] : [];
  });
}

/** Titles in the sources of the tests: `test("C1.1 ...` and `overEach(host, "C1.1 ...`. */
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

/** What the page and the tests do not agree on, one sentence each; empty when they do. */
export function disagreements(statements: readonly Statement[], titles: readonly Title[]): string[] {
  const stated = new Map(statements.map((statement) => [statement.id, statement]));
  const tested = new Map(titles.map((title) => [title.id, title]));
  return [
    ...repeated(statements.map(({ id }) => id)).map((id) => `${id} is stated twice`),
    ...repeated(titles.map(({ id }) => id)).map((id) => `${id} is the id of two tests`),
    ...statements.filter(({ id }) => !tested.has(id)).map(({ id }) => `${id} is stated, but no test has it`),
    ...titles.filter(({ id }) => !stated.has(id)).map(({ id, file }) => `${id} is tested in ${file}, but not stated`),
    ...titles.flatMap(({ id, title }) => {
      const statement = stated.get(id);
      return statement === undefined || statement.title === title
        ? []
        : [`${id} names the test "${statement.title}", which is "${title}"`];
    }),
    ...statements
      .filter(({ text, part }) => text === "" || part === "")
      .map(({ id }) => `${id} lacks its statement or part`),
  ];
}

function repeated(ids: readonly string[]): string[] {
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))];
}
