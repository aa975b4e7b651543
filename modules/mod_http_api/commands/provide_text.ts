/**
 * Formats the metrics of announcements as text: a summary, selected sections, or all of them, in
 * one or two columns.
 */
import { failure, formatDuration } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import type { Options } from "../rpc/command.ts";
import type { ShownStats, ShownSweep } from "./provide_shapes.ts";

/** Options that select sections of the text. */
export const sections = {
  connectivity: { type: "bool", help: "Print whether the node has peers." },
  network: { type: "bool", help: "Print facts about the peers." },
  schedule: { type: "bool", help: "Print the regular announcements, and when they are due." },
  timings: { type: "bool", help: "Print times and intervals." },
  workers: { type: "bool", help: "Print the state of the workers." },
  operations: { type: "bool", help: "Print the announcements so far." },
  queues: { type: "bool", help: "Print what waits." },
} as const satisfies Options;

type SectionName = keyof typeof sections;
type Choice = Readonly<Partial<Record<SectionName | "all" | "compact", boolean | undefined>>>;

const UNKNOWN = "N/A";
const NEVER = "0001-01-01T00:00:00Z";
/** The summary mentions the workers if at most this many are available for a kind of work. */
const FEW_WORKERS = 2;

/** Formats a number with separated thousands. Further decimals are cut off, not rounded. */
function full(value: number, decimals = 0): string {
  const factor = 10 ** decimals;
  return (Math.trunc(value * factor) / factor).toLocaleString("en-US", { maximumFractionDigits: decimals });
}

const units = ["", "k", "M", "G", "T"] as const;

/** Formats a number like `1.2k`. */
function short(value: number, decimals: number): string {
  const power = value < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return `${full(value / 1000 ** power, decimals)}${units[power]}`;
}

/** Formats a number like `1k` and, in a cell of its own, `(1,234)`. */
function number(value: number): string {
  const brief = short(value, 0);
  const whole = full(value);
  return brief === whole ? brief : `${brief}\t(${whole})`;
}

const orUnknown = (value: number, shown: (value: number) => string): string => (value <= 0 ? UNKNOWN : shown(value));
const decimal = (value: number): string => orUnknown(value, (known) => full(known, 1));

/** @param nanoseconds printed to a tenth of a second; below one second, to a microsecond */
function duration(nanoseconds: number): string {
  const step = nanoseconds > 1e9 ? 1e8 : 1e3;
  return formatDuration((Math.trunc(nanoseconds / step) * step) / 1e6);
}

/** Formats a time as local time. */
function moment(time: Date | string): string {
  if (time === NEVER) return UNKNOWN;
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace("T", " ");
}

/** A line of the form `label: value`, or only the label if there is no value. */
interface Line {
  readonly label: string;
  readonly value?: string;
  /** Where the line is printed: in the section, the summary, or both. */
  readonly where: "section" | "summary" | "both" | "nowhere";
  /** The label to use in two columns. */
  readonly compact?: string;
}

interface Section {
  readonly title: string;
  /** Column of the section if there are two. */
  readonly column: 0 | 1;
  readonly lines: readonly Line[];
}

const line = (label: string, value: string): Line => ({ label, value, where: "section" });
const inBoth = (label: string, value: string, where: Line["where"] = "both"): Line => ({ label, value, where });

