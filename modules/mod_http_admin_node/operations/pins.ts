/** Operations on the pins of this node. */
import { parseCid } from "modhost/node";
import { HttpError } from "../../../core/index.ts";
import { contentPath } from "../content_path.ts";
import type { JobWork } from "../jobs.ts";
import { type Page, pageFields, pageOf } from "../paging.ts";
import type { Pin, PinPage, PinState } from "../types.ts";
import { type Deps, MAX_PATH_LENGTH, nodeOperation } from "./operation.ts";

const USUAL_PAGE = 100;

/** Maximum length of a name in bytes, which is the node's limit. */
const MAX_NAME = 255;

const cid = { type: "string", required: true, describe: "The CID of the pin, as in the list" } as const;
const name = {
  type: "string",
  describe: `A name for people, of at most ${MAX_NAME} bytes; empty for none`,
} as const;

const modes = ["recursive", "direct"] as const;

export const pinOperations = [
  nodeOperation({
    name: "node_pins",
    method: "GET",
    path: "/node/pins",
    scope: "read",
    help: "Pins of the node, in pages",
    input: {
      type: { type: "string", values: [...modes, "all"], describe: "Which pins: recursive, direct, all; default: all" },
      search: { type: "string", describe: "A part of the name, or of the CID" },
      ...pageFields,
    },
    response: "PinPage",
    run: ({ node, pins, input }) => {
      const wanted = modes.filter((mode) => (input.type ?? "all") === "all" || input.type === mode);
      return pageOfPins({ node, pins }, wanted, input.search?.toLowerCase() ?? "", pageOf(input, USUAL_PAGE));
    },
  }),
  nodeOperation({
    name: "node_pin",
    method: "GET",
    path: "/node/pins/{cid}",
    scope: "read",
    help: "Whether something is pinned, and how: by itself, or through a pin above it",
    input: { cid },
    response: "PinState",
    run: ({ node, input, signal }) => stateOf(node, input.cid, signal),
  }),
  nodeOperation({
    name: "node_pin_add",
    method: "POST",
    path: "/node/pins",
    scope: "admin",
    help: "Pin a CID or path, and fetch missing blocks, as a job",
    input: {
      path: {
        type: "string",
        required: true,
        describe: "A CID, or a path such as /ipfs/CID/a or /ipns/NAME",
        maxLength: MAX_PATH_LENGTH,
      },
      name,
      recursive: { type: "boolean", describe: "Also pin everything below it; default: true" },
    },
    response: "Job",
    run: ({ node, pins, jobs, server, by, input: { path, name: given = "", recursive = true } }) => {
      assertName(given);
      const what = `pin ${path}`;
      const add = async (signal: AbortSignal, progress: (blocks: number) => void) => {
        const pinned = String(await node.pin.add(contentPath(path), { recursive, name: given, signal, progress }));
        pins.changed();
        return { cid: pinned };
      };
      const run: JobWork["run"] = (signal, progress) => server.record(what, () => add(signal, progress), { by });
      return jobs.start({ kind: "pin", what, by, run });
    },
  }),
  nodeOperation({
    name: "node_pin_rename",
    method: "POST",
    path: "/node/pins/{cid}/rename",
    scope: "admin",
    help: "Give a pin another name",
    input: { cid, name: { ...name, required: true } },
    response: "Pin",
    records: (input) => `name the pin ${input.cid} ${JSON.stringify(input.name)}`,
    run: async ({ node, input }): Promise<Pin> => {
      assertName(input.name);
      const pin = await pinned(node, input.cid);
      await node.lowLevel.pins.rename(parseCid(pin.cid), input.name);
      return { ...pin, name: input.name };
    },
  }),
  nodeOperation({
    name: "node_pin_remove",
    method: "POST",
    path: "/node/pins/{cid}/remove",
    scope: "admin",
    help: "Remove a pin: the next garbage collection may delete its blocks",
    input: { cid },
    response: "Pin",
    records: (input) => `remove the pin ${input.cid}`,
    run: async ({ node, pins, input }): Promise<Pin> => {
      const pin = await pinned(node, input.cid);
      await node.pin.rm(pin.cid, { recursive: pin.type === "recursive" });
      pins.changed();
      return pin;
    },
  }),
];

/** @throws {HttpError} 400 */
function assertName(given: string): void {
  if (Buffer.byteLength(given) > MAX_NAME) throw new HttpError(400, `A name has at most ${MAX_NAME} bytes`);
}

async function pageOfPins(
  { node, pins }: Pick<Deps, "node" | "pins">,
  wanted: readonly Pin["type"][],
  search: string,
  { offset, limit }: Page,
): Promise<PinPage> {
  const sought = new Set<string>();
  if (search !== "") {
    for await (const [text, name] of node.lowLevel.pins.names()) {
      if (name.toLowerCase().includes(search)) sought.add(text);
    }
  }
  const fits = (text: string) => text.toLowerCase().includes(search) || sought.has(text);
  const page: Pin[] = [];
  let total = 0;
  for (const type of wanted) {
    const all = await pins.of(type);
    const found = search === "" ? all : all.filter(fits);
    const from = Math.max(0, offset - total);
    for (const cid of found.slice(from, from + limit - page.length)) {
      page.push({ cid, type, name: await node.lowLevel.pins.name(parseCid(cid)) });
    }
    total += found.length;
  }
  return { total, offset, pins: page };
}

/** @throws {HttpError} 404, NodeError */
async function pinned(node: Deps["node"], given: string): Promise<Pin> {
  const found = parseCid(given);
  const type = await node.lowLevel.pins.mode(found);
  if (type === undefined) throw new HttpError(404, `There is no pin of ${given} itself`);
  return { cid: found.toString(), type, name: await node.lowLevel.pins.name(found) };
}

async function stateOf(node: Deps["node"], given: string, signal: AbortSignal): Promise<PinState> {
  const found = parseCid(given);
  const text = found.toString();
  const name = await node.lowLevel.pins.name(found);
  const type = await node.lowLevel.pins.mode(found);
  if (type !== undefined) return { cid: text, type, name };
  const above = (await node.lowLevel.pins.rootsAbove([found], signal)).get(text);
  if (above === undefined) return { cid: text, type: "none", name };
  return { cid: text, type: "indirect", through: String(above), name };
}
