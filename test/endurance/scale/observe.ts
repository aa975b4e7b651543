/**
 * Checks while nobody changes anything that all hosts report the same, and only what the history
 * allows.
 */
import type { History } from "./history.ts";
import { FOLDERS, type Host, tokenOf, type Works } from "./works.ts";

/** The empty directory, which a new repo pins. */
export const EMPTY_DIRECTORY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

/** Reads everything from all hosts. Afterwards the history begins with the found values. */
export async function observe(hosts: readonly Host[], works: Works, history: History): Promise<void> {
  // Each host makes a commit: a pending write of a killed host has either been committed before, or
  // never will be.
  for (const host of hosts) await works.ask(host, "files/mkdir", { arg: `/barriers/${host.name}`, parents: "true" });
  const seen: Map<string, string>[] = [];
  for (const host of hosts) seen.push(await itemsOn(host, hosts, works, history));
  const [first = new Map<string, string>(), ...others] = seen;
  for (const [at, other] of others.entries()) {
    for (const item of new Set([...first.keys(), ...other.keys()])) {
      const one = first.get(item);
      const another = other.get(item);
      if (one === another) continue;
      history.fault(`${item} is ${one} on ${hosts[0]?.name}, and ${another} on ${hosts[at + 1]?.name}`);
    }
  }
  history.settle(first);
}

async function itemsOn(
  host: Host,
  hosts: readonly Host[],
  works: Works,
  history: History,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const path of await filesOn(host, works)) {
    const { text } = await works.ask(host, "files/read", { arg: path });
    if (text !== undefined) found.set(path, tokenOf(text));
  }
  for (const { id, name } of hosts) {
    const { text } = await works.ask(
      host,
      "name/resolve",
      { arg: id, nocache: "true" },
      { absent: /could not resolve|not found/ },
    );
    if (text !== undefined) found.set(`name ${name}`, (JSON.parse(text) as { Path: string }).Path);
  }
  const { text: pins = "{}" } = await works.ask(host, "pin/ls", { type: "recursive", quiet: "true" });
  for (const cid of Object.keys((JSON.parse(pins) as { Keys?: object }).Keys ?? {})) {
    if (cid === EMPTY_DIRECTORY) continue;
    await learn(host, cid, works, history);
    found.set(`pin ${cid}`, "pinned");
    await works.cat(host, cid);
  }
  const read = history.reading(host.name);
  for (const item of new Set([...history.items(), ...found.keys()])) read(item, found.get(item));
  const { text: verified = "" } = await works.ask(host, "repo/verify");
  if (!verified.includes("verify complete")) history.fault(`${host.name}: repo/verify says ${verified.slice(-300)}`);
  return found;
}

async function filesOn(host: Host, works: Works): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of FOLDERS) {
    const { text } = await works.ask(host, "files/ls", { arg: folder });
    const { Entries } = JSON.parse(text ?? "{}") as { Entries?: readonly { Name: string }[] | null };
    for (const { Name } of Entries ?? []) paths.push(`${folder}/${Name}`);
  }
  return paths;
}

/** An add without a response may have pinned its content. Nothing else may be pinned. */
async function learn(host: Host, cid: string, works: Works, history: History): Promise<void> {
  if (works.added.has(cid)) return;
  const { text } = await works.ask(host, "cat", { arg: cid });
  if (text === undefined) return;
  const token = tokenOf(text);
  if (!works.unanswered.delete(token))
    history.fault(`${host.name} has pinned ${cid}, which nobody requested: ${token}`);
  works.added.set(cid, token);
  history.changed(host.name, `pin ${cid}`, "pinned");
}
