/** Tables of benchmark results. `--save` writes them into the pages below `docs/benchmarks/`. */
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

/** The sections of these pages. */
export const sectionNames = [
  ...["host", "metrics", "isolated", "workers"],
  ...["node", "node, full", "node, start", "node, loop", "node, growth"],
  ...["mount", "network", "network, delay", "sources", "provide", "gateway", "scale", "scale, new host"],
] as const;

export type SectionName = (typeof sectionNames)[number];

/** A value of a sample, and how to display it. */
export interface Metric<S> {
  readonly digits: number;
  readonly of: (sample: S) => number;
  /** Text after the number. */
  readonly unit?: string;
  /** Use `more` for a rate. */
  readonly better?: "more" | "less";
}

/**
 * A column of a table. A compared column is followed by one that shows how many times as good our
 * result is.
 */
export interface Column {
  readonly title: string;
  readonly isCompared?: true;
}

/** A section of the page: tables that are made in one run, and where and when that was. */
export class ReportSection {
  readonly name: SectionName;
  /** False if some rows were left out: then the page is not changed. */
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

/** A table in which each work has a row for each server. */
export class Comparison<S> {
  readonly #section: ReportSection;
  readonly #columns: readonly Column[];

  constructor(section: ReportSection, columns: readonly Column[]) {
    this.#section = section;
    this.#columns = columns;
    const titles = columns.flatMap(({ title, isCompared }) => (isCompared ? [title, "x"] : [title]));
    section.head(["", "", ...titles]);
  }

  /**
   * Adds rows. `metrics`: one per column. `samples`: for each server one sample per round; the
   * first server is ours.
   */
  add(work: string, metrics: readonly Metric<S>[], samples: ReadonlyMap<string, readonly S[]>): void {
    const [ours = []] = samples.values();
    for (const [at, [server, own]] of [...samples].entries()) {
      const cells = metrics.flatMap(({ digits, of, unit, better = "less" }, column) => {
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

export class BenchReport {
  readonly #print: (line: string) => void;
  readonly #sections: ReportSection[] = [];

  constructor(print: (line: string) => void = console.log) {
    this.#print = print;
  }

  /** `versions`: the other programs and libraries, with their versions. */
  section(name: SectionName, { how, versions = [], isWhole = true }: SectionOptions): ReportSection {
    const section = new ReportSection(name, isWhole, this.#print);
    this.#sections.push(section);
    const parts = [how, ...machine(), ...versions, date()];
    section.line();
    section.line(`${parts.filter((part) => part !== "").join(", ")}.`);
    return section;
  }

  /** Writes the complete sections into their pages. */
  save(): void {
    for (const { name, isWhole, lines } of this.#sections) {
      if (isWhole) saveSection(name, lines);
      else console.error(`${name}: not saved, because some rows were left out`);
    }
  }
}

interface SectionOptions {
  /** Rounds, sizes and other conditions. */
  readonly how: string;
  readonly versions?: readonly string[];
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
 * Returns the median, followed by the minimum and the maximum if they differ. Values that are not
 * finite are ignored.
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

const date = (): string =>
  new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

/** Returns the versions of packages that are installed here, or in a folder. */
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
 * Returns the versions of go-ipfs, Kubo and js-ipfs, if environment variables name their programs.
 */
export function versionsOfPeers({ GO_IPFS: go, KUBO: kubo, JS_IPFS: js } = process.env): string[] {
  const versionOf = (name: string, binary: string | undefined) => {
    if (binary === undefined) return [];
    return [`${name} ${spawnSync(binary, ["version", "--number"], { encoding: "utf8" }).stdout.trim()}`];
  };
  const ofJs =
    js === undefined ? [] : versionsOf(["ipfs-daemon"], js).map((each) => each.replace("ipfs-daemon", "js-ipfs"));
  return [...versionOf("go-ipfs", go), ...versionOf("Kubo", kubo), ...ofJs];
}
