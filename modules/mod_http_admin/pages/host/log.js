/** The latest lines of the log, and new ones as they arrive. */
import { html } from "htm/preact";
import { Badge, Button, Choice, clock, Empty, Page, Problem, printable, Search, Table, useQuery } from "modhost/admin";
import { useTail } from "../tail.js";

const levels = ["debug", "info", "warn", "error"];
/** @type {Record<string, "plain" | "warn" | "bad">} */
const tones = { warn: "warn", error: "bad" };
/** @type {readonly (readonly [string, string])[]} */
const choices = [
  ["debug", "All levels"],
  ["info", "Info and above"],
  ["warn", "Warnings and errors"],
  ["error", "Errors only"],
];

/** Returns the message with the extra fields of the line. */
function textOf(/** @type {any} */ { n, level, time, module, host, worker, msg, ...fields }) {
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${value?.stack ?? JSON.stringify(value)}`);
  return [msg, ...shown].join("  ");
}

const columns = [
  {
    name: "time",
    title: "Time",
    class: "fit",
    cell: (/** @type {any} */ row) => html`<time datetime=${row.time}>${clock(row.time)}</time>`,
  },
  {
    name: "level",
    title: "Level",
    class: "fit",
    cell: (/** @type {any} */ row) => html`<${Badge} tone=${tones[row.level] ?? "plain"}>${row.level}<//>`,
  },
  { name: "module", title: "Module", cell: (/** @type {any} */ row) => row.module ?? "core" },
  {
    name: "msg",
    title: "Message",
    class: "note",
    cell: (/** @type {any} */ row) => html`<bdi>${textOf(row).split("\n").map(printable).join("\n")}</bdi>`,
  },
];

export default function Log() {
  const [text, setText] = useQuery("text");
  const [level, setLevel] = useQuery("level", "info");
  const [module, setModule] = useQuery("module");
  const matches = (/** @type {any} */ row) =>
    levels.indexOf(row.level) >= levels.indexOf(level) &&
    (module === "" || (row.module ?? "core") === module) &&
    row.msg.toLowerCase().includes(text.toLowerCase());
  const tail = useTail({ path: "/log", query: { text, level, module }, topic: "log", keyOf: ({ n }) => n, matches });
  const actions = html`<${Search} value=${text} onInput=${setText} label="Text" />
    <${Search} value=${module} onInput=${setModule} label="Module" />
    <${Choice} label="Level" value=${level} onChange=${setLevel} choices=${choices} />
    <${Button} aria-pressed=${tail.isPaused} onClick=${() => tail.setPaused(!tail.isPaused)}>${tail.isPaused ? "Resume" : "Pause"}<//>`;
  const empty = html`<${Empty} title="None of the latest lines matches."><p>New lines appear here as they are written.</p><//>`;
  return html`<${Page} title="Log" lead="The latest first; values of secret options are never shown" actions=${actions}>
    <${Problem} error=${tail.past.error} retry=${tail.past.reload} />
    <${Table} label="Log" rows=${tail.values.toReversed()} rowKey=${(/** @type {any} */ row) => String(row.n)} columns=${columns} empty=${empty} />
  <//>`;
}
