/**
 * Records the reference's responses to some cases of each family in `test/fixtures/differential`.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { type CaseCall, type Compared, type Family, type Level, levels } from "./family.ts";
import { type CaseOutcome, casesOf, comparedIn, play, type Responder, textOf } from "./play.ts";

type ByLevel<T> = Partial<Record<Level, T>>;

/** Texts of the responses of a case, one for each call. */
type ResponseTexts = readonly string[];

interface Recording {
  /** A digest of all calls. */
  readonly calls: ByLevel<string>;
  /** Responses by the name of the case: one list for both levels, or one for each. */
  readonly cases: Readonly<Record<string, ResponseTexts | ByLevel<ResponseTexts>>>;
}

const fileOf = ({ name }: Family) => new URL(`../../fixtures/differential/${name}.json`, import.meta.url);

const read = async (family: Family) => JSON.parse(await readFile(fileOf(family), "utf8")) as Recording;

const responsesAt = (responses: ResponseTexts | ByLevel<ResponseTexts>, level: Level): ResponseTexts | undefined =>
  Array.isArray(responses) ? responses : (responses as ByLevel<ResponseTexts>)[level];

const recordedCases = (family: Family, level: Level) => casesOf(family, level, { seed: 1, count: family.recorded });

/**
 * Plays the recorded cases of a family against the reference, and writes its responses next to
 * those of the other level.
 */
export async function record(family: Family, level: Level, reference: Responder): Promise<void> {
  const old = await read(family).catch((): Recording => ({ calls: {}, cases: {} }));
  const recorded: Record<string, string[]> = {};
  const calls = await walk(family, level, async (name, call) => {
    const response = await reference(call);
    (recorded[name] ??= []).push(textOf(response));
    return response;
  });
  const names = new Set([...Object.keys(old.cases), ...Object.keys(recorded)]);
  const lines = [...names].flatMap((name) => {
    const byLevel = levels.map((each) => [
      each,
      each === level ? recorded[name] : responsesAt(old.cases[name] ?? {}, each),
    ]);
    const texts = byLevel.map(([, recordedTexts]) => JSON.stringify(recordedTexts));
    if (texts.every((text) => text === undefined)) return [];
    const isSame = texts.every((text) => text === texts[0]);
    return `${JSON.stringify(name)}: ${isSame ? texts[0] : JSON.stringify(Object.fromEntries(byLevel))}`;
  });
  const digests = JSON.stringify({ ...old.calls, [level]: calls });
  await writeFile(fileOf(family), `{\n"calls": ${digests},\n"cases": {\n${lines.join(",\n")}\n}\n}\n`);
}

/** Makes the calls of the recorded cases. Returns a digest of them. */
async function walk(family: Family, level: Level, respond: (name: string, call: CaseCall) => Promise<Compared>) {
  const digest = createHash("sha256");
  for (const { name, calls } of recordedCases(family, level)) {
    for (let next = calls.next(); !next.done; next = calls.next(await respond(name, next.value))) {
      digest.update(JSON.stringify([next.value.path, next.value.parts ?? []]));
    }
  }
  return digest.digest("hex").slice(0, 16);
}

/**
 * Compares this node with the recording.
 * @throws Error if the calls of the family have changed since the recording
 */
export async function replay(family: Family, level: Level, ours: Responder): Promise<readonly CaseOutcome[]> {
  const { calls, cases } = await read(family);
  /** Makes a responder for each case. */
  const recorded = (name: string): Responder => {
    const texts = responsesAt(cases[name] ?? {}, level)?.values();
    return async () => comparedIn(texts?.next().value ?? "not recorded");
  };
  let last: { readonly name: string; readonly respond: Responder } | undefined;
  const digest = await walk(family, level, (name, call) => {
    if (last?.name !== name) last = { name, respond: recorded(name) };
    return last.respond(call);
  });
  if (digest !== calls[level]) {
    throw new Error(
      `The calls have changed since the recording: npm run test:differential -- --family ${family.name} --record`,
    );
  }
  const outcomes: CaseOutcome[] = [];
  for (const each of recordedCases(family, level)) {
    outcomes.push(await play(family, level, each, recorded(each.name), ours));
  }
  return outcomes;
}
