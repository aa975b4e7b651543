/** Plays test vectors against a server. */
import { CommandClient, type CommandReply } from "./call.ts";
import { type Multipart, multipart, multipartOf, multipartType } from "./content.ts";
import { judge } from "./judge.ts";
import { stepsOf, type Vector, type VectorStep, wellKnown } from "./plan.ts";

/** `none`: the vector is not about calls. */
export type VectorOutcome =
  | { readonly kind: "passes" | "none" }
  | { readonly kind: "differs"; readonly differences: readonly string[] };

export class Player implements Disposable {
  readonly #client: CommandClient;

  constructor(base: string) {
    this.#client = new CommandClient(base);
  }

  /** Plays a vector on an empty node. Its configuration is set for that time. */
  async play(vector: Vector): Promise<VectorOutcome> {
    const steps = stepsOf(vector);
    if (steps === undefined) return { kind: "none" };
    const before = await this.#configure(vector.config ?? {});
    try {
      return await this.#run(steps);
    } finally {
      for (const step of vector.after ?? []) await this.#call(step, new Map(), new Map());
      await this.#configure(before);
    }
  }

  /** Removes all pins and files, and collects the garbage. */
  async empty(): Promise<void> {
    const pins = await this.#client.call("pin/ls", { query: [["type", "recursive"]] });
    const direct = await this.#client.call("pin/ls", { query: [["type", "direct"]] });
    const keys = [pins, direct].flatMap(({ body }) => Object.keys(JSON.parse(body.toString()).Keys));
    if (keys.length > 0) await this.#client.call("pin/rm", { query: keys.map((key) => ["arg", key] as const) });
    const files = await this.#client.call("files/ls");
    if (files.status === 200) {
      const { Entries } = JSON.parse(files.body.toString()) as { Entries: readonly { Name: string }[] | null };
      const names = (Entries ?? []).map(({ Name }) => ["arg", `/${Name}`] as const);
      for (const name of names) await this.#client.call("files/rm", { query: [name, ["recursive", "true"]] });
      // The root keeps the CID version that it was given.
      await this.#client.call("files/chcid", { query: [["cid-version", "0"]] });
    }
    await this.#client.call("repo/gc");
  }

  /** Sets values and returns the previous ones. */
  async #configure(config: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    const before: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(config)) {
      const read = await this.#client.call("config", { query: [["arg", key]] });
      before[key] = read.status === 200 ? JSON.parse(read.body.toString()).Value : undefined;
      const set = await this.#client.call("config", {
        query: [
          ["arg", key],
          ["arg", JSON.stringify(value)],
          ["json", "true"],
        ],
      });
      if (set.status !== 200) throw new Error(`config ${key}: ${set.body}`);
    }
    return before;
  }

  async #run(steps: readonly VectorStep[]): Promise<VectorOutcome> {
    const saved = new Map<string, string>([...Object.entries(wellKnown), ["api port", this.#client.port]]);
    const bodies = new Map<string, Buffer>();
    for (const step of steps) {
      const reply = await this.#call(step, saved, bodies);
      const differences = judge(reply, JSON.parse(filled(JSON.stringify(step.expect ?? {}), saved)));
      if (differences.length > 0) return { kind: "differs", differences: [`${step.call}:`, ...differences] };
      remember(step, reply, saved);
      if (step.saveBody !== undefined) bodies.set(step.saveBody, reply.body);
    }
    return { kind: "passes" };
  }

  #call(
    step: VectorStep,
    saved: ReadonlyMap<string, string>,
    bodies: ReadonlyMap<string, Buffer>,
  ): Promise<CommandReply> {
    const put = (text: string) => filled(text, saved);
    const query = Object.entries(step.query ?? {}).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((each) => [name, put(String(each))] as const),
    );
    const { method } = step;
    const headers = Object.fromEntries(Object.entries(step.headers ?? {}).map(([name, value]) => [name, put(value)]));
    const body = bodyOf(step, put, bodies);
    return this.#client.call(put(step.call), { ...(method && { method }), headers, query, body });
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]();
  }
}

/** Replaces names in a text by saved values. */
const filled = (text: string, saved: ReadonlyMap<string, string>): string =>
  text.replace(/<([^<>]+)>/g, (whole, name: string) => saved.get(name) ?? whole);

function bodyOf(
  step: VectorStep,
  put: (text: string) => string,
  bodies: ReadonlyMap<string, Buffer>,
): Multipart | undefined {
  const { input, parts, bodyText, bodyHex, bodyFrom, rawBody } = step;
  if (parts !== undefined) return multipartOf(parts);
  if (input !== undefined) return multipart(input);
  if (rawBody !== undefined) return { type: multipartType, body: Buffer.from(rawBody) };
  const hex = bodyFrom === undefined ? bodyHex : (bodies.get(bodyFrom) as Buffer).toString("hex");
  if (hex !== undefined) return multipart({ "": { file: { hex } } });
  return bodyText === undefined ? undefined : multipart({ "": { file: { text: put(bodyText) } } });
}

/** Saves the CIDs of a response under the names that later steps use. */
function remember({ save }: VectorStep, { status, body }: CommandReply, saved: Map<string, string>): void {
  if (status !== 200) return;
  let lines: Record<string, unknown>[];
  try {
    lines = body
      .toString()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  } catch {
    return;
  }
  // A node may be null.
  lines = lines.filter((line) => line !== null);
  for (const { Name, Hash } of lines) if (typeof Name === "string" && typeof Hash === "string") saved.set(Name, Hash);
  const last = lines.at(-1) ?? {};
  const cid = last.Hash ?? last.Key ?? last.Cid ?? last.Id;
  const text = typeof cid === "object" && cid !== null ? (cid as Record<string, string>)["/"] : cid;
  if (typeof text !== "string") return;
  for (const name of ["Key of the previous step", "cid of the added file"]) saved.set(name, text);
  if (save !== undefined) saved.set(save, text);
}