/** The sections, in the order of the output. */
const made: Readonly<Record<SectionName, (stats: ShownSweep) => Section>> = {
  connectivity: ({ connectivity: { status, since } }) => ({
    title: "Connectivity",
    column: 1,
    lines: [
      inBoth(
        "Status",
        since === NEVER ? status : `${status} (${moment(since)})`,
        status === "online" ? "section" : "both",
      ),
    ],
  }),
  queues: ({ queues }) => ({
    title: "Queues",
    column: 1,
    lines: [
      inBoth("Provide queue", counts(queues.pending_key_provides, queues.pending_region_provides)),
      inBoth("Reprovide queue", `${short(queues.pending_region_reprovides, 1)} regions`),
    ],
  }),
  schedule: ({ schedule }) => ({
    title: "Schedule",
    column: 0,
    lines: [
      inBoth("CIDs scheduled", number(schedule.keys)),
      inBoth("Regions scheduled", orUnknown(schedule.regions, number)),
      line("Avg prefix length", decimal(schedule.avg_prefix_length)),
      line("Next region prefix", schedule.next_reprovide_prefix || UNKNOWN),
      line("Next region reprovide", moment(schedule.next_reprovide_at).split(" ").at(-1) as string),
    ],
  }),
  timings: ({ timing }) => ({
    title: "Timings",
    column: 1,
    lines: [
      line("Uptime", `${duration(timing.uptime)} (${moment(new Date(Date.now() - timing.uptime / 1e6))})`),
      line("Current time offset", duration(timing.current_time_offset)),
      line("Cycle started", moment(timing.cycle_start)),
      line("Reprovide interval", duration(timing.reprovides_interval)),
    ],
  }),
  network: ({ network }) => ({
    title: "Network",
    column: 0,
    lines: [
      inBoth("Avg record holders", decimal(network.avg_holders)),
      line("Peers swept", full(network.peers)),
      line("Full keyspace coverage", String(network.complete_keyspace_coverage)),
      line("Reachable peers", share(network.reachable, network.peers)),
      line("Avg region size", decimal(network.avg_region_size)),
      line("Replication factor", number(network.replication_factor)),
    ],
  }),
  operations: ({ operations: { ongoing, past } }) => ({
    title: "Operations",
    column: 1,
    lines: [
      inBoth("Ongoing provides", counts(ongoing.key_provides, ongoing.region_provides)),
      inBoth("Ongoing reprovides", counts(ongoing.key_reprovides, ongoing.region_reprovides)),
      inBoth("Total CIDs provided", number(past.keys_provided)),
      line("Total records provided", number(past.records_provided)),
      line("Total provide errors", number(past.keys_failed)),
      line("CIDs provided/min/worker", decimal(past.keys_provided_per_minute)),
      line("CIDs reprovided/min/worker", decimal(past.keys_reprovided_per_minute)),
      line("Region reprovide duration", orUnknown(past.reprovide_duration, duration)),
      line("Avg CIDs/reprovide", decimal(past.avg_keys_per_reprovide)),
      line("Regions reprovided (last cycle)", number(past.regions_reprovided_last_cycle)),
    ],
  }),
  workers: ({ workers }) => ({ title: "Workers", column: 0, lines: workerLines(workers) }),
};

/** The comma makes `cellsOf` put the regions into a cell of their own. */
const counts = (keys: number, regions: number): string => `${short(keys, 1)} CIDs, ${short(regions, 1)} regions`;

const share = (part: number, whole: number): string =>
  whole === 0 ? full(part) : `${full(part)} (${number(Math.trunc((100 * part) / whole))}%)`;

/** Returns how many workers could begin with each kind of work, and how many with either. */
function available(workers: ShownSweep["workers"]): Readonly<Record<"periodic" | "burst" | "free", number>> {
  const { max, dedicated_burst: burst, dedicated_periodic: periodic, active_burst, active_periodic } = workers;
  const free = Math.max(0, max - Math.max(burst, active_burst) - Math.max(periodic, active_periodic));
  return {
    free,
    burst: free + Math.max(0, burst - active_burst),
    periodic: free + Math.max(0, periodic - active_periodic),
  };
}

