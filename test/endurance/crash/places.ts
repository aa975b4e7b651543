/** Names of the places in the model, and reading from a server what they hold. */
import { createHash } from "node:crypto";
import type { RpcServer } from "#test/support/rpc_server.ts";
import type { Content, Model } from "./model.ts";

export const pin = (cid: string) => `pin ${cid}`;
export const file = (path: string) => `file ${path}`;
export const key = (name: string) => `key ${name}`;
export const setting = (path: string) => `setting ${path}`;

/** CIDs that are pinned, of which nobody changes that. */
export const pinsAmong = (model: Model): string[] => model.among(pin("")).map((name) => name.slice(pin("").length));

/** Of files; a directory holds this word in their place. */
export const directory = "directory";

/** Settings that no other part of the node goes by. */
export const settings = ["Gateway.RootRedirect", "Mounts.IPFS", "Mounts.IPNS"];

export const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Reading from one that has just started fails for no reason but a defect. */
async function ask(server: RpcServer, command: string, query: Readonly<Record<string, string>> = {}) {
  const answer = await server.call(command, query);
  const body = Buffer.from(await answer.arrayBuffer());
  if (!answer.ok) throw new Error(`${command} ${JSON.stringify(query)} answered ${answer.status}: ${body}`);
  return body;
}

async function json<T>(...asked: Parameters<typeof ask>): Promise<T> {
  return JSON.parse((await ask(...asked)).toString()) as T;
}

/** All places, with what is in them. */
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

/** What is damaged, or cannot be read back though it must be there. */
export async function damaged(server: RpcServer, model: Model): Promise<string[]> {
  const lines = (await ask(server, "repo/verify")).toString().trim().split("\n");
  const wrong = lines.filter((line) => !verified.test(line));
  const kept = new Set([...pinsAmong(model), ...model.loose()]);
  for (const cid of kept) {
    const content = model.contents.get(cid);
    if (content !== undefined) wrong.push(...(await unread(server, cid, content)));
  }
  for (const cid of model.contents.keys()) if (!kept.has(cid)) model.contents.delete(cid);
  return wrong;
}

async function unread(server: RpcServer, cid: string, content: Content): Promise<string[]> {
  const answer = await server.call(content.command, { arg: `${cid}${content.below ?? ""}`, timeout: "20s" });
  const body = Buffer.from(await answer.arrayBuffer());
  if (answer.ok && digest(body) === content.digest) return [];
  const found = answer.ok ? `${body.length} other bytes` : body.toString();
  return [`${content.command} of ${cid}, which was stored with success: ${answer.status}, ${found}`];
}
