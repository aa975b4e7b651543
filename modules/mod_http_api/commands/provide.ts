/** `provide`: announcements to the routing system, as in Kubo 0.43. */
import { type Commands, defineGroup, readCommand, stream, writeCommand } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";
import { provideStats } from "./provide_shapes.ts";
import { provideText, sections } from "./provide_text.ts";

const since = "0.43";

/** `provide/stat`, which is also named `stats/provide`. */
export const stat = readCommand({
  help: "Shows statistics of announcements to the routing system.",
  since,
  options: {
    lan: { type: "bool", help: "Show announcements to the local network; here, the statistics always cover all." },
    all: { type: "bool", aliases: ["a"], help: "Print everything." },
    compact: { type: "bool", help: "Print it in two columns; requires `all`." },
    ...sections,
  },
  returns: stream(provideStats),
  async *run({ node, options: { lan }, signal }) {
    yield await node.provide.stat({ lan, signal });
  },
  text: (stats, { options }) => provideText(stats, options),
});

export const commands = {
  provide: defineGroup({ help: "Inspect and control announcements to the routing system.", since, experimental: true }),
  "provide/clear": writeCommand({
    help: "Clears the queue of first announcements. Regular announcements continue.",
    since,
    options: { quiet: { type: "bool", aliases: ["q"], help: "Print nothing." } },
    returns: stream("int"),
    async *run({ node, options: { quiet } }) {
      const count = await node.provide.clear();
      if (quiet !== true) yield count;
    },
    text: (count) => `removed ${count} items from provide queue\n`,
  }),
  "provide/once": writeCommand({
    help: "Announces stored blocks once, in the background.",
    since,
    arguments: [
      { name: "cid", path: true, required: true, variadic: true, stdin: "lines", help: "CIDs of the blocks." },
    ],
    options: { recursive: { type: "bool", aliases: ["r"], help: "Also announce everything that they link to." } },
    returns: stream(fields("ProvideOnceEvent", { Queued: "string" })),
    async *run({ node, arguments: { cid: cids }, options: { recursive }, signal }) {
      for await (const cid of node.provide.once(cids, { recursive, signal })) yield { Queued: String(cid) };
    },
    text: ({ Queued }) => `${Queued}\n`,
  }),
  "provide/stat": stat,
  "stats/reprovide": stat,
} satisfies Commands;

export const kubo043 = { "stats/provide": stat } satisfies Commands;
