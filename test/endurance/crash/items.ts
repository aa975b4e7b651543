/** Names of the items in the model, and how to read their values from a server. */
import { createHash } from "node:crypto";
import type { RpcServer } from "#test/support/rpc_server.ts";
import type { Model, StoredContent } from "./model.ts";

export const pin = (cid: string) => `pin ${cid}`;
export const file = (path: string) => `file ${path}`;
export const key = (name: string) => `key ${name}`;
export const setting = (path: string) => `setting ${path}`;

/** Returns pinned CIDs that no pending change affects. */
export const pinsAmong = (model: Model): string[] => model.among(pin("")).map((name) => name.slice(pin("").length));

/** Value of a directory. The value of a file is the digest of its content. */
export const directory = "directory";

/** Settings that no other part of the node uses. */
export const settings = ["Gateway.RootRedirect", "Mounts.IPFS", "Mounts.IPNS"];

export const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Calls a server that has just started. Reads may only fail because of a defect. */
async function ask(server: RpcServer, command: string, query: Readonly<Record<string, string>> = {}) {
  const response = await server.call(command, query);
  const body = Buffer.from(await response.arrayBuffer());
  if (!response.ok) throw new Error(`${command} ${JSON.stringify(query)} responded with ${response.status}: ${body}`);
  return body;
}

async function json<T>(...call: Parameters<typeof ask>): Promise<T> {
  return JSON.parse((await ask(...call)).toString()) as T;
}

/** Resolves to the values of all items. */
export async function observe(server: RpcServer): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const { Keys: pins } = await json<{ Keys: object }>(server, "pin/ls", { type: "recursive" });
  for (const cid of Object.keys(pins)) found.set(pin(cid), "recursive");
  const { Keys: keys } = await json<{ Keys: readonly { Name: string; Id: string }[] }>(server, "key/list");
  for (const { Name, Id } of keys) found.set(key(Name), Id);
  for (const path of settings) {
    const { Value } = await json<{ Value: unknown }>(server, "config", { arg: path });
    found.set(setting(path), String(Value));
  }
  await observeFiles(server, "", found);
  return found;
}

interface Listed {
  readonly Entries: readonly { readonly Name: string; readonly Type: number }[] | null;
}

async function observeFiles(server: RpcServer, folder: string, found: Map<string, string>): Promise<void> {
  const { Entries } = await json<Listed>(server, "files/ls", { arg: `${folder}/`, long: "true" });
  for (const { Name, Type } of Entries ?? []) {
    const path = `${folder}/${Name}`;
    found.set(file(path), Type === 1 ? directory : digest(await ask(server, "files/read", { arg: path })));
    if (Type === 1) await observeFiles(server, path, found);
  }
}

const verified = /^\{"Msg":"(verify complete, all blocks validated\.)?","Progress":\d+\}$/;

/** Resolves to blocks that are damaged, and content that must exist but cannot be read. */
export async function damaged(server: RpcServer, model: Model): Promise<string[]> {
  const lines = (await ask(server, "repo/verify")).toString().trim().split("\n");
  const wrong = lines.filter((line) => !verified.test(line));
  const required = new Set([...pinsAmong(model), ...model.loose()]);
  for (const cid of required) {
    const content = model.contents.get(cid);
    if (content !== undefined) wrong.push(...(await unread(server, cid, content)));
  }
  for (const cid of model.contents.keys()) if (!required.has(cid)) model.contents.delete(cid);
  return wrong;
}

async function unread(server: RpcServer, cid: string, content: StoredContent): Promise<string[]> {
  const response = await server.call(content.command, { arg: `${cid}${content.below ?? ""}`, timeout: "20s" });
  const body = Buffer.from(await response.arrayBuffer());
  if (response.ok && digest(body) === content.digest) return [];
  const found = response.ok ? `${body.length} other bytes` : body.toString();
  return [`${content.command} of ${cid}, which was stored with success: ${response.status}, ${found}`];
}
