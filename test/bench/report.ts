/** The tables of benchmarks. `--save` writes them into the pages below `docs/benchmarks/`. */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { median } from "./measure.ts";

/** The pages with the tables. */
export const pages: readonly string[] = globSync(
  fileURLToPath(new URL("../../docs/benchmarks/*.md", import.meta.url)),
).sort();

/** The parts of these pages. */
export const sectionNames = [
  ...["host", "figures", "isolated", "workers"],
  ...["node", "node, full", "node, start", "node, loop", "node, growth"],
  ...["mount", "network", "network, delay", "sources", "provide", "gateway", "scale", "scale, new host"],
] as const;

export type SectionName = (typeof sectionNames)[number];

/** One figure of a sample. */
export interface Figure<S> {
  readonly digits: number;
  readonly of: (sample: S) => number;
  /** Behind the number. */
  readonly unit?: string;
  /** Where a rate is shown, `more`. */
  readonly better?: "more" | "less";
}

/**
 * Of a table of such figures; one that is compared has a column behind it that tells how many times
 * as good ours is.
 */
export interface Column {
  readonly title: string;
  readonly isCompared?: true;
}

/** One part of the page: tables that are made in one go, and where and when they were. */
export class Section {
  readonly name: SectionName;
  /** False where some of it was left out: then the page keeps what it has. */
  readonly isWhole: boolean;
  readonly lines: string[] = [];
  readonly #print: (line: string) => void;

  constructor(name: SectionName, isWhole: boolean, print: (line: string) => void) {
    this.name = name;
    this.isWhole = isWhole;
    this.#print = print;
  }

  line(text = ""): void {
    this.lines.push(text);
    this.#print(text);
  }

  row(cells: readonly string[]): void {
    this.line(`| ${cells.join(" | ")} |`);
  }

  head(titles: readonly string[]): void {
    this.line();
    this.row(titles);
    this.line(`|${"---|".repeat(titles.length)}`);
  }
}

/** A table in which each work has a row for each server that does it. */
export class Comparison<S> {
  readonly #section: Section;
  readonly #columns: readonly Column[];

  constructor(section: Section, columns: readonly Column[]) {
    this.#section = section;
    this.#columns = columns;
    const titles = columns.flatMap(({ title, isCompared }) => (isCompared ? [title, "x"] : [title]));
    section.head(["", "", ...titles]);
  }

  /**
   * By server its samples, one for each round; the first is ours. `figures`: one for each column.
   */
  add(work: string, figures: readonly Figure<S>[], samples: ReadonlyMap<string, readonly S[]>): void {
    const [ours = []] = samples.values();
    for (const [at, [server, own]] of [...samples].entries()) {
      const cells = figures.flatMap(({ digits, of, unit, better = "less" }, column) => {
        const shown = spread(own.map(of), digits, unit);
        if (this.#columns[column]?.isCompared !== true) return [shown];
        if (own === ours) return [shown, ""];
        const times = own.map((sample, round) => {
          const mine = ours[round] === undefined ? Number.NaN : of(ours[round]);
          return better === "more" ? mine / of(sample) : of(sample) / mine;
        });
        return [shown, spread(times, 2)];
      });
      this.#section.row([at === 0 ? work : "", server, ...cells]);
    }
  }
}

export class Report {
  readonly #print: (line: string) => void;
  readonly #sections: Section[] = [];

  constructor(print: (line: string) => void = console.log) {
    this.#print = print;
  }

  /** `beside`: what there is of programs and libraries of others, with their versions. */
  section(name: SectionName, { how, beside = [], isWhole = true }: SectionOptions): Section {
    const section = new Section(name, isWhole, this.#print);
    this.#sections.push(section);
    const parts = [how, ...machine(), ...beside, today()];
    section.line();
    section.line(`${parts.filter((part) => part !== "").join(", ")}.`);
    return section;
  }

  /** Writes the sections that are whole into their pages. */
  save(): void {
    for (const { name, isWhole, lines } of this.#sections) {
      if (isWhole) saveSection(name, lines);
      else console.error(`${name}: not saved, as some of it was left out`);
    }
  }
}

interface SectionOptions {
  /** Rounds, sizes. */
  readonly how: string;
  readonly beside?: readonly string[];
  readonly isWhole?: boolean;
}

const beginOf = (name: string): string => `<!-- bench: ${name} -->`;

function saveSection(name: string, lines: readonly string[]): void {
  const page = pages.find((path) => readFileSync(path, "utf8").includes(beginOf(name)));
  if (page === undefined) throw new Error(`No page in docs/benchmarks has the comment ${beginOf(name)}`);
  writeFileSync(page, withSection(readFileSync(page, "utf8"), name, lines));
}

/** Replaces the text between the two comments that name the section. */
export function withSection(text: string, name: string, lines: readonly string[]): string {
  const begin = beginOf(name);
  const end = "<!-- end -->";
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`The page has no section "${name}": ${begin} and ${end}`);
  return `${text.slice(0, from + begin.length)}\n${lines.join("\n")}\n\n${text.slice(to)}`;
}

/**
 * The median, and behind it the least and the greatest where there are several. Those that are not
 * known count nothing.
 */
export function spread(values: readonly number[], digits: number, unit = ""): string {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return "";
  const shown = (value: number) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const least = shown(Math.min(...known));
  const greatest = shown(Math.max(...known));
  const range = least === greatest ? "" : ` (${least}-${greatest})`;
  return `${shown(median(known))}${range}${unit === "" ? "" : ` ${unit}`}`;
}

function machine(): string[] {
  const all = cpus();
  const model = all[0]?.model.replaceAll(/\((?:R|TM)\)/gi, "").trim();
  const load = `load ${loadavg()[0]?.toFixed(1)} before it`;
  return [`${all.length} cores (${model})`, `Linux ${release().split("-")[0]}`, load, `Node ${process.version}`];
}

const today = (): string =>
  new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

/** Of packages that are installed here, or in a folder. */
export function versionsOf(
  packages: readonly string[],
  folder = fileURLToPath(new URL("../..", import.meta.url)),
): string[] {
  return packages.map((name) => {
    const file = join(folder, "node_modules", name, "package.json");
    return `${name} ${(JSON.parse(readFileSync(file, "utf8")) as { version: string }).version}`;
  });
}

/**
 * Of go-ipfs and Kubo, where a variable names their programs; a word that it is left out otherwise.
 */
export function versionsOfPeers({ GO_IPFS: go, KUBO: kubo, JS_IPFS: js } = process.env): string[] {
  const asked = (name: string, binary: string | undefined) => {
    if (binary === undefined) return [];
    return [`${name} ${spawnSync(binary, ["version", "--number"], { encoding: "utf8" }).stdout.trim()}`];
  };
  const ofJs =
    js === undefined ? [] : versionsOf(["ipfs-daemon"], js).map((each) => each.replace("ipfs-daemon", "js-ipfs"));
  return [...asked("go-ipfs", go), ...asked("Kubo", kubo), ...ofJs];
}