function workerLines(workers: ShownSweep["workers"]): readonly Line[] {
  const { free, periodic, burst } = available(workers);
  const isLow = periodic <= FEW_WORKERS || burst <= FEW_WORKERS;
  const active = `${full(workers.active)} / ${full(workers.max)} (max)`;
  const row = (label: string, first: string | number, second: string | number): Line => ({
    label: `  ${label.padEnd(14)} ${String(first).padEnd(9)} ${second}`,
    where: "section",
  });
  const brief = (label: string, kind: "periodic" | "burst", left: number): Line =>
    inBoth(
      label,
      `${workers[`active_${kind}`]} active, ${left} available, ${workers[`queued_${kind}`]} queued`,
      isLow ? "summary" : "nowhere",
    );
  return [
    { ...inBoth("Active workers", active, isLow ? "both" : "section"), compact: "Active" },
    brief("Periodic workers", "periodic", periodic),
    brief("Burst workers", "burst", burst),
    { ...line("Free workers", full(free)), compact: "Free" },
    row("Workers stats:", "Periodic", "Burst"),
    row("Active:", workers.active_periodic, workers.active_burst),
    row("Dedicated:", workers.dedicated_periodic, workers.dedicated_burst),
    row("Available:", periodic, burst),
    row("Queued:", workers.queued_periodic, workers.queued_burst),
    line("Max connections/worker", full(workers.max_provide_conns_per_worker)),
  ];
}

const isIn = ({ where }: Line, part: "section" | "summary"): boolean => where === part || where === "both";

/** @throws NodeError for options that cannot be combined */
export function provideText({ Sweep: stats, Legacy: legacy }: ShownStats, choice: Choice): string {
  const names = Object.keys(made) as SectionName[];
  const chosen = names.filter((name) => choice.all === true || choice[name] === true);
  if (legacy !== null) {
    if (chosen.length > 0) throw failure("OPTION_CONFLICT", { reason: "cannot use flags with legacy provide stats" });
    return legacyText(legacy);
  }
  if (stats === null) throw failure("FEATURE_OFF", { reason: "no provide stats available" });
  if (stats.closed) return "Provider is closed\n";
  if (choice.compact === true && choice.all !== true)
    throw failure("OPTION_CONFLICT", { reason: "--compact requires --all flag" });
  if (chosen.length === 0) {
    const summary = names.flatMap((name) => made[name](stats).lines.filter((each) => isIn(each, "summary")));
    return table(summary.map((each) => cellsOf(each, "")));
  }
  const all = chosen.map((name) => made[name](stats));
  return choice.compact === true ? inTwoColumns(all) : inOneColumn(all);
}

function legacyText(legacy: NonNullable<ShownStats["Legacy"]>): string {
  const rows = [
    line("TotalReprovides", number(Number(legacy.TotalReprovides))),
    line("AvgReprovideDuration", duration(legacy.AvgReprovideDuration)),
    line("LastReprovideDuration", duration(legacy.LastReprovideDuration)),
    ...(legacy.LastRun === NEVER ? [] : [line("LastReprovide", moment(legacy.LastRun))]),
  ];
  return table(rows.map((each) => cellsOf(each, "")));
}

function inOneColumn(all: readonly Section[]): string {
  const isTitled = all.length > 1;
  const rows = all.flatMap(({ title, lines }) => [
    ...(isTitled ? [`${title}:`] : []),
    ...lines.filter((each) => isIn(each, "section")).map((each) => cellsOf(each, isTitled ? "  " : "")),
    "",
  ]);
  return table(rows.slice(0, -1));
}

function inTwoColumns(all: readonly Section[]): string {
  const [left, right] = ([0, 1] as const).map((column) =>
    all
      .filter((section) => section.column === column)
      .flatMap(({ title, lines }) => [
        `${title}:`,
        ...lines
          .filter((each) => isIn(each, "section"))
          .map(({ label, compact = label, value }) => `  ${compact}${value === undefined ? "" : `: ${value}`}`),
        "",
      ]),
  ) as [string[], string[]];
  const width = Math.max(...left.map(({ length }) => length)) + 2;
  const count = Math.max(left.length, right.length) - 1;
  return table(Array.from({ length: count }, (_, at) => `${(left[at] ?? "").padEnd(width)} ${right[at] ?? ""}`));
}

/**
 * Returns a line as cells separated by tabs: the label and the value, which is split after its
 * first comma.
 */
const cellsOf = ({ label, value }: Line, indent: string): string =>
  indent + (value === undefined ? label : `${label}:\t${value.replace(", ", ",\t")}`);

const table = (rows: readonly string[]): string =>
  columns(
    rows.map((row) => row.split("\t")),
    1,
  );
